// Lists or refuses tensors that the family's table does not name.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "arch/unused.h"
#include "base/quote.h"

namespace kvasir {
namespace {

constexpr std::string_view kVision = "vision or sound tower", kNextTokens = "multi-token prediction",
                           kFrequencies = "RoPE's frequencies, which Kvasir computes";

struct NameRule {
  std::string_view text, why;
};

// Prefixes, after any "model." in files of transformers, and in GGUF files.
constexpr NameRule kBeginnings[] = {
    {"vision_tower.", kVision},
    {"vision_model.", kVision},
    {"visual.", kVision},
    {"image_newline", kVision},
    {"multi_modal_projector.", kVision},
    {"mm_projector.", kVision},
    {"vision_embed_tokens", kVision},
    {"embed_vision.", kVision},
    {"audio_tower.", kVision},
    {"embed_audio.", kVision},
    {"v.", kVision},
    {"a.", kVision},
    {"mm.", kVision},
    {"mtp.", kNextTokens},
    {"mtp_layers.", kNextTokens},
    {"nextn_predict_layers.", kNextTokens},
};
constexpr NameRule kEndings[] = {
    {"rotary_emb.inv_freq", kFrequencies},
    {"attn_rot_embd.weight", kFrequencies},
};

// The layer number in a tensor name: the number after "layers.", "h." or "blk.".
std::optional<int> layer_of(std::string_view name) {
  for (std::string_view before : {"layers.", "h.", "blk."}) {
    const size_t at = name.find(before);
    if (at == name.npos || (at > 0 && name[at - 1] != '.')) continue;
    int layer = 0;
    const char* begin = name.data() + at + before.size();
    const auto [end, error] = std::from_chars(begin, name.data() + name.size(), layer);
    if (error == std::errc() && end != name.data() + name.size() && *end == '.') return layer;
  }
  return std::nullopt;
}

// Why the tensor changes no result; empty if it may. Files can contain more than the language model's layers.
std::string_view reason(const Family& family, const ModelConfig& config, std::string_view name) {
  for (std::string_view ending : family.buffers)
    if (name.ends_with(ending)) return "a mask, which Kvasir computes";
  for (const NameRule& rule : kEndings)
    if (name.ends_with(rule.text)) return rule.why;
  if (const auto layer = layer_of(name); layer && *layer >= config.layers && *layer < config.layers + config.mtp_layers)
    return kNextTokens;
  if (name.starts_with("model.")) name.remove_prefix(6);
  for (const NameRule& rule : kBeginnings)
    if (name.starts_with(rule.text)) return rule.why;
  return {};
}

std::vector<const TensorSpec*> specs_of(const TensorTable& table) {
  std::vector<const TensorSpec*> specs;
  const auto add = [&specs](const std::vector<TensorSpec>& some) {
    for (const TensorSpec& spec : some) specs.push_back(&spec);
  };
  add(table.embed);
  for (const auto& layer : table.layers) add(layer);
  add(table.head);
  return specs;
}

// A file of a tied model may contain a head too. It must equal the embedding, or the file contradicts itself.
Result<bool> repeats_embedding(const TensorInfo& tensor, const TensorInfo& head, const TensorDir& dir,
                               const std::string& where) {
  const bool plain = !tensor.scattered && !head.scattered;
  const bool same = plain && tensor.dtype == head.dtype && tensor.shape == head.shape &&
                    std::ranges::equal(dir.data(tensor), dir.data(head));
  if (same) return true;
  return fail(Error::damaged,
              fmt::format("the head is tied to the embedding (\"tie_word_embeddings\"), but {} differs from it",
                          in_quotes(tensor.name_in_file())),
              where, "the config.json that belongs to these weights");
}

tl::unexpected<Error> refuse(const Family& family, const ModelConfig& config, const TensorInfo& tensor,
                             const std::string& where) {
  const std::string name = in_quotes(tensor.name_in_file());
  if (const auto layer = layer_of(tensor.name_in_file()); layer && *layer >= config.layers)
    return fail(
        Error::damaged,
        fmt::format("tensor {} is of layer {}, and the configuration has {} layers", name, *layer, config.layers),
        where, "the configuration that belongs to these weights");
  return fail(
      Error::unsupported,
      fmt::format("tensor {} is not part of a {} model that Kvasir runs, and may change results", name, family.name),
      where, "a model without it");
}

}  // namespace

Result<std::vector<Ignored>> unused_tensors(const Family& family, const ModelConfig& config, const TensorDir& dir,
                                            const std::string& where) {
  const TensorTable table = family.tensor_table(config);
  std::unordered_set<const TensorInfo*> used;
  const TensorInfo* head = nullptr;
  for (const TensorSpec* spec : specs_of(table)) {
    KVASIR_TRY(head, find_tensor(family, *spec, dir, where));  // the head's matrix is the last spec
    used.insert(head);
  }
  std::vector<Ignored> ignored;
  for (const TensorInfo& tensor : dir.tensors) {
    if (used.contains(&tensor)) continue;
    std::string_view why = reason(family, config, tensor.name);
    if (why.empty()) why = reason(family, config, tensor.name_in_file());
    if (why.empty() && config.tied_head && tensor.name.ends_with("lm_head.weight")) {
      KVASIR_CHECK(repeats_embedding(tensor, *head, dir, where));
      why = "the embedding again, to which the head is tied";
    }
    if (why.empty()) return refuse(family, config, tensor, where);
    const bool noted = why == kVision || why == kNextTokens;
    ignored.push_back({tensor.name_in_file(), std::string(why), noted});
  }
  return ignored;
}

}  // namespace kvasir
