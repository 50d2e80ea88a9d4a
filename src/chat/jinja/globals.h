// The global functions of every template.
#pragma once

#include "chat/jinja/render.h"

namespace kvasir::jinja {

/// Returns range, dict, namespace, cycler, joiner, raise_exception or strftime_now; missing for any other name.
Value find_global(Render& render, TextView name);

}  // namespace kvasir::jinja
