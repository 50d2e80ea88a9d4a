// Sorts tensors by name and looks them up.
#include "format/tensor_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/quote.h"

namespace kvasir {

const TensorInfo* TensorDir::find(std::string_view name) const {
  const auto it = std::lower_bound(tensors.begin(), tensors.end(), name,
                                   [](const TensorInfo& tensor, std::string_view n) { return tensor.name < n; });
  return it != tensors.end() && it->name == name ? &*it : nullptr;
}

Result<void> sort_tensors(std::vector<TensorInfo>& tensors, const std::string& where) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != tensors.end())
    return fail(Error::damaged, fmt::format("tensor {} is there twice", in_quotes(twice->name)), where);
  return {};
}

}  // namespace kvasir
