// Checks and parsing that families share; RoPE is read in rope_config.cc.
#include "arch/config.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace kvasir {
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
  if (c.head_dim < 1) return fail(Error::damaged, fmt::format("{} channels for {} heads", c.hidden, c.heads), where);
  if (c.heads % c.kv_heads != 0)
    return fail(Error::damaged, fmt::format("{} query heads cannot share {} KV heads evenly", c.heads, c.kv_heads),
                where, "a config whose head counts divide");
  if (c.rope && c.head_dim % 2 != 0)
    return fail(Error::damaged, fmt::format("a head of {} channels cannot be rotated in pairs", c.head_dim), where,
                "an even head_dim");
  for (int id : c.eos)
    if (id >= c.vocab)
      return fail(Error::damaged, fmt::format("end-of-text id {} is past the vocabulary of {}", id, c.vocab), where);
  if (c.bos && *c.bos >= c.vocab)
    return fail(Error::damaged, fmt::format("beginning-of-text id {} is past the vocabulary of {}", *c.bos, c.vocab),
                where);
  return {};
}

namespace {

// transformers refuses these models: the number has a default, and null is none.
Result<void> refuse_nulls(const ConfigView& view, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys)
    if (view.is_null(key))
      return fail(Error::damaged, fmt::format("\"{}\" is null, expected a number", key), view.where());
  return {};
}

// Null means "as many as query heads", where a key that is absent means the model type's own default.
int default_kv_heads(const ConfigView& view, const DecoderDefaults& defaults, int heads) {
  return defaults.kv_heads == 0 || view.is_null("num_key_value_heads") ? heads : defaults.kv_heads;
}

}  // namespace

Result<ModelConfig> parse_decoder_config(const ConfigView& view, std::string_view family,
                                         const DecoderDefaults& defaults) {
  ModelConfig c;
  c.family = family;
  KVASIR_CHECK(refuse_nulls(view, {"rms_norm_eps", "rope_theta", "max_position_embeddings"}));
  const auto read = [&](const char* key, int64_t max, int* out) -> Result<void> {
    KVASIR_TRY(const int64_t value, view.get_int_or(key, *out, 1, max));
    if (value == 0) return fail(Error::damaged, fmt::format("\"{}\" is missing", key), view.where());
    *out = static_cast<int>(value);
    return {};
  };
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
  KVASIR_TRY(const double eps, view.get_number_or("rms_norm_eps", defaults.norm_eps, 0.0, 1.0));
  c.norm_eps = static_cast<float>(eps);
  KVASIR_TRY(const std::string act, view.get_string_or("hidden_act", "silu"));
  if (act != "silu")
    return fail(Error::unsupported, "hidden_act \"" + act + "\" is not supported", view.where(), "a model with silu");
  KVASIR_TRY(c.tied_head, view.get_bool_or("tie_word_embeddings", false));
  KVASIR_TRY(c.rope, parse_rope(view, c.head_dim));
  KVASIR_TRY(const int64_t mtp_layers, view.get_int_or("num_nextn_predict_layers", 0, 0, 64));
  c.mtp_layers = static_cast<int>(mtp_layers);
  KVASIR_CHECK(parse_special_ids(view, &c));
  KVASIR_CHECK(check_config(c, view.where()));
  return c;
}

namespace {

// Which layers a configuration says to have a window; empty where it says nothing.
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
    return fail(Error::damaged, fmt::format("attention of {} layers is described, there are {}", slides.size(), layers),
                view.where());
  return slides;
}

}  // namespace

Result<std::vector<int>> windows_by_layer(const ConfigView& view, int layers, int64_t window, int64_t first) {
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

Result<std::vector<int>> parse_switched_windows(const ConfigView& view, int layers) {
  KVASIR_TRY(const bool used, view.get_bool_or("use_sliding_window", false));
  const bool none = !used || view.is_null("sliding_window");  // null is no window, absent the default of 4096
  KVASIR_TRY(const int64_t window, none ? Result<int64_t>(0) : view.get_int_or("sliding_window", 4096, 1, 1 << 28));
  if (none) return windows_by_layer(view, layers, 0);
  if (view.has("layer_types")) return windows_by_layer(view, layers, window);
  KVASIR_TRY(const int64_t first, view.get_int_or("max_window_layers", 28, 0, 1 << 28));  // the default again
  return windows_by_layer(view, layers, window, first);
}

Result<void> parse_special_ids(const ConfigView& view, ModelConfig* config) {
  constexpr int64_t kMaxId = 1 << 24;
  KVASIR_TRY(const auto eos, view.get_ints_or_empty("eos_token_id"));
  for (int64_t id : eos) {
    if (id == -1) continue;  // how some files say that there is none
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
