// RoPE from a configuration: theta, the kinds of scaling, and the frequencies that they give.
// Source: transformers, modeling_rope_utils.py.
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "arch/config.h"
#include "math/functions_f64.h"

namespace kvasir {
namespace {

// Llama 3.1's divisor of a frequency: `factor` for long waves, 1 for short ones, a blend between them
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
    return fail(Error::damaged,
                fmt::format("llama3 RoPE scaling needs high_freq_factor {} above low_freq_factor {}",
                            s.high_freq_factor, s.low_freq_factor),
                scaling.where());
  return s;
}

// The divisors themselves, which a GGUF file has instead of a kind and its numbers.
Result<std::vector<float>> parse_factors(const ConfigView& scaling, int head_dim) {
  KVASIR_TRY(const auto numbers, scaling.get_numbers_or_empty(kGgufFactors));
  if (numbers.size() != static_cast<size_t>(head_dim / 2))
    return fail(Error::damaged, fmt::format("{} RoPE factors for a head of {} channels", numbers.size(), head_dim),
                scaling.where());
  std::vector<float> factors;
  for (double number : numbers) {
    if (!(number > 1e-6 && number < 1e6))
      return fail(Error::damaged, fmt::format("a RoPE factor is {}, allowed 1e-6..1e6", number), scaling.where());
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

namespace {

constexpr const char* kSupportedRope = "a model with linear, llama3 or no scaling";
constexpr const char* kLayerTypes[] = {"full_attention", "sliding_attention"};

// The parameters that the layers share. Newer files may give them by the kind of layer (Gemma 3 has two thetas).
Result<ConfigView> shared_by_layers(const ConfigView& view, const ConfigView& parameters) {
  KVASIR_TRY(std::vector<std::string> used, view.get_strings_or_empty("layer_types"));
  if (used.empty())
    for (const char* type : kLayerTypes)
      if (parameters.has(type)) used.emplace_back(type);
  std::optional<ConfigView> shared;
  for (const std::string& type : used) {
    const auto of_type = parameters.object(type);
    if (!of_type)
      return fail(Error::damaged, fmt::format("\"rope_parameters\" has none for layers of {}", type), view.where());
    if (shared && shared->json_text() != of_type->json_text())
      return fail(Error::unsupported,
                  fmt::format("RoPE that differs between layers (\"rope_parameters\" of {} and {}) is not supported",
                              used.front(), type),
                  view.where(), "a model whose layers are all rotated alike");
    shared = of_type;
  }
  return *shared;
}

// The object "rope_parameters" or "rope_scaling"; nothing when neither is there.
Result<std::optional<ConfigView>> rope_object(const ConfigView& view) {
  for (const char* key : {"rope_parameters", "rope_scaling"})
    if (view.has(key) && !view.object(key))
      return fail(Error::damaged, fmt::format("\"{}\" is not an object", key), view.where());
  const auto parameters = view.object("rope_parameters"), scaling = view.object("rope_scaling");
  if (parameters && scaling && parameters->json_text() != scaling->json_text())
    return fail(Error::damaged, "\"rope_parameters\" and \"rope_scaling\" are both there and differ", view.where(),
                "one of the two");
  if (!parameters) return scaling;
  for (const char* type : kLayerTypes)
    if (parameters->has(type))
      return shared_by_layers(view, *parameters).map([](ConfigView v) { return std::optional(v); });
  return parameters;
}

// "rope_type", "type" in older files. A file that names a factor and no kind is refused, as transformers does.
Result<std::string> rope_kind(const ConfigView& scaling, bool may_be_unnamed) {
  KVASIR_TRY(std::string old_kind, scaling.get_string_or("type", ""));
  KVASIR_TRY(std::string kind, scaling.get_string_or("rope_type", std::move(old_kind)));
  if (!kind.empty()) return kind;
  if (may_be_unnamed && !scaling.has("factor")) return std::string("default");
  return fail(Error::unsupported, "RoPE scaling without a type (\"rope_type\") is not supported", scaling.where(),
              kSupportedRope);
}

Result<void> read_scaling(const ConfigView& scaling, const std::string& kind, int head_dim, RopeConfig* rope) {
  if (kind == "linear") {
    KVASIR_TRY(rope->linear, scaling.get_number("factor", 1.0, 1e6));
  } else if (kind == "llama3") {
    KVASIR_TRY(const Llama3Scaling llama3, parse_llama3(scaling));
    for (double frequency : rope->frequencies(head_dim))  // not yet scaled
      rope->factors.push_back(static_cast<float>(llama3.divisor(frequency)));
  } else if (kind == kGgufFactors) {
    KVASIR_TRY(rope->factors, parse_factors(scaling, head_dim));
    KVASIR_TRY(rope->linear, scaling.get_number_or("factor", 1.0, 1.0, 1e6));
  } else if (kind != "default") {
    return fail(Error::unsupported, fmt::format("RoPE scaling \"{}\" is not supported", kind), scaling.where(),
                kSupportedRope);
  }
  return {};
}

// A theta in the object is the model's; another one outside it would be a second one.
Result<double> read_theta(const ConfigView& view, const std::optional<ConfigView>& scaling) {
  constexpr double kDefault = 10000.0, kMost = 1e12;
  KVASIR_TRY(const double outer, view.get_number_or("rope_theta", kDefault, 1.0, kMost));
  if (!scaling || !scaling->has("rope_theta")) return outer;
  KVASIR_TRY(const double inner, scaling->get_number("rope_theta", 1.0, kMost));
  if (view.has("rope_theta") && inner != outer)
    return fail(Error::damaged, fmt::format("two values of rope_theta, {} and {}", outer, inner), view.where(),
                "one of the two");
  return inner;
}

}  // namespace

Result<RopeConfig> parse_rope(const ConfigView& view, int head_dim) {
  RopeConfig rope;
  KVASIR_TRY(const auto scaling, rope_object(view));
  KVASIR_TRY(rope.theta, read_theta(view, scaling));
  KVASIR_TRY(rope.interleaved, view.get_bool_or("rope_interleaved", false));
  KVASIR_TRY(double rotated, view.get_number_or("partial_rotary_factor", 1.0, 0.0, 1.0));
  if (scaling) {
    KVASIR_TRY(rotated, scaling->get_number_or("partial_rotary_factor", rotated, 0.0, 1.0));
    KVASIR_TRY(const std::string kind, rope_kind(*scaling, view.has("rope_parameters")));
    KVASIR_CHECK(read_scaling(*scaling, kind, head_dim, &rope));
  }
  if (rotated != 1.0)
    return fail(Error::unsupported,
                fmt::format("partial_rotary_factor {} is not supported: all of a head is rotated", rotated),
                view.where(), "a model that rotates whole heads");
  return rope;
}

}  // namespace kvasir
