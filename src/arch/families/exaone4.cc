// EXAONE 4: norms after both halves of a layer and on every head of q and k. If some layers have a window, the layers
// without one have no positions (arXiv:2507.11407).
#include <array>

#include "arch/families/llama.h"

namespace kvasir {

extern const Family family_exaone4;

namespace {

constexpr int kStep = 4;

// Returns n if every n-th layer has no window. Without "layer_types", "sliding_window_pattern" is that number, or a
// string such as "LLLG": one letter per layer, L with a window, G without.
Result<int64_t> parse_step(const ConfigView& view) {
  if (view.get_int_or("sliding_window_pattern", 0, 1, 4096))
    return view.get_int_or("sliding_window_pattern", kStep, 1, 4096);
  KVASIR_TRY(const std::string letters, view.get_string("sliding_window_pattern"));
  const size_t step = letters.find('G') + 1;
  if (letters.size() == step && letters.find_first_not_of('L') == step - 1) return static_cast<int64_t>(step);
  return fail(Error::unsupported, "\"sliding_window_pattern\" is \"" + letters + "\", which is not supported",
              view.where(), "some L and then a G");
}

Result<ModelConfig> parse_config(const ConfigView& view) {
  constexpr DecoderDefaults kDefaults{.max_ctx = 2048, .norm_eps = 1e-5};
  KVASIR_TRY(ModelConfig c, parse_decoder_config(view, family_exaone4.name, kDefaults));
  KVASIR_TRY(const int64_t window, view.get_int_or("sliding_window", 0, 0, 1 << 28));
  KVASIR_TRY(const int64_t step, parse_step(view));
  KVASIR_TRY(auto windows, stepped_windows(view, c.layers, window, step));
  set_windows(std::move(windows), &c);
  if (!c.windows.empty()) c.rope_kinds.clear();
  for (int of_layer : c.windows) c.rope_kinds.push_back(of_layer != 0 ? 0 : -1);
  KVASIR_CHECK(llama::parse_attention_biases(view, &c));
  return c;
}

std::vector<TensorSpec> exaone4_layer_table(const ModelConfig& c, int l) {
  return llama::with_norms(c, l, llama::kPostNorms);
}

TensorTable exaone4_tensor_table(const ModelConfig& c) { return llama::tensor_table(c, exaone4_layer_table); }

constexpr std::array<std::string_view, 1> kAliases{"exaone4"};

}  // namespace

const Family family_exaone4{.name = "exaone4",
                            .summary = "EXAONE 4: Llama with norms after its halves and of heads of q and k",
                            .aliases = kAliases,
                            .prefixes = llama::kPrefixes,
                            .gguf = {.arch = "exaone4", .more_layer_tensors = llama::kGgufPostNorms},
                            .parse_config = parse_config,
                            .tensor_table = exaone4_tensor_table,
                            .cache_needs = uniform_cache,
                            .embed = llama::embed,
                            .layer = llama::post_norm_layer,
                            .final_norm = llama::final_norm};

}  // namespace kvasir
