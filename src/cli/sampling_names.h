// The names of the flags of sampler parameters, made from the library's names.
#pragma once

#include <string>
#include <string_view>

namespace kvasir::cli {

/// Every spelling of a parameter's flag: "--typical,--typical-p" of "typical_p".
std::string sampling_flags(std::string_view parameter);
/// The first spelling: "--top-k" of "top_k"; empty if no sampler has such a parameter.
std::string sampling_flag(std::string_view parameter);

}  // namespace kvasir::cli
