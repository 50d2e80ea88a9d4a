// The flags of samplers' parameters, made from the names that the library gives them.
#pragma once

#include <string>
#include <string_view>

namespace kvasir::cli {

/// Every spelling of a parameter's flag: "--typical,--typical-p" of "typical_p".
std::string sampling_flags(std::string_view parameter);
/// The first of them, "--top-k" of "top_k"; empty where no sampler has such a parameter.
std::string sampling_flag(std::string_view parameter);

}  // namespace kvasir::cli
