// The registry of families, and the lookups in it.
#include "arch/family.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvasir {

#define KVASIR_ENTRY(name) extern const Family family_##name;
#include "generated/families.inc"
#undef KVASIR_ENTRY

CacheShape uniform_cache(const ModelConfig& c) {
  CacheShape shape{.layers = c.layers, .kv_heads = c.kv_heads, .head_dim = c.head_dim, .max_ctx = c.max_ctx};
  shape.windows = c.windows;
  return shape;
}

std::span<const Family* const> families() {
#define KVASIR_ENTRY(name) &family_##name,
  static const Family* const list[] = {
#include "generated/families.inc"
  };
#undef KVASIR_ENTRY
  return list;
}

namespace {

// Fills in the numbers that "text_config" leaves out, with transformers' defaults of the text model.
void set_defaults(ConfigView& text) {
  const auto family = find_family(text);
  if (!family || text.has("hidden_size")) return;
  for (const auto& [key, value] : (*family)->text_defaults)
    if (!text.has(key)) text.set(key, value);
}

}  // namespace

ConfigView text_config(const ConfigView& view) {
  auto text = view.object("text_config");
  if (!text) return view;
  set_defaults(*text);
  text->complete_from(view, {"eos_token_id", "bos_token_id", "tie_word_embeddings", "torch_dtype", "dtype"});
  return *text;
}

Result<const Family*> find_family(const ConfigView& view) {
  KVASIR_TRY(const std::string type, view.get_string("model_type"));
  std::vector<std::string_view> names;
  for (const Family* family : families())
    for (std::string_view alias : family->aliases) {
      if (alias == type) return family;
      names.push_back(alias);
    }
  return fail(Error::unsupported, fmt::format("model_type \"{}\" is not supported", type), view.where(),
              fmt::format("a model of type {}", fmt::join(names, ", ")));
}

const GgufNames* find_gguf_names(std::string_view arch) {
  for (const Family* family : families())
    if (family->gguf.has_arch(arch)) return &family->gguf;
  return nullptr;
}

namespace {

// Prefixes that models of text and images put before their language model; the first is none.
constexpr std::string_view kOuterPrefixes[] = {"", "language_model.", "model.language_model."};

// Drops leading dimensions of 1: converters write a single row as a matrix or as a vector.
std::span<const int64_t> without_ones(std::span<const int64_t> shape) {
  while (shape.size() > 1 && shape.front() == 1) shape = shape.subspan(1);
  return shape;
}

}  // namespace

Result<const TensorInfo*> find_tensor(const Family& family, const TensorSpec& spec, const TensorDir& dir,
                                      const std::string& where) {
  const TensorInfo* info = nullptr;
  if (!spec.present) return info;
  for (std::string_view outer : kOuterPrefixes)
    for (std::string_view prefix : family.prefixes)
      if (info == nullptr) info = dir.find(std::string(outer).append(prefix).append(spec.name));
  if (info == nullptr && spec.optional) return info;
  if (info == nullptr)
    return fail(Error::damaged, fmt::format("tensor \"{}\" is missing", spec.name), where,
                "a complete checkpoint of this architecture");
  std::vector<int64_t> shape = spec.shape;
  if (info->transposed) std::reverse(shape.begin(), shape.end());
  if (!std::ranges::equal(without_ones(info->shape), without_ones(shape)))
    return fail(Error::damaged,
                fmt::format("tensor \"{}\" has shape [{}], the config asks for [{}]", info->name,
                            fmt::join(info->shape, ", "), fmt::join(shape, ", ")),
                where, "the config.json that belongs to these weights");
  return info;
}

}  // namespace kvasir
