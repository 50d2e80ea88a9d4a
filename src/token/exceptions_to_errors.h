// Turns exceptions that libraries throw into errors.
#pragma once

#include <exception>

#include <kvasir/result.h>

namespace kvasir {

/// Runs `body`, which returns a Result. An exception (mostly bad_alloc) becomes Error::no_room with its text.
template <class Body>
auto guarded(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    return fail(Error::no_room, error.what());
  }
}

}  // namespace kvasir
