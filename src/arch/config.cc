// Checks and parsing that families share.
#include "arch/config.h"

#include <bit>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "math/functions_f64.h"

namespace kvasir {
namespace {

// Llama 3.1: long waves are stretched by `factor`, short ones kept, those between blended (arXiv:2407.21783 and the
// reference implementation's smooth factor).
double llama3_scaled(const RopeConfig& rope, double frequency) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const double low = rope.original_ctx / rope.low_freq_factor, high = rope.original_ctx / rope.high_freq_factor;
  if (wavelength < high) return frequency;
  if (wavelength > low) return frequency / rope.factor;
  const double smooth =
      (rope.original_ctx / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
}

}  // namespace

std::vector<double> RopeConfig::frequencies(int head_dim) const {
  std::vector<double> out;
  for (int i = 0; i < head_dim / 2; ++i) {
    const double frequency = pow_f64(theta, -2.0 * i / head_dim);
    switch (scaling) {
      case Scaling::none:
        out.push_back(frequency);
        break;
      case Scaling::linear:
        out.push_back(frequency / factor);
        break;
      case Scaling::llama3:
        out.push_back(llama3_scaled(*this, frequency));
        break;
    }
  }
  return out;
}

float ModelConfig::attention_scale() const {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

std::string ModelConfig::canonical() const {
  std::string text = fmt::format(
      "family {}\nlayers {}\nhidden {}\nheads {}\nkv_heads {}\nhead_dim {}\nffn {}\nvocab {}\nnorm_eps {:08x}\n"
      "tied {}\nattention_bias {}\nmlp_bias {}\n",
      family, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, std::bit_cast<uint32_t>(norm_eps), tied_head,
      attention_bias, mlp_bias);
  if (rope) {
    const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
    text += fmt::format("rope {:x} {} {} {:x} {:x} {:x} {}\n", bits(rope->theta), rope->interleaved,
                        static_cast<int>(rope->scaling), bits(rope->factor), bits(rope->low_freq_factor),
                        bits(rope->high_freq_factor), rope->original_ctx);
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

Result<RopeConfig> parse_rope(const ConfigView& view) {
  // Newer files keep theta and the scaling in one object.
  const std::string key = view.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  RopeConfig rope;
  KVASIR_TRY(rope.theta, view.get_number_or("rope_theta", 10000.0, 1.0, 1e12));
  KVASIR_TRY(rope.interleaved, view.get_bool_or("rope_interleaved", false));
  if (!view.has(key)) return rope;
  const auto scaling = view.object(key);
  if (!scaling) return fail(fmt::format("\"{}\" is not an object", key), view.where());
  KVASIR_TRY(rope.theta, scaling->get_number_or("rope_theta", rope.theta, 1.0, 1e12));
  KVASIR_TRY(std::string old_kind, scaling->get_string_or("type", "default"));
  KVASIR_TRY(const std::string kind, scaling->get_string_or("rope_type", std::move(old_kind)));
  if (kind == "default") return rope;
  if (kind != "linear" && kind != "llama3")
    return fail(fmt::format("RoPE scaling \"{}\" is not supported", kind), view.where(),
                "a model with linear, llama3 or no scaling");
  KVASIR_TRY(rope.factor, scaling->get_number("factor", 1.0, 1e6));
  rope.scaling = RopeConfig::Scaling::linear;
  if (kind == "linear") return rope;
  rope.scaling = RopeConfig::Scaling::llama3;
  KVASIR_TRY(rope.low_freq_factor, scaling->get_number("low_freq_factor", 1e-3, 1e6));
  KVASIR_TRY(rope.high_freq_factor, scaling->get_number("high_freq_factor", 1e-3, 1e6));
  KVASIR_TRY(const int64_t original, scaling->get_int("original_max_position_embeddings", 1, 1 << 28));
  rope.original_ctx = static_cast<int>(original);
  if (rope.high_freq_factor <= rope.low_freq_factor)
    return fail(fmt::format("llama3 RoPE scaling needs high_freq_factor {} above low_freq_factor {}",
                            rope.high_freq_factor, rope.low_freq_factor),
                view.where());
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
