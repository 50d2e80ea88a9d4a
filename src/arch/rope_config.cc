// RoPE from a configuration: theta, the kinds of scaling, and the frequencies that follow.
// Source: transformers, modeling_rope_utils.py.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "arch/config.h"
#include "math/functions_f64.h"

namespace kvasir {
namespace {

// Llama 3.1's divisor of a frequency: `factor` for long waves, 1 for short ones, a blend between them (arXiv:2407.21783
// and the reference implementation's smooth factor).
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

// Reads a list of channels / 2 divisors of the frequencies.
Result<std::vector<float>> parse_factors(const ConfigView& scaling, std::string_view key, int channels) {
  KVASIR_TRY(const auto numbers, scaling.get_numbers_or_empty(key));
  if (numbers.size() != static_cast<size_t>(channels / 2))
    return fail(Error::damaged, fmt::format("{} RoPE factors for {} rotated channels", numbers.size(), channels),
                scaling.where());
  std::vector<float> factors;
  for (double number : numbers) {
    if (!(number > 1e-6 && number < 1e6))
      return fail(Error::damaged, fmt::format("a RoPE factor is {}, allowed 1e-6..1e6", number), scaling.where());
    factors.push_back(static_cast<float>(number));
  }
  return factors;
}

// Default factor of cosines and sines of YaRN, if the file gives none.
double yarn_magnitude(double factor, double scale) { return factor <= 1 ? 1.0 : 0.1 * scale * log_f64(factor) + 1.0; }

// Numbers are rounded to f32, as GGUF files store them.
Result<void> parse_yarn(const ConfigView& scaling, int max_ctx, RopeConfig* rope) {
  YarnScaling yarn;
  const auto as_f32 = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  KVASIR_TRY(yarn.factor, scaling.get_number("factor", 1.0, 1e6).map(as_f32));
  KVASIR_TRY(yarn.beta_fast, scaling.get_number_or("beta_fast", 32.0, 1e-3, 1e6).map(as_f32));
  KVASIR_TRY(yarn.beta_slow, scaling.get_number_or("beta_slow", 1.0, 1e-3, 1e6).map(as_f32));
  KVASIR_TRY(yarn.original_ctx, scaling.get_int_or("original_max_position_embeddings", max_ctx, 1, 1 << 28));
  KVASIR_TRY(yarn.rounded, scaling.get_bool_or("truncate", true));
  KVASIR_TRY(const double mscale, scaling.get_number_or("mscale", 0.0, 0.0, 1e3));
  KVASIR_TRY(const double of_all, scaling.get_number_or("mscale_all_dim", 0.0, 0.0, 1e3));
  const bool both = mscale != 0 && of_all != 0;
  const double magnitude = both ? yarn_magnitude(yarn.factor, mscale) / yarn_magnitude(yarn.factor, of_all)
                                : yarn_magnitude(yarn.factor, 1.0);
  KVASIR_TRY(const double given, scaling.get_number_or("attention_factor", magnitude, 1e-3, 1e3));
  rope->magnitude = static_cast<float>(given);
  rope->yarn = yarn;
  return {};
}

// If the original context is not in the scaling object, it is beside it.
Result<void> parse_longrope(const ConfigView& view, const ConfigView& scaling, int max_ctx, RopeConfig* rope) {
  KVASIR_TRY(rope->factors, parse_factors(scaling, "short_factor", rope->channels));
  KVASIR_TRY(rope->long_factors, parse_factors(scaling, "long_factor", rope->channels));
  constexpr const char* kOriginal = "original_max_position_embeddings";
  const ConfigView& holder = scaling.has(kOriginal) ? scaling : view;
  KVASIR_TRY(const int64_t original, holder.get_int(kOriginal, 1, 1 << 28));
  rope->original_ctx = static_cast<int>(original);
  const double stretch = static_cast<double>(max_ctx) / static_cast<double>(original);
  KVASIR_TRY(const double factor, scaling.get_number_or("factor", stretch, 1e-3, 1e6));
  const double magnitude =
      factor <= 1 ? 1.0 : std::sqrt(1.0 + log_f64(factor) / log_f64(static_cast<double>(original)));
  KVASIR_TRY(const double given, scaling.get_number_or("attention_factor", magnitude, 1e-3, 1e3));
  rope->magnitude = static_cast<float>(given);
  return {};
}

// Reads "dynamic" scaling. Its frequencies change only past max_position_embeddings, the upper bound of a session. With
// "alpha" (Hunyuan) they are those of another theta, which GGUF files store as f32.
Result<void> parse_dynamic(const ConfigView& scaling, RopeConfig* rope) {
  KVASIR_CHECK(scaling.get_number_or("factor", 1.0, 1.0, 1e6));
  KVASIR_TRY(const double alpha, scaling.get_number_or("alpha", 0.0, 0.0, 1e6));
  const int n = rope->channels;
  if (alpha != 0 && n > 2)
    rope->theta =
        static_cast<double>(static_cast<float>(rope->theta * pow_f64(alpha, static_cast<double>(n) / (n - 2))));
  return {};
}

// The divisor of frequency i of n / 2, for n channels.
double yarn_divisor(const YarnScaling& yarn, double theta, int i, int n) {
  const auto channel = [&](double turns) {
    const double waves = static_cast<double>(yarn.original_ctx) / (turns * 2.0 * std::numbers::pi);
    return n * log_f64(waves) / (2.0 * log_f64(theta));
  };
  double low = channel(yarn.beta_fast), high = channel(yarn.beta_slow);
  if (yarn.rounded) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, n - 1.0);
  const double r = std::clamp((i - low) / std::max(high - low, 0.001), 0.0, 1.0);
  return 1.0 / (r / yarn.factor + (1.0 - r));
}

}  // namespace

std::vector<double> RopeConfig::frequencies(bool longer) const {
  const std::vector<float>& divisors = longer && !long_factors.empty() ? long_factors : factors;
  std::vector<double> out;
  for (int i = 0; i < channels / 2; ++i) {
    const double factor = divisors.empty() ? 1.0 : static_cast<double>(divisors[static_cast<size_t>(i)]);
    out.push_back(pow_f64(theta, -2.0 * i / channels) / linear / factor);
    if (yarn) out.back() /= yarn_divisor(*yarn, theta, i, channels);
  }
  return out;
}

namespace {

constexpr const char* kSupportedRope = "a model with linear, llama3, yarn, longrope or no scaling";
constexpr const char* kFull = "full_attention";
constexpr const char* kSliding = "sliding_attention";

// Reads an object with one entry per kind of layer. Returns one object if both are equal, else those of layers without
// a window and of layers with one.
Result<std::vector<ConfigView>> by_layer_type(const ConfigView& view, const ConfigView& parameters) {
  KVASIR_TRY(const std::vector<std::string> used, view.get_strings_or_empty("layer_types"));
  std::vector<ConfigView> objects;
  for (const char* type : {kFull, kSliding}) {
    if (const auto own = parameters.object(type))
      objects.push_back(*own);
    else if (std::find(used.begin(), used.end(), type) != used.end())
      return fail(Error::damaged, fmt::format("\"rope_parameters\" has none for layers of {}", type), view.where());
  }
  if (objects.size() == 2 && objects[0].json_text() == objects[1].json_text()) objects.pop_back();
  return objects;
}

// The object "rope_parameters" or "rope_scaling"; empty if both are absent.
Result<std::optional<ConfigView>> rope_object(const ConfigView& view) {
  for (const char* key : {"rope_parameters", "rope_scaling"})
    if (view.has(key) && !view.object(key))
      return fail(Error::damaged, fmt::format("\"{}\" is not an object", key), view.where());
  const auto parameters = view.object("rope_parameters"), scaling = view.object("rope_scaling");
  if (parameters && scaling && parameters->json_text() != scaling->json_text())
    return fail(Error::damaged, "\"rope_parameters\" and \"rope_scaling\" are both present and differ", view.where(),
                "one of the two");
  return parameters ? parameters : scaling;
}

// Reads "rope_type" ("type" in older files). Refuses a factor without a kind, as transformers does.
Result<std::string> rope_kind(const ConfigView& scaling, bool may_be_unnamed) {
  KVASIR_TRY(std::string old_kind, scaling.get_string_or("type", ""));
  KVASIR_TRY(std::string kind, scaling.get_string_or("rope_type", std::move(old_kind)));
  if (!kind.empty()) return kind;
  if (may_be_unnamed && !scaling.has("factor")) return std::string("default");
  return fail(Error::unsupported, "RoPE scaling without a type (\"rope_type\") is not supported", scaling.where(),
              kSupportedRope);
}

/// Values that all kinds of RoPE of one model share.
struct RopeContext {
  const ConfigView& view;
  int head_dim, max_ctx;
  double theta;
};

Result<void> read_scaling(const RopeContext& c, const ConfigView& scaling, const std::string& kind, RopeConfig* rope) {
  if (kind == "linear") {
    KVASIR_TRY(rope->linear, scaling.get_number("factor", 1.0, 1e6));
  } else if (kind == "llama3") {
    KVASIR_TRY(const Llama3Scaling llama3, parse_llama3(scaling));
    for (double frequency : rope->frequencies())  // scaling is not applied yet
      rope->factors.push_back(static_cast<float>(llama3.divisor(frequency)));
  } else if (kind == kGgufFactors) {
    KVASIR_TRY(rope->factors, parse_factors(scaling, kGgufFactors, rope->channels));
    KVASIR_TRY(rope->linear, scaling.get_number_or("factor", 1.0, 1.0, 1e6));
  } else if (kind == "yarn") {
    return parse_yarn(scaling, c.max_ctx, rope);
  } else if (kind == "longrope" || kind == "su") {
    return parse_longrope(c.view, scaling, c.max_ctx, rope);
  } else if (kind == "dynamic") {
    return parse_dynamic(scaling, rope);
  } else if (kind == "default" || kind == "mrope") {  // a text has three equal positions (Qwen2-VL)
    KVASIR_CHECK(scaling.get_ints_or_empty("mrope_section"));
    KVASIR_CHECK(scaling.get_bool_or("mrope_interleaved", false));
  } else {
    return fail(Error::unsupported, fmt::format("RoPE scaling \"{}\" is not supported", kind), scaling.where(),
                kSupportedRope);
  }
  return {};
}

// Reads theta inside or outside the scaling object. Two different values are an error.
Result<double> read_theta(const ConfigView& view, const std::optional<ConfigView>& scaling, double unsaid) {
  constexpr double kMost = 1e12;
  KVASIR_TRY(const double outer, view.get_number_or("rope_theta", unsaid, 1.0, kMost));
  if (!scaling || !scaling->has("rope_theta")) return outer;
  KVASIR_TRY(const double inner, scaling->get_number("rope_theta", 1.0, kMost));
  if (view.has("rope_theta") && inner != outer)
    return fail(Error::damaged, fmt::format("two values of rope_theta, {} and {}", outer, inner), view.where(),
                "one of the two");
  return inner;
}

// A GGUF file gives the number of rotated channels; other files give the fraction of a head.
Result<int> rotated_channels(const ConfigView& view, const std::optional<ConfigView>& scaling, int head_dim) {
  KVASIR_TRY(const int64_t counted, view.get_int_or(kGgufRotated, 0, 0, head_dim));
  if (counted != 0) return static_cast<int>(counted);
  double share = 1.0;
  for (const char* key : {"partial_rotary_factor", "rotary_pct"}) {
    KVASIR_TRY(share, view.get_number_or(key, share, 0.0, 1.0));
  }
  if (scaling) {
    KVASIR_TRY(share, scaling->get_number_or("partial_rotary_factor", share, 0.0, 1.0));
  }
  return static_cast<int>(head_dim * share);
}

Result<RopeConfig> parse_one(const RopeContext& c, const std::optional<ConfigView>& scaling) {
  RopeConfig rope;
  KVASIR_TRY(rope.theta, read_theta(c.view, scaling, c.theta));
  KVASIR_TRY(rope.interleaved, c.view.get_bool_or("rope_interleaved", false));
  KVASIR_TRY(rope.channels, rotated_channels(c.view, scaling, c.head_dim));
  if (!scaling) return rope;
  KVASIR_TRY(const std::string kind, rope_kind(*scaling, c.view.has("rope_parameters")));
  KVASIR_CHECK(read_scaling(c, *scaling, kind, &rope));
  return rope;
}

}  // namespace

Result<std::vector<RopeConfig>> parse_ropes(const ConfigView& view, int head_dim, int max_ctx, double default_theta) {
  const RopeContext context{view, head_dim, max_ctx, default_theta};
  KVASIR_TRY(const auto object, rope_object(view));
  std::vector<RopeConfig> ropes;
  if (object && (object->has(kFull) || object->has(kSliding))) {
    KVASIR_TRY(const std::vector<ConfigView> objects, by_layer_type(view, *object));
    for (const ConfigView& own : objects) {
      KVASIR_TRY(ropes.emplace_back(), parse_one(context, own));
    }
    return ropes;
  }
  KVASIR_TRY(ropes.emplace_back(), parse_one(context, object));
  if (!view.has("rope_local_base_freq")) return ropes;
  KVASIR_TRY(const double local, view.get_number("rope_local_base_freq", 1.0, 1e12));
  RopeConfig unscaled;
  unscaled.theta = local;
  unscaled.interleaved = ropes[0].interleaved;
  unscaled.channels = ropes[0].channels;
  ropes.push_back(unscaled);
  return ropes;
}

}  // namespace kvasir
