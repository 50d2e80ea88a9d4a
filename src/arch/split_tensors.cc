// Splits tensors along their rows, and joins MXFP4's codes and scales.
#include "arch/split_tensors.h"

#include <algorithm>
#include <optional>

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
  if (!part.scattered) {
    part.offset += part.bytes * static_cast<uint64_t>(i);
    return part;
  }
  const uint64_t first = part.bytes / part.scattered->bytes * static_cast<uint64_t>(i);
  part.offset += first * part.scattered->step;
  part.scattered->scales += first * part.scattered->scales_step;
  return part;
}

// Rows i, i + n, i + 2n, ... of the slowest dimension.
TensorInfo every_nth(const TensorInfo& tensor, int64_t i, int64_t n) {
  TensorInfo part = tensor;
  part.stored_name = tensor.name_in_file();
  const uint64_t row = tensor.bytes / static_cast<uint64_t>(tensor.shape.front());
  if (!part.scattered) part.scattered = ScatteredRows{.bytes = row, .step = row};
  ScatteredRows& rows = *part.scattered;
  part.offset += rows.step * static_cast<uint64_t>(i);
  rows.scales += rows.scales_step * static_cast<uint64_t>(i);
  rows.step *= static_cast<uint64_t>(n);
  rows.scales_step *= static_cast<uint64_t>(n);
  part.shape.front() /= n;
  part.bytes /= static_cast<uint64_t>(n);
  return part;
}

std::string numbered(std::string_view name, int64_t expert) {
  const size_t star = name.find('*');
  if (star == name.npos) return std::string(name);
  return fmt::format("{}{}{}", name.substr(0, star), expert, name.substr(star + 1));
}

/// The text before and after a part of a name.
struct Around {
  std::string_view before, after;
};

// Splits a name that ends in `part`, optionally followed by ".weight" or the like; empty for other names.
std::optional<Around> around(std::string_view name, std::string_view part) {
  const size_t at = part.empty() ? name.npos : name.rfind(part);
  if (at == name.npos) return std::nullopt;
  const std::string_view after = name.substr(at + part.size());
  if (!after.empty() && after.front() != '.') return std::nullopt;
  return Around{name.substr(0, at), after};
}

std::string name_around(const Around& around, std::string_view part) {
  return std::string(around.before).append(part).append(around.after);
}

tl::unexpected<Error> refuse_lone(const TensorInfo& tensor, std::string_view missing, const std::string& where) {
  return fail(Error::damaged,
              fmt::format("tensor {} is present without {}", in_quotes(tensor.name_in_file()), in_quotes(missing)),
              where, "a complete checkpoint of this architecture");
}

// Joins an MXFP4 tensor stored as codes and scales into one.
Result<TensorInfo> join_planes(const TensorInfo& codes, const TensorInfo& scales, const std::string& where) {
  constexpr std::string_view kBytes = "U8";
  const Codec& codec = *find_codec("mxfp4");
  std::vector<int64_t> wanted = scales.shape;
  wanted.push_back(codec.block_bytes - 1);
  const bool some = std::ranges::all_of(wanted, [](int64_t dim) { return dim > 0; });
  if (codes.dtype != kBytes || scales.dtype != kBytes || scales.shape.size() < 2 || codes.shape != wanted || !some)
    return fail(Error::damaged,
                fmt::format("tensor {} ({} [{}]) and its scales {} ({} [{}]) do not fit together as MXFP4",
                            in_quotes(codes.name_in_file()), codes.dtype, fmt::join(codes.shape, ", "),
                            in_quotes(scales.name_in_file()), scales.dtype, fmt::join(scales.shape, ", ")),
                where, "a complete checkpoint of this architecture");
  const auto blocks = static_cast<uint64_t>(scales.shape.back()), block = static_cast<uint64_t>(codec.block_bytes);
  TensorInfo joined = codes;
  joined.codec = &codec;
  joined.dtype = codec.file_name;
  joined.shape = scales.shape;
  joined.shape.back() *= codec.block_elems;
  joined.bytes = codes.bytes + scales.bytes;
  joined.scattered = ScatteredRows{.bytes = blocks * block,
                                   .step = blocks * (block - 1),
                                   .scales_file = scales.file,
                                   .scales = scales.offset,
                                   .scales_step = blocks};
  return joined;
}

// Returns the parts of one tensor of `dir`.
Result<std::vector<TensorInfo>> parts_of(const TensorInfo& tensor, const TensorSplit& split, const Around& name,
                                         const TensorDir& dir, const std::string& where) {
  if (!split.refused.empty())
    return fail(Error::unsupported, fmt::format("tensor {}: {}", in_quotes(tensor.name_in_file()), split.refused),
                where, "the model as it was published, or as GGUF");
  const std::string_view after = name.after.empty() ? split.ending : name.after;
  if (split.scales.empty()) return split_tensor(tensor, split, name.before, after, where);
  const std::string other = name_around(name, split.scales);
  const TensorInfo* scales = dir.find(other);
  if (scales == nullptr) return refuse_lone(tensor, other, where);
  KVASIR_TRY(const TensorInfo joined, join_planes(tensor, *scales, where));
  return split_tensor(joined, split, name.before, after, where);
}

// Whether the tensor contains the scales of another one, which reads them. Errors: that other tensor is missing.
Result<bool> is_scales(const TensorInfo& tensor, std::span<const TensorSplit> splits, const TensorDir& dir,
                       const std::string& where) {
  for (const TensorSplit& split : splits) {
    const auto name = around(tensor.name, split.scales);
    if (!name) continue;
    const std::string codes = name_around(*name, split.name);
    if (dir.find(codes) == nullptr) return refuse_lone(tensor, codes, where);
    return true;
  }
  return false;
}

Result<void> append_parts(const TensorInfo& tensor, std::span<const TensorSplit> splits, const TensorDir& dir,
                          const std::string& where, std::vector<TensorInfo>* to) {
  for (const TensorSplit& split : splits) {
    const auto name = around(tensor.name, split.name);
    if (!name) continue;
    KVASIR_TRY(auto parts, parts_of(tensor, split, *name, dir, where));
    std::move(parts.begin(), parts.end(), std::back_inserter(*to));
    return {};
  }
  KVASIR_TRY(const bool scales, is_scales(tensor, splits, dir, where));
  if (!scales) to->push_back(tensor);
  return {};
}

}  // namespace

Result<std::vector<TensorInfo>> split_tensor(const TensorInfo& tensor, const TensorSplit& split,
                                             std::string_view before, std::string_view after,
                                             const std::string& where) {
  const std::span<const std::string_view> parts = split.parts;
  const bool by_expert = parts.front().find('*') != std::string_view::npos;
  const auto n = static_cast<int64_t>(parts.size());
  const size_t rank = tensor.shape.size(), rows = by_expert ? 1 : 0;
  const bool even = rank > rows && tensor.shape[rows] % n == 0 && tensor.shape.front() > 0;
  if (!even || (split.by_turns && tensor.shape[rows] == 0))
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
      TensorInfo& part = all.emplace_back(split.by_turns ? every_nth(whole, i, n) : slice(whole, i, n));
      part.name = fmt::format("{}{}{}", before, numbered(parts[static_cast<size_t>(i)], e), after);
    }
  }
  return all;
}

Result<void> split_tensors(std::span<const TensorSplit> splits, TensorDir* dir, const std::string& where) {
  if (splits.empty()) return {};
  std::vector<TensorInfo> tensors;
  for (const TensorInfo& tensor : dir->tensors) KVASIR_CHECK(append_parts(tensor, splits, *dir, where, &tensors));
  dir->tensors = std::move(tensors);
  return sort_tensors(dir->tensors, where);
}

}  // namespace kvasir
