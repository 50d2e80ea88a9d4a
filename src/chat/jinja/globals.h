// The functions that every template may call.
#pragma once

#include "chat/jinja/render.h"

namespace kvasir::jinja {

/// range, dict, namespace, cycler, joiner, raise_exception, strftime_now; missing for any other name.
Value find_global(Render& render, TextView name);

}  // namespace kvasir::jinja
