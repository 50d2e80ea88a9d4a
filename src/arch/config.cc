// Checks and parsing that families share.
#include "arch/config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "math/functions_f64.h"

namespace kvasir {
namespace {

// What Llama 3.1 divides a frequency by: long waves by `factor`, short ones by 1, those between by a blend
// (arXiv:2407.21783 and the reference implementation's smooth factor).
struct Llama3Scaling {
  double factor = 1.0, low_freq_factor = 1.0, high_freq_factor = 4.0;
  int64_t original_ctx = 0;

  double divisor(double frequency) const {
    const auto ctx = static_cast<double>(original_ctx);
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    if (wavelength < ctx / high_freq_factor) return 1.0;
    if (wavelength > ctx / low_freq_factor) return factor;
    const double smooth = (ctx / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
    return 1.0 / ((1.0 - smooth) / factor + smooth);
  }
};

Result<Llama3Scaling> parse_llama3(const ConfigView& scaling) {
  Llama3Scaling s;
  KVASIR_TRY(s.factor, scaling.get_number("factor", 1.0, 1e6));
  KVASIR_TRY(s.low_freq_factor, scaling.get_number("low_freq_factor", 1e-3, 1e6));
  KVASIR_TRY(s.high_freq_factor, scaling.get_number("high_freq_factor", 1e-3, 1e6));
  KVASIR_TRY(s.original_ctx, scaling.get_int("original_max_position_embeddings", 1, 1 << 28));
  if (s.high_freq_factor <= s.low_freq_factor)
    return fail(fmt::format("llama3 RoPE scaling needs high_freq_factor {} above low_freq_factor {}",
                            s.high_freq_factor, s.low_freq_factor),
                scaling.where());
  return s;
}

// The divisors themselves, under a name of our own: what a GGUF file has instead of a kind and its numbers.
Result<std::vector<float>> parse_factors(const ConfigView& scaling, int head_dim) {
  KVASIR_TRY(const auto numbers, scaling.get_numbers_or_empty("factors"));
  if (numbers.size() != static_cast<size_t>(head_dim / 2))
    return fail(fmt::format("{} RoPE factors for a head of {} channels", numbers.size(), head_dim), scaling.where());
  std::vector<float> factors;
  for (double number : numbers) {
    if (!(number > 1e-6 && number < 1e6))
      return fail(fmt::format("a RoPE factor is {}, allowed 1e-6..1e6", number), scaling.where());
    factors.push_back(static_cast<float>(number));
  }
  return factors;
}

}  // namespace

std::vector<double> RopeConfig::frequencies(int head_dim) const {
  std::vector<double> out;
  for (int i = 0; i < head_dim / 2; ++i) {
    const double factor = factors.empty() ? 1.0 : static_cast<double>(factors[static_cast<size_t>(i)]);
    out.push_back(pow_f64(theta, -2.0 * i / head_dim) / linear / factor);
  }
  return out;
}

float ModelConfig::attention_scale() const {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

std::string ModelConfig::canonical() const {
  std::string text = fmt::format(
      "family {}\nlayers {}\nhidden {}\nheads {}\nkv_heads {}\nhead_dim {}\nffn {}\nvocab {}\nnorm_eps {:08x}\n"
      "tied {}\nqkv_bias {}\no_bias {}\nmlp_bias {}\n",
      family, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, std::bit_cast<uint32_t>(norm_eps), tied_head,
      qkv_bias, o_bias, mlp_bias);
  if (rope) {
    text += fmt::format("rope {:x} {} {:x}", std::bit_cast<uint64_t>(rope->theta), rope->interleaved,
                        std::bit_cast<uint64_t>(rope->linear));
    for (float factor : rope->factors) text += fmt::format(" {:x}", std::bit_cast<uint32_t>(factor));
    text += '\n';
  }
  return text;
}

Result<void> check_config(const ModelConfig& c, const std::string& where) {
  if (c.head_dim < 1) return fail(fmt::format("{} channels for {} heads", c.hidden, c.heads), where);
  if (c.heads % c.kv_heads != 0)
    return fail(fmt::format("{} query heads cannot share {} KV heads evenly", c.heads, c.kv_heads), where,
                "a config whose head counts divide");
  if (c.rope && c.head_dim % 2 != 0)
    return fail(fmt::format("a head of {} channels cannot be rotated in pairs", c.head_dim), where, "an even head_dim");
  for (int id : c.eos)
    if (id >= c.vocab) return fail(fmt::format("end-of-text id {} is past the vocabulary of {}", id, c.vocab), where);
  if (c.bos && *c.bos >= c.vocab)
    return fail(fmt::format("beginning-of-text id {} is past the vocabulary of {}", *c.bos, c.vocab), where);
  return {};
}

Result<ModelConfig> parse_decoder_config(const ConfigView& view, std::string_view family) {
  ModelConfig c;
  c.family = family;
  const auto read = [&](const char* key, int64_t max, int* out) -> Result<void> {
    KVASIR_TRY(const int64_t value, view.get_int_or(key, *out, 1, max));
    if (value == 0) return fail(fmt::format("\"{}\" is missing", key), view.where());
    *out = static_cast<int>(value);
    return {};
  };
  KVASIR_CHECK(read("hidden_size", 1 << 20, &c.hidden));
  KVASIR_CHECK(read("num_hidden_layers", 4096, &c.layers));
  KVASIR_CHECK(read("num_attention_heads", 4096, &c.heads));
  KVASIR_CHECK(read("intermediate_size", 1 << 22, &c.ffn));
  KVASIR_CHECK(read("vocab_size", 1 << 22, &c.vocab));
  c.kv_heads = c.heads;
  KVASIR_CHECK(read("num_key_value_heads", 4096, &c.kv_heads));
  if (!view.has("head_dim") && c.hidden % c.heads != 0)
    return fail(fmt::format("{} channels do not divide into {} heads", c.hidden, c.heads), view.where());
  c.head_dim = c.hidden / c.heads;
  KVASIR_CHECK(read("head_dim", 1024, &c.head_dim));
  c.max_ctx = 2048;
  KVASIR_CHECK(read("max_position_embeddings", 1 << 28, &c.max_ctx));
  KVASIR_TRY(const double eps, view.get_number_or("rms_norm_eps", 1e-6, 0.0, 1.0));
  c.norm_eps = static_cast<float>(eps);
  KVASIR_TRY(const std::string act, view.get_string_or("hidden_act", "silu"));
  if (act != "silu") return fail("hidden_act \"" + act + "\" is not supported", view.where(), "a model with silu");
  KVASIR_TRY(c.tied_head, view.get_bool_or("tie_word_embeddings", false));
  KVASIR_TRY(c.rope, parse_rope(view, c.head_dim));
  KVASIR_CHECK(parse_special_ids(view, &c));
  KVASIR_CHECK(check_config(c, view.where()));
  return c;
}

Result<std::vector<int>> windows_by_layer(const ConfigView& view, int layers, int64_t window, int64_t first) {
  if (window == 0) return std::vector<int>();
  std::vector<int> windows(static_cast<size_t>(layers), static_cast<int>(window));
  std::fill_n(windows.begin(), std::min<int64_t>(first, layers), 0);
  KVASIR_TRY(const auto types, view.get_strings_or_empty("layer_types"));
  KVASIR_TRY(const auto pattern, view.get_ints_or_empty("sliding_window_pattern"));
  const size_t said = types.empty() ? pattern.size() : types.size();
  if (said == 0) return windows;
  if (said != windows.size())
    return fail(fmt::format("attention of {} layers is described, there are {}", said, layers), view.where());
  for (size_t l = 0; l < said; ++l) {
    if (!types.empty() && types[l] != "sliding_attention" && types[l] != "full_attention")
      return fail(fmt::format("layer {} has \"{}\", which is not supported", l, types[l]), view.where(),
                  "layers of sliding_attention and full_attention");
    const bool slides = types.empty() ? pattern[l] != 0 : types[l] == "sliding_attention";
    windows[l] = slides ? static_cast<int>(window) : 0;
  }
  return windows;
}

Result<std::vector<int>> parse_switched_windows(const ConfigView& view, int layers) {
  KVASIR_TRY(const bool used, view.get_bool_or("use_sliding_window", false));
  if (!used) return std::vector<int>();
  KVASIR_TRY(const int64_t window,
             view.get_int_or("sliding_window", 4096, 1, 1 << 28));  // the configuration's default,
  KVASIR_TRY(const int64_t first, view.get_int_or("max_window_layers", 28, 0, 1 << 28));  // and this too
  return windows_by_layer(view, layers, window, first);
}

Result<RopeConfig> parse_rope(const ConfigView& view, int head_dim) {
  // Newer files keep theta and the scaling in one object.
  const std::string key = view.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  RopeConfig rope;
  KVASIR_TRY(rope.theta, view.get_number_or("rope_theta", 10000.0, 1.0, 1e12));
  KVASIR_TRY(rope.interleaved, view.get_bool_or("rope_interleaved", false));
  KVASIR_TRY(double rotated, view.get_number_or("partial_rotary_factor", 1.0, 0.0, 1.0));
  std::string kind = "default";
  const auto scaling = view.object(key);
  if (!scaling && view.has(key)) return fail(fmt::format("\"{}\" is not an object", key), view.where());
  if (scaling) {
    KVASIR_TRY(rope.theta, scaling->get_number_or("rope_theta", rope.theta, 1.0, 1e12));
    KVASIR_TRY(rotated, scaling->get_number_or("partial_rotary_factor", rotated, 0.0, 1.0));
    KVASIR_TRY(std::string old_kind, scaling->get_string_or("type", "default"));
    KVASIR_TRY(kind, scaling->get_string_or("rope_type", std::move(old_kind)));
  }
  if (kind == "linear") {
    KVASIR_TRY(rope.linear, scaling->get_number("factor", 1.0, 1e6));
  } else if (kind == "llama3") {
    KVASIR_TRY(const Llama3Scaling llama3, parse_llama3(*scaling));
    for (double frequency : rope.frequencies(head_dim))  // not yet scaled
      rope.factors.push_back(static_cast<float>(llama3.divisor(frequency)));
  } else if (kind == "factors") {
    KVASIR_TRY(rope.factors, parse_factors(*scaling, head_dim));
  } else if (kind != "default") {
    return fail(fmt::format("RoPE scaling \"{}\" is not supported", kind), view.where(),
                "a model with linear, llama3 or no scaling");
  }
  if (rotated != 1.0)
    return fail(fmt::format("partial_rotary_factor {} is not supported: all of a head is rotated", rotated),
                view.where(), "a model that rotates whole heads");
  return rope;
}

Result<void> parse_special_ids(const ConfigView& view, ModelConfig* config) {
  constexpr int64_t kMaxId = 1 << 24;
  KVASIR_TRY(const auto eos, view.get_ints_or_empty("eos_token_id"));
  for (int64_t id : eos) {
    if (id < 0 || id > kMaxId)
      return fail(fmt::format("\"eos_token_id\" is {}, allowed 0..{}", id, kMaxId), view.where());
    config->eos.push_back(static_cast<int>(id));
  }
  KVASIR_TRY(const auto bos, view.get_ints_or_empty("bos_token_id"));
  if (bos.empty()) return {};
  if (bos[0] < 0 || bos[0] > kMaxId)
    return fail(fmt::format("\"bos_token_id\" is {}, allowed 0..{}", bos[0], kMaxId), view.where());
  config->bos = static_cast<int>(bos[0]);
  return {};
}

}  // namespace kvasir
