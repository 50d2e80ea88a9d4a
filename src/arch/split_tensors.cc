// Cutting tensors along their rows.
#include "arch/split_tensors.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"

namespace kvasir {
namespace {

// Part i of n along the slowest dimension.
TensorInfo slice(const TensorInfo& tensor, int64_t i, int64_t n) {
  TensorInfo part = tensor;
  part.stored_name = tensor.name_in_file();
  part.shape.front() /= n;
  part.bytes /= static_cast<uint64_t>(n);
  part.offset += part.bytes * static_cast<uint64_t>(i);
  return part;
}

std::string numbered(std::string_view name, int64_t expert) {
  const size_t star = name.find('*');
  if (star == name.npos) return std::string(name);
  return fmt::format("{}{}{}", name.substr(0, star), expert, name.substr(star + 1));
}

}  // namespace

Result<std::vector<TensorInfo>> split_tensor(const TensorInfo& tensor, std::span<const std::string_view> parts,
                                             std::string_view before, std::string_view after,
                                             const std::string& where) {
  const bool by_expert = parts.front().find('*') != std::string_view::npos;
  const auto n = static_cast<int64_t>(parts.size());
  const size_t rank = tensor.shape.size(), rows = by_expert ? 1 : 0;
  if (rank <= rows || tensor.shape[rows] % n != 0 || tensor.shape.front() < 1)
    return fail(Error::damaged,
                fmt::format("tensor {} of shape [{}] does not hold {} equal parts", in_quotes(tensor.name_in_file()),
                            fmt::join(tensor.shape, ", "), n),
                where, "a complete checkpoint of this architecture");
  std::vector<TensorInfo> all;
  const int64_t experts = by_expert ? tensor.shape.front() : 1;
  for (int64_t e = 0; e < experts; ++e) {
    TensorInfo whole = by_expert ? slice(tensor, e, experts) : tensor;
    if (by_expert) whole.shape.erase(whole.shape.begin());
    for (int64_t i = 0; i < n; ++i) {
      TensorInfo& part = all.emplace_back(slice(whole, i, n));
      part.name = fmt::format("{}{}{}", before, numbered(parts[static_cast<size_t>(i)], e), after);
    }
  }
  return all;
}

Result<void> split_tensors(std::span<const TensorSplit> splits, TensorDir* dir, const std::string& where) {
  if (splits.empty()) return {};
  std::vector<TensorInfo> tensors;
  for (TensorInfo& tensor : dir->tensors) {
    const TensorSplit* found = nullptr;
    size_t at = 0;
    for (const TensorSplit& split : splits) {
      at = tensor.name.rfind(split.name);
      const size_t end = at == std::string::npos ? 0 : at + split.name.size();
      if (end == 0 || (end != tensor.name.size() && tensor.name[end] != '.')) continue;
      found = &split;
      break;
    }
    if (found == nullptr) {
      tensors.push_back(std::move(tensor));
      continue;
    }
    const std::string_view name = tensor.name;
    std::string_view after = name.substr(at + found->name.size());
    if (after.empty()) after = ".weight";  // parameters that transformers keeps without a module
    KVASIR_TRY(auto parts, split_tensor(tensor, found->parts, name.substr(0, at), after, where));
    std::move(parts.begin(), parts.end(), std::back_inserter(tensors));
  }
  dir->tensors = std::move(tensors);
  return sort_tensors(dir->tensors, where);
}

}  // namespace kvasir
