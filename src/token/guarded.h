// The edge where what a library throws becomes an error like any other.
#pragma once

#include <exception>

#include <kvasir/result.h>

namespace kvasir {

/// Runs `body`, which returns a Result; an exception (bad_alloc, mostly) is an error with its text.
template <class Body>
auto guarded(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    return fail(Error::no_room, error.what());
  }
}

}  // namespace kvasir
