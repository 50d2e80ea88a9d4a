// Checks and parsing that families share, except RoPE (rope_config.cc).
#include "arch/config.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "math/functions_f64.h"

namespace kvasir {
namespace {

float usual_scale(int head_dim) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))); }

}  // namespace

float ModelConfig::attention_scale() const { return score_scale != 0 ? score_scale : usual_scale(head_dim); }

float ModelConfig::q_temperature(int position) const {
  if (q_temperature_beta == 0) return 1.0f;
  return static_cast<float>(1.0 + q_temperature_beta * log_f64(1.0 + position / q_temperature_ctx));
}

namespace {

std::string canonical_rope(const RopeConfig& rope, int head_dim) {
  const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
  std::string text = fmt::format("rope {:x} {} {:x}", bits(rope.theta), rope.interleaved, bits(rope.linear));
  for (float factor : rope.factors) text += fmt::format(" {:x}", std::bit_cast<uint32_t>(factor));
  if (rope.channels != head_dim) text += fmt::format(" channels {}", rope.channels);
  if (rope.magnitude != 1.0f) text += fmt::format(" magnitude {:x}", std::bit_cast<uint32_t>(rope.magnitude));
  if (const auto& yarn = rope.yarn)
    text += fmt::format(" yarn {:x} {:x} {:x} {} {}", bits(yarn->factor), bits(yarn->beta_fast), bits(yarn->beta_slow),
                        yarn->original_ctx, yarn->rounded);
  if (!rope.long_factors.empty()) text += fmt::format(" past {}:", rope.original_ctx);
  for (float factor : rope.long_factors) text += fmt::format(" {:x}", std::bit_cast<uint32_t>(factor));
  return text + '\n';
}

// Numbers that most models leave at the usual value: one line for each that differs.
std::string canonical_rest(const ModelConfig& c) {
  std::string text;
  const auto number = [&text](std::string_view name, float x, float usual) {
    if (x != usual) text += fmt::format("{} {:x}\n", name, std::bit_cast<uint32_t>(x));
  };
  if (c.activation != Activation::silu) text += fmt::format("activation {}\n", static_cast<int>(c.activation));
  number("score_scale", c.attention_scale(), usual_scale(c.head_dim));
  number("score_cap", c.score_cap, 0), number("logit_cap", c.logit_cap, 0);
  number("embedding_scale", c.embedding_scale, 1), number("residual_scale", c.residual_scale, 1);
  number("logit_scale", c.logit_scale, 1);
  if (c.q_temperature_beta != 0)
    text += fmt::format("q_temperature {:x} {}\n", std::bit_cast<uint64_t>(c.q_temperature_beta), c.q_temperature_ctx);
  if (const ExpertConfig& e = c.experts; e.count != 0)
    text += fmt::format("experts {} used {} ffn {} shared {} gate {} normalised {} scale {:x} groups {} {} layers {}\n",
                        e.count, e.used, e.ffn, e.shared_ffn, static_cast<int>(e.gate), e.normalised,
                        std::bit_cast<uint32_t>(e.scale), e.groups, e.groups_used, fmt::join(e.layers, " "));
  number("expert_nearness", c.experts.nearness, 0);
  if (!c.parallel_residual) text += "parallel_residual false\n";
  if (!c.rope_kinds.empty()) text += fmt::format("rope_kinds {}\n", fmt::join(c.rope_kinds, " "));
  return text;
}

}  // namespace

bool ModelConfig::has_extras() const { return !canonical_rest(*this).empty(); }

std::string ModelConfig::canonical() const {
  std::string text = fmt::format(
      "family {}\nlayers {}\nhidden {}\nheads {}\nkv_heads {}\nhead_dim {}\nffn {}\nvocab {}\nnorm_eps {:08x}\n"
      "tied {}\nqkv_bias {}\no_bias {}\nmlp_bias {}\n",
      family, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, std::bit_cast<uint32_t>(norm_eps), tied_head,
      qkv_bias, o_bias, mlp_bias);
  for (const RopeConfig& rope : ropes) text += canonical_rope(rope, head_dim);
  return text + canonical_rest(*this);
}

Result<void> check_config(const ModelConfig& c, const std::string& where) {
  if (c.head_dim < 1) return fail(Error::damaged, fmt::format("{} channels for {} heads", c.hidden, c.heads), where);
  if (c.heads % c.kv_heads != 0)
    return fail(Error::damaged, fmt::format("{} query heads cannot share {} KV heads evenly", c.heads, c.kv_heads),
                where, "a config whose head counts divide");
  for (const RopeConfig& rope : c.ropes)
    if (rope.channels % 2 != 0 || rope.channels < 2 || rope.channels > c.head_dim)
      return fail(Error::damaged,
                  fmt::format("{} of the {} channels of a head cannot be rotated in pairs", rope.channels, c.head_dim),
                  where, "an even number of channels");
  for (int id : c.eos)
    if (id >= c.vocab)
      return fail(Error::damaged, fmt::format("end-of-text id {} is past the vocabulary of {}", id, c.vocab), where);
  if (c.bos && *c.bos >= c.vocab)
    return fail(Error::damaged, fmt::format("beginning-of-text id {} is past the vocabulary of {}", *c.bos, c.vocab),
                where);
  return {};
}

namespace {

// transformers refuses these models too: null does not mean the default.
Result<void> refuse_nulls(const ConfigView& view, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys)
    if (view.is_null(key))
      return fail(Error::damaged, fmt::format("\"{}\" is null, expected a number", key), view.where());
  return {};
}

// Null means "as many as query heads"; an absent key means the model type's own default.
int default_kv_heads(const ConfigView& view, const DecoderDefaults& defaults, int heads) {
  return defaults.kv_heads == 0 || view.is_null("num_key_value_heads") ? heads : defaults.kv_heads;
}

}  // namespace

Result<Activation> parse_activation(const ConfigView& view, std::string_view fallback) {
  constexpr std::pair<std::string_view, Activation> kNames[] = {{"silu", Activation::silu},
                                                                {"swish", Activation::silu},
                                                                {"gelu_new", Activation::gelu_tanh},
                                                                {"gelu_fast", Activation::gelu_tanh},
                                                                {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                {"gelu", Activation::gelu_erf},
                                                                {"relu2", Activation::relu_squared}};
  KVASIR_TRY(const std::string old_key, view.get_string_or("hidden_act", std::string(fallback)));
  KVASIR_TRY(const std::string act, view.get_string_or("hidden_activation", old_key));
  for (const auto& [name, activation] : kNames)
    if (name == act) return activation;
  return fail(Error::unsupported, "hidden_act \"" + act + "\" is not supported", view.where(), "a model with silu");
}

bool from_gguf(const ConfigView& view) { return view.has(kGgufSparseBiases); }

Result<ModelConfig> parse_decoder_config(const ConfigView& view, std::string_view family,
                                         const DecoderDefaults& defaults) {
  ModelConfig c;
  c.family = family;
  KVASIR_CHECK(refuse_nulls(view, {defaults.eps_key, "rope_theta", "max_position_embeddings"}));
  const auto read = [&](const char* key, int64_t max, int* out) -> Result<void> {
    KVASIR_TRY(const int64_t value, view.get_int_or(key, *out, 1, max));
    if (value == 0) return fail(Error::damaged, fmt::format("\"{}\" is missing", key), view.where());
    *out = static_cast<int>(value);
    return {};
  };
  c.heads = defaults.heads, c.vocab = defaults.vocab;
  KVASIR_CHECK(read("hidden_size", 1 << 20, &c.hidden));
  KVASIR_CHECK(read("num_hidden_layers", 4096, &c.layers));
  KVASIR_CHECK(read("num_attention_heads", 4096, &c.heads));
  KVASIR_CHECK(read("intermediate_size", 1 << 22, &c.ffn));
  KVASIR_CHECK(read("vocab_size", 1 << 22, &c.vocab));
  c.kv_heads = default_kv_heads(view, defaults, c.heads);
  KVASIR_CHECK(read("num_key_value_heads", 4096, &c.kv_heads));
  const bool own_width = view.has("head_dim") || (defaults.head_dim != 0 && !view.is_null("head_dim"));
  if (!own_width && c.hidden % c.heads != 0)
    return fail(Error::damaged, fmt::format("{} channels do not divide into {} heads", c.hidden, c.heads),
                view.where());
  c.head_dim = own_width && defaults.head_dim != 0 ? defaults.head_dim : c.hidden / c.heads;
  KVASIR_CHECK(read("head_dim", 1024, &c.head_dim));
  c.max_ctx = defaults.max_ctx;
  KVASIR_CHECK(read("max_position_embeddings", 1 << 28, &c.max_ctx));
  KVASIR_TRY(const double eps, view.get_number_or(defaults.eps_key, defaults.norm_eps, 0.0, 1.0));
  c.norm_eps = static_cast<float>(eps);
  KVASIR_TRY(c.activation, parse_activation(view, defaults.activation));
  KVASIR_TRY(c.tied_head, view.get_bool_or("tie_word_embeddings", defaults.tied_head));
  KVASIR_TRY(c.ropes, parse_ropes(view, c.head_dim, c.max_ctx, defaults.theta));
  KVASIR_TRY(const int64_t mtp_layers, view.get_int_or("num_nextn_predict_layers", 0, 0, 64));
  c.mtp_layers = static_cast<int>(mtp_layers);
  KVASIR_CHECK(parse_special_ids(view, &c));
  KVASIR_CHECK(check_config(c, view.where()));
  return c;
}

namespace {

// Which layers have a window according to the configuration; empty if it does not say.
Result<std::vector<bool>> sliding_layers(const ConfigView& view, int layers) {
  KVASIR_TRY(const auto types, view.get_strings_or_empty("layer_types"));
  KVASIR_TRY(const auto pattern, view.get_ints_or_empty(kGgufWindowPattern));
  std::vector<bool> slides;
  for (const std::string& type : types) {
    if (type != "sliding_attention" && type != "full_attention")
      return fail(Error::unsupported, fmt::format("layer {} has \"{}\", which is not supported", slides.size(), type),
                  view.where(), "layers of sliding_attention and full_attention");
    slides.push_back(type == "sliding_attention");
  }
  if (types.empty()) slides.assign(pattern.begin(), pattern.end());
  if (!slides.empty() && slides.size() != static_cast<size_t>(layers))
    return fail(Error::damaged,
                fmt::format("the attention of {} layers is described, the model has {}", slides.size(), layers),
                view.where());
  return slides;
}

}  // namespace

namespace {

Result<std::vector<int>> windows_from(const ConfigView& view, int layers, int64_t window, int64_t first) {
  KVASIR_TRY(const std::vector<bool> slides, sliding_layers(view, layers));
  if (window == 0 && std::find(slides.begin(), slides.end(), true) != slides.end())
    return fail(Error::damaged, "layers have a window whose size the configuration does not give", view.where(),
                "a configuration with \"sliding_window\"");
  if (window == 0) return std::vector<int>();
  std::vector<int> windows(static_cast<size_t>(layers), static_cast<int>(window));
  std::fill_n(windows.begin(), std::min<int64_t>(first, layers), 0);
  for (size_t l = 0; l < slides.size(); ++l) windows[l] = slides[l] ? static_cast<int>(window) : 0;
  return windows;
}

}  // namespace

Result<std::vector<int>> windows_by_layer(const ConfigView& view, int layers, int64_t window, int64_t first) {
  if (view.has(kGgufWindowStep))
    return fail(Error::unsupported, "\"attention.sliding_window_pattern\" is not a list of layers", view.where());
  return windows_from(view, layers, window, first);
}

Result<std::vector<int>> stepped_windows(const ConfigView& view, int layers, int64_t window, int64_t usual_step) {
  KVASIR_TRY(std::vector<bool> slides, sliding_layers(view, layers));
  KVASIR_TRY(std::vector<int> windows, windows_from(view, layers, window, 0));
  KVASIR_TRY(const int64_t step, view.get_int_or(kGgufWindowStep, usual_step, 1, 4096));
  if (slides.empty())
    for (size_t l = 0; l < windows.size(); ++l)
      if (step > 0 && static_cast<int64_t>(l) % step == step - 1) windows[l] = 0;
  return windows;
}

void set_windows(std::vector<int> windows, ModelConfig* c) {
  c->windows = std::move(windows);
  if (c->ropes.size() < 2) return;
  c->rope_kinds.assign(static_cast<size_t>(c->layers), 0);
  for (size_t l = 0; l < c->windows.size(); ++l) c->rope_kinds[l] = c->windows[l] != 0 ? 1 : 0;
}

Result<std::vector<int>> parse_switched_windows(const ConfigView& view, int layers) {
  KVASIR_TRY(const bool used, view.get_bool_or("use_sliding_window", false));
  const bool none = !used || view.is_null("sliding_window");  // null means no window; absent means the default, 4096
  KVASIR_TRY(const int64_t window, none ? Result<int64_t>(0) : view.get_int_or("sliding_window", 4096, 1, 1 << 28));
  if (none) return windows_by_layer(view, layers, 0);
  if (view.has("layer_types")) return windows_by_layer(view, layers, window);
  KVASIR_TRY(const int64_t first, view.get_int_or("max_window_layers", 28, 0, 1 << 28));  // transformers' default
  return windows_by_layer(view, layers, window, first);
}

Result<void> parse_special_ids(const ConfigView& view, ModelConfig* config) {
  constexpr int64_t kMaxId = 1 << 24;
  KVASIR_TRY(const auto eos, view.get_ints_or_empty("eos_token_id"));
  for (int64_t id : eos) {
    if (id == -1) continue;  // in some files -1 means none
    if (id < 0 || id > kMaxId)
      return fail(Error::damaged, fmt::format("\"eos_token_id\" is {}, allowed 0..{}", id, kMaxId), view.where());
    config->eos.push_back(static_cast<int>(id));
  }
  KVASIR_TRY(const auto bos, view.get_ints_or_empty("bos_token_id"));
  if (bos.empty() || bos[0] == -1) return {};
  if (bos[0] < 0 || bos[0] > kMaxId)
    return fail(Error::damaged, fmt::format("\"bos_token_id\" is {}, allowed 0..{}", bos[0], kMaxId), view.where());
  config->bos = static_cast<int>(bos[0]);
  return {};
}

}  // namespace kvasir
