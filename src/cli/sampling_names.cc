// Names of flags by rule, except two parameters with their own names.
#include "cli/sampling_names.h"

#include <algorithm>

#include <kvasir/sampling.h>

namespace kvasir::cli {

std::string sampling_flags(std::string_view parameter) {
  if (parameter == "temperature") return "--temp";
  if (parameter == "typical_p") return "--typical,--typical-p";
  std::string name = "--" + std::string(parameter);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string sampling_flag(std::string_view parameter) {
  for (const SamplerInfo& sampler : samplers())
    for (const SamplerParam& param : sampler.params)
      if (param.name == parameter) {
        const std::string flags = sampling_flags(parameter);
        return flags.substr(0, flags.find(','));
      }
  return {};
}

}  // namespace kvasir::cli
