// Implements the rules of quantize.h. Source of the mixes, the fallbacks and the tensors that are never quantised:
// ggml-org/llama.cpp, src/llama-quant.cpp.
#include "lab/quantize_types.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"
#include "lab/quantize.h"

namespace kvasir {
namespace {

// llama.cpp calls a file whose matrices are all q4_k "mostly Q4_K, small"; small, medium and large mixes are made of
// the same codec with rules.
constexpr std::array kFileTypes{
    FileType{"f16", 1, "f16"},        FileType{"bf16", 32, "bf16"},   FileType{"f32", 0, "f32"},
    FileType{"q8_0", 7, "q8_0"},      FileType{"q6_k", 18, "q6_k"},   FileType{"q5_k", 16, "q5_k"},
    FileType{"q5_k_m", 17, "q5_k"},   FileType{"q5_1", 9, "q5_1"},    FileType{"q5_0", 8, "q5_0"},
    FileType{"q4_k", 14, "q4_k"},     FileType{"q4_k_s", 14, "q4_k"}, FileType{"q4_k_m", 15, "q4_k"},
    FileType{"q4_1", 3, "q4_1"},      FileType{"q4_0", 2, "q4_0"},    FileType{"iq4_nl", 25, "iq4_nl"},
    FileType{"iq4_xs", 30, "iq4_xs"}, FileType{"mxfp4", 38, "q8_0"},  FileType{"q3_k", 11, "q3_k"},
    FileType{"q3_k_m", 12, "q3_k"},   FileType{"q3_k_l", 13, "q3_k"}, FileType{"q2_k", 10, "q2_k"}};

/// The layers for which a rule holds. spread: the first and the last eighth, and every third in between.
enum class In { all, first_two, first_four, first_sixteenth, first_eighth, spread, shared_kv };

struct Rule {
  std::string_view type, kind;
  In layers;
  std::string_view codec;
};

// The first rule that holds decides.
constexpr std::array kRules{
    Rule{"q2_k", "attn_v", In::shared_kv, "q4_k"},
    Rule{"q2_k", "attn_v", In::all, "q3_k"},
    Rule{"q2_k", "ffn_down", In::all, "q3_k"},
    Rule{"q2_k", "attn_output", In::all, "q3_k"},
    Rule{"q3_k_m", "attn_v", In::first_two, "q5_k"},
    Rule{"q3_k_m", "attn_v", In::all, "q4_k"},
    Rule{"q3_k_m", "ffn_down", In::first_sixteenth, "q5_k"},
    Rule{"q3_k_m", "ffn_down", In::all, "q4_k"},
    Rule{"q3_k_m", "attn_output", In::all, "q4_k"},
    Rule{"q3_k_m", "attn_qkv", In::all, "q4_k"},
    Rule{"q3_k_l", "attn_v", In::all, "q5_k"},
    Rule{"q3_k_l", "ffn_down", In::all, "q5_k"},
    Rule{"q3_k_l", "attn_output", In::all, "q5_k"},
    Rule{"q3_k_l", "attn_qkv", In::all, "q4_k"},
    Rule{"q4_k_s", "attn_v", In::first_four, "q5_k"},
    Rule{"q4_k_s", "ffn_down", In::first_eighth, "q5_k"},
    Rule{"q4_k_m", "attn_v", In::spread, "q6_k"},
    Rule{"q4_k_m", "ffn_down", In::spread, "q6_k"},
    Rule{"q4_k_m", "attn_qkv", In::all, "q5_k"},
    Rule{"q5_k_m", "attn_v", In::spread, "q6_k"},
    Rule{"q5_k_m", "ffn_down", In::spread, "q6_k"},
    Rule{"q5_k_m", "attn_qkv", In::all, "q6_k"},
    Rule{"iq4_nl", "attn_v", In::shared_kv, "q5_k"},
    Rule{"iq4_nl", "ffn_down", In::first_eighth, "q5_k"},
    Rule{"iq4_xs", "attn_v", In::shared_kv, "q5_k"},
    Rule{"iq4_xs", "ffn_down", In::first_eighth, "q5_k"},
};

/// The type for rows that are not whole blocks of a type.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSmaller{
    {{"iq4_xs", "iq4_nl"}, {"q2_k", "q4_0"}, {"q3_k", "q4_0"}, {"q4_k", "q5_0"}, {"q5_k", "q5_1"}, {"q6_k", "q8_0"}}};

constexpr int kLeastShared = 4;  // query heads per KV head from which attn_v is small
constexpr int kMixtralExperts = 8, k70BLayers = 80, k70BGroup = 8;

const Codec& codec(std::string_view name) { return *find_codec(name); }

bool fits(const Codec& type, int64_t cols) { return cols % type.block_elems == 0; }

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "blk.3.attn_q.weight" -> "attn_q.weight" and 3.
std::pair<std::string_view, int> kind_of(std::string_view name) {
  if (!name.starts_with("blk.")) return {name, 0};
  int layer = 0;
  const auto end = std::from_chars(name.data() + 4, name.data() + name.size(), layer).ptr;
  return {name.substr(std::min(name.size(), static_cast<size_t>(end - name.data()) + 1)), layer};
}

std::string_view without_ending(std::string_view name) {
  constexpr std::string_view kEnding = ".weight";
  return name.ends_with(kEnding) ? name.substr(0, name.size() - kEnding.size()) : name;
}

bool holds(In where, int layer, int layers, int group) {
  const int eighth = layers / 8;
  switch (where) {
    case In::all:
      return true;
    case In::first_two:
      return layer < 2;
    case In::first_four:
      return layer < 4;
    case In::first_sixteenth:
      return layer < layers / 16;
    case In::first_eighth:
      return layer < eighth;
    case In::spread:
      return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
    case In::shared_kv:
      return group >= kLeastShared;
  }
  return false;
}

}  // namespace

std::span<const FileType> file_types() { return kFileTypes; }

std::vector<std::string_view> quantize_types() {
  std::vector<std::string_view> names;
  for (const FileType& type : kFileTypes) names.push_back(type.name);
  return names;
}

Result<TypeChooser> TypeChooser::create(std::string_view type, const std::vector<std::string>& types,
                                        const ModelConfig& config) {
  const std::vector<std::string_view> known = quantize_types();
  const auto found = std::find(known.begin(), known.end(), type);
  if (found == known.end())
    return fail(Error::bad_argument, fmt::format("{} is not a type of weights to write", in_quotes(type)),
                "QuantizeOptions::type", fmt::format("{}", fmt::join(known, ", ")));
  TypeChooser chooser;
  chooser.type_ = &kFileTypes[static_cast<size_t>(found - known.begin())];
  chooser.facts_ = {config.layers, config.group(), config.experts.count, config.tied_head};
  for (const std::string& entry : types) {
    const size_t equals = entry.find('=');
    const Codec* codec = equals == entry.npos ? nullptr : find_codec(entry.substr(equals + 1));
    if (codec == nullptr || equals == 0)
      return fail(Error::bad_argument, fmt::format("{} is not NAME=TYPE", in_quotes(entry)), "QuantizeOptions::types",
                  "attn_v=q6_k, or output.weight=q8_0");
    chooser.named_[std::string(without_ending(std::string_view(entry).substr(0, equals)))] = {codec};
  }
  return chooser;
}

const Codec& TypeChooser::choose(std::string_view name, const std::vector<int64_t>& shape) {
  if (shape.size() == 1 || name.ends_with(".bias")) return codec_f32();  // biases of experts are matrices
  const Codec* const named = named_codec(name);
  if (named == nullptr) {
    if (codec(type_->codec).block_elems == 1) return codec(type_->codec);
    if (name == "position_embd.weight") return codec_f32();          // read by row, never multiplied
    if (name.find("ffn_gate_inp") != name.npos) return codec_f32();  // small, and it chooses a token's experts
  }
  const int64_t cols = shape.back();
  const Codec& wanted = named != nullptr ? *named : codec(matrix_type(name, shape));
  const Codec* type = &wanted;
  while (!fits(*type, cols)) {
    const auto smaller =
        std::find_if(kSmaller.begin(), kSmaller.end(), [&](const auto& s) { return s.first == type->name; });
    type = smaller != kSmaller.end() ? &codec(smaller->second) : &codec_f16();
  }
  if (type != &wanted)
    ++fallbacks_[fmt::format("{}: rows of {} are not whole blocks of {} ({}), so they are {}", kind_of(name).first,
                             cols, wanted.block_elems, wanted.name, type->name)];
  return *type;
}

// By its whole name, else by its kind; null: nobody named it.
const Codec* TypeChooser::named_codec(std::string_view name) {
  for (const std::string_view key : {without_ending(name), without_ending(kind_of(name).first)})
    if (const auto found = named_.find(std::string(key)); found != named_.end()) {
      found->second.used = true;
      return found->second.codec;
    }
  return nullptr;
}

std::string_view TypeChooser::matrix_type(std::string_view name, const std::vector<int64_t>& shape) const {
  // The matrix that makes the logits.
  if (name == "output.weight" || (name == "token_embd.weight" && facts_.tied_head))
    return type_->codec == "q8_0" ? "q8_0" : "q6_k";
  if (type_->name == "mxfp4") return shape.size() == 3 ? "mxfp4" : "q8_0";
  const auto [kind, layer] = kind_of(name);
  return name.starts_with("blk.") && kind.ends_with(".weight") ? by_rules(without_ending(kind), layer) : type_->codec;
}

std::string_view TypeChooser::by_rules(std::string_view kind, int layer) const {
  const bool mixes = std::any_of(kRules.begin(), kRules.end(), [&](const Rule& r) { return r.type == type_->name; });
  if (!mixes) return type_->codec;
  if (kind.ends_with("_exps")) kind.remove_suffix(5);
  if (facts_.experts == kMixtralExperts) {
    if (kind == "attn_v" || kind == "attn_k") return "q8_0";
    if (kind == "attn_output") return type_->name == "q5_k_m" || type_->name == "q3_k_l" ? type_->codec : "q5_k";
  }
  std::string_view chosen = type_->codec;
  for (const Rule& rule : kRules) {
    if (rule.type != type_->name || rule.kind != kind || !holds(rule.layers, layer, facts_.layers, facts_.group))
      continue;
    chosen = rule.codec;
    break;
  }
  const bool is_70b = facts_.layers == k70BLayers && facts_.group == k70BGroup;
  return is_70b && kind == "attn_v" && is_one_of(chosen, {"q3_k", "q4_k"}) ? "q5_k" : chosen;
}

Result<std::vector<std::string>> TypeChooser::finish() const {
  for (const auto& [name, named] : named_)
    if (!named.used)
      return fail(Error::bad_argument, fmt::format("the model has no matrix {}", in_quotes(name)),
                  "QuantizeOptions::types", "a name of GGUF: attn_v, ffn_down, blk.0.attn_q, token_embd, output");
  std::vector<std::string> lines;
  for (const auto& [line, count] : fallbacks_)
    lines.push_back(count == 1 ? line : fmt::format("{} ({} tensors)", line, count));
  return lines;
}

}  // namespace kvasir
