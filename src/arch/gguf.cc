// Translates keys and tensor names. Tensor bytes stay as they are; TensorInfo records how they differ from Hugging
// Face's.
#include "arch/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arch/split_tensors.h"
#include "arch/unused.h"
#include "base/quote.h"

namespace kvasir {
namespace {

// RoPE factors: these tensors become part of the configuration.
constexpr std::string_view kFactors = "rope_freqs.weight", kLongFactors = "rope_factors_long.weight",
                           kShortFactors = "rope_factors_short.weight";

// The shortest decimal with the same f32, such as 0.6, so that sampling from a folder and from the GGUF file made from
// it agree.
double shortest_decimal(double f32) { return std::strtod(fmt::format("{}", static_cast<float>(f32)).c_str(), nullptr); }

class Translator {
 public:
  Translator(GgufFile file, const std::string& where) : file_(std::move(file)), where_(where) {}

  Result<GgufModel> run() {
    KVASIR_CHECK(find_family());
    KVASIR_TRY(config_, ConfigView::parse("{}", where_));
    config_.set("model_type", family_->aliases.front());
    KVASIR_CHECK(numbers());
    KVASIR_CHECK(layers());
    KVASIR_CHECK(window());
    KVASIR_CHECK(row_order());
    KVASIR_CHECK(from_tensors());
    KVASIR_CHECK(shape());
    KVASIR_CHECK(rope());
    KVASIR_CHECK(special_ids());
    KVASIR_CHECK(sampling());
    KVASIR_TRY(auto ignored, unused_gguf_keys(metadata(), arch_, read_, where_));
    std::erase_if(file_.tensors.tensors, [this](const TensorInfo& t) {
      return has_rope() && (t.name == kFactors || t.name == kLongFactors || t.name == kShortFactors);
    });
    KVASIR_CHECK(rename_all());
    KVASIR_CHECK(sort_tensors(file_.tensors.tensors, where_));
    return GgufModel{std::move(config_), std::move(sampling_), std::move(file_.tensors), std::move(ignored)};
  }

 private:
  Result<void> find_family() {
    KVASIR_TRY(const auto arch, metadata().get_string("general.architecture"));
    if (!arch)
      return fail(Error::damaged, "general.architecture is missing", where_, "a GGUF file of a language model");
    std::vector<std::string_view> known;
    for (const Family* family : families()) {
      if (family->gguf.has_arch(*arch)) family_ = family, names_ = &family->gguf, arch_ = *arch;
      if (!family->gguf.arch.empty()) known.push_back(family->gguf.arch);
    }
    if (family_ != nullptr) return {};
    return fail(Error::unsupported, fmt::format("the architecture {} is not supported", in_quotes(*arch)), where_,
                fmt::format("a model of architecture {}", fmt::join(known, ", ")));
  }

  std::string key(std::string_view name) const { return fmt::format("{}.{}", arch_, name); }

  // Marks a key as read. Keys without a mark are checked at the end: harmless, or refused.
  const std::string& mark(const std::string& key) { return *read_.insert(key).first; }
  Result<std::optional<int64_t>> get_int(std::string_view name) { return metadata().get_int(mark(key(name))); }

  Result<void> numbers() {
    const std::span<const GgufKey> of_experts = kGgufExpertKeys;
    for (const std::span<const GgufKey> keys :
         {names_->keys, names_->more_keys, names_->experts ? of_experts : std::span<const GgufKey>()})
      for (const GgufKey& name : keys) KVASIR_CHECK(number(key(name.gguf), name.hf, config_));
    // config.json may omit these and then means its own defaults; a GGUF file may not.
    for (std::string_view name :
         {"block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
          "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"})
      if (has_key(name) && metadata().find(key(name)) == nullptr)
        return fail(Error::damaged, in_quotes(key(name)) + " is missing", where_);
    return {};
  }

  Result<void> number(const std::string& name, std::string_view hf, ConfigView& view, bool decimal = false) {
    const std::string& at = mark(name);
    const GgufValue* value = metadata().find(at);
    if (value == nullptr) return {};
    if (const auto integer = value->as_int()) {
      view.set(hf, *integer);
    } else if (const auto flag = value->as_bool()) {
      view.set(hf, *flag);
    } else if (const auto list = value->as_numbers(); list && !list->empty()) {
      return same_for_all(at, *list, hf, view);
    } else if (const auto real = value->as_number()) {
      view.set(hf, decimal ? shortest_decimal(*real) : *real);
    } else {
      return fail(Error::damaged,
                  fmt::format("the metadata key {} holds a value of type {}, expected one number", in_quotes(at),
                              gguf_type_name(value->type)),
                  where_);
    }
    return {};
  }

  // A list with one number per layer, which must all be equal.
  Result<void> same_for_all(const std::string& at, const std::vector<double>& list, std::string_view hf,
                            ConfigView& view) {
    if (std::ranges::any_of(list, [&](double x) { return x != list.front(); }))
      return fail(Error::unsupported, fmt::format("{} differs between layers, which is not supported", in_quotes(at)),
                  where_, "a model whose layers are all of one size");
    if (list.front() == std::floor(list.front()))
      view.set(hf, static_cast<int64_t>(list.front()));
    else
      view.set(hf, list.front());
    return {};
  }

  // "block_count" includes the multi-token prediction layers; subtract them.
  Result<void> layers() {
    KVASIR_TRY(const auto further, get_int("nextn_predict_layers"));
    if (further.value_or(0) == 0) return {};
    const auto count = std::find_if(names_->keys.begin(), names_->keys.end(),
                                    [](const GgufKey& name) { return name.gguf == "block_count"; });
    KVASIR_TRY(const int64_t all, config_.get_int(count->hf, 1, 1 << 20));
    if (*further < 0 || *further >= all)
      return fail(Error::damaged, fmt::format("{} of {} layers are for multi-token prediction", *further, all), where_);
    config_.set(count->hf, all - *further);
    config_.set("num_nextn_predict_layers", *further);
    return {};
  }

  bool has_key(std::string_view name) const {
    return std::ranges::any_of(names_->keys, [name](const GgufKey& known) { return known.gguf == name; });
  }
  bool has_rope() const { return has_key("rope.freq_base"); }

  // A file that names a window (0: none) uses it, in all layers or in those that a list names.
  Result<void> window() {
    if (!has_key("attention.sliding_window")) return {};
    KVASIR_TRY(const auto window, get_int("attention.sliding_window"));
    if (window.value_or(0) == 0) config_.set("sliding_window", int64_t{0});
    config_.set(kGgufWindow, window.value_or(0) != 0);
    config_.set("use_sliding_window", window.value_or(0) != 0);
    config_.set("max_window_layers", int64_t{0});
    const std::string& at = mark(key("attention.sliding_window_pattern"));
    const GgufValue* value = metadata().find(at);
    if (value == nullptr) return {};
    if (const auto step = value->as_int()) {
      config_.set(kGgufWindowStep, *step);
      return {};
    }
    std::vector<int64_t> slides;
    if (const auto pattern = value->as_numbers())
      slides.assign(pattern->begin(), pattern->end());
    else if (value->type == GgufType::array && value->element == GgufType::boolean)
      for (std::byte flag : value->bytes) slides.push_back(flag != std::byte{0});
    else
      return fail(Error::damaged, fmt::format("the metadata key {} is not a list of layers", in_quotes(at)), where_);
    config_.set(kGgufWindowPattern, slides);
    return {};
  }

  // Files of 2023 name the order of q's and k's rows. Only the order that all converters write is supported.
  Result<void> row_order() {
    KVASIR_TRY(const auto order, metadata().get_string(mark(key("tensor_data_layout"))));
    if (!order || *order == "Meta AI original pth") return {};
    return fail(
        Error::unsupported,
        fmt::format("{} is {}, which is not supported", in_quotes(key("tensor_data_layout")), in_quotes(*order)),
        where_, "the model, converted again");
  }

  bool any_layer_has(std::initializer_list<std::string_view> endings) const {
    return std::ranges::any_of(file_.tensors.tensors, [&](const TensorInfo& tensor) {
      return tensor.name.starts_with("blk.") &&
             std::ranges::any_of(endings, [&](std::string_view ending) { return tensor.name.ends_with(ending); });
    });
  }

  // GGUF has no keys for these; derive them from which tensors exist (tied head, biases).
  Result<void> from_tensors() {
    const TensorDir& dir = file_.tensors;
    const TensorInfo* embedding = dir.find("token_embd.weight");
    if (embedding == nullptr || embedding->shape.size() != 2)
      return fail(Error::damaged, "the matrix token_embd.weight is missing", where_,
                  "a GGUF file with the weights of a model");
    config_.set("vocab_size", embedding->shape[0]);
    config_.set("tie_word_embeddings", dir.find("output.weight") == nullptr);
    config_.set("attention_bias", any_layer_has({".attn_q.bias", ".attn_k.bias", ".attn_v.bias"}));
    config_.set(kGgufOutputBias, any_layer_has({".attn_output.bias"}));
    config_.set("mlp_bias", any_layer_has({".ffn_gate.bias", ".ffn_up.bias", ".ffn_down.bias"}));
    config_.set("use_qk_norm", any_layer_has({".attn_q_norm.weight"}));
    config_.set(kGgufSparseBiases, true);
    return {};
  }

  // Sets the width of a head, and checks numbers that repeat what the file says elsewhere.
  Result<void> shape() {
    KVASIR_TRY(const auto channels, get_int("embedding_length"));
    KVASIR_TRY(const auto heads, get_int("attention.head_count"));
    KVASIR_TRY(const auto width, get_int("attention.key_length"));
    KVASIR_TRY(const auto kv_heads, get_int("attention.head_count_kv"));
    head_dim_ = width.value_or(*channels / std::max<int64_t>(*heads, 1));
    if (has_rope()) {  // if absent, they follow from the other numbers
      config_.set("head_dim", head_dim_);
      config_.set("num_key_value_heads", kv_heads.value_or(*heads));
    } else {
      KVASIR_CHECK(same("attention.key_length", *channels / std::max<int64_t>(*heads, 1)));
      KVASIR_CHECK(same("attention.head_count_kv", *heads));
    }
    KVASIR_TRY(const int64_t vocab, config_.get_int("vocab_size", 0, INT64_MAX));
    KVASIR_CHECK(same("attention.value_length", head_dim_));
    return same("vocab_size", vocab);
  }

  Result<void> same(std::string_view name, int64_t expected) {
    KVASIR_TRY(const auto value, get_int(name));
    if (!value || *value == expected) return {};
    return fail(Error::damaged,
                fmt::format("the metadata key {} is {}, the rest of the file requires {}", in_quotes(key(name)), *value,
                            expected),
                where_);
  }

  // Kinds and defaults as in llama.cpp: a factor without a type is linear, and 0 means no factor.
  Result<void> rope() {
    if (!has_rope()) return {};
    KVASIR_TRY(const auto rotated, get_int("rope.dimension_count"));
    if (rotated && *rotated != 0) config_.set(kGgufRotated, *rotated);
    if (file_.tensors.find(kLongFactors) != nullptr || file_.tensors.find(kShortFactors) != nullptr) return longrope();
    KVASIR_TRY(const auto type, metadata().get_string(mark(key("rope.scaling.type"))));
    KVASIR_TRY(const auto factor, scaling_factor());
    const TensorInfo* factors = file_.tensors.find(kFactors);
    const std::string kind(type.value_or("linear"));
    if (type == "linear" && !factor)
      return fail(Error::damaged, in_quotes(key("rope.scaling.factor")) + " is missing", where_);
    if (kind == "yarn") return yarn(factor.value_or(1.0));
    if (kind != "linear" && kind != "none")
      return fail(Error::unsupported, fmt::format("RoPE scaling {} is not supported", in_quotes(kind)), where_,
                  "a model with linear, llama3, yarn, longrope or no scaling");
    KVASIR_TRY(ConfigView scaling, ConfigView::parse("{}", where_));
    scaling.set("rope_type", "linear");
    const double linear = kind == "none" ? 0 : factor.value_or(0);
    scaling.set("factor", linear == 0 ? 1.0 : linear);
    if (factors != nullptr) KVASIR_CHECK(set_factors(*factors, scaling));
    config_.set("rope_scaling", scaling);
    return {};
  }

  // Reads the scaling's numbers under GGUF's names and stores them under transformers'.
  Result<void> scaling_numbers(std::initializer_list<GgufName> names, ConfigView& scaling) {
    for (const GgufName& name : names)
      KVASIR_CHECK(number(key(fmt::format("rope.scaling.{}", name.gguf)), name.hf, scaling));
    return {};
  }

  Result<void> yarn(double factor) {
    KVASIR_TRY(ConfigView scaling, ConfigView::parse(R"({"rope_type":"yarn"})", where_));
    scaling.set("factor", factor);
    KVASIR_CHECK(scaling_numbers({{"original_context_length", "original_max_position_embeddings"},
                                  {"yarn_beta_fast", "beta_fast"},
                                  {"yarn_beta_slow", "beta_slow"},
                                  {"yarn_log_multiplier", "mscale_all_dim"},
                                  {"attn_factor", "attention_factor"},
                                  {"yarn_attn_factor", "attention_factor"}},
                                 scaling));
    if (scaling.has("mscale_all_dim")) scaling.set("mscale", 1.0);
    KVASIR_TRY(const double magnitude, scaling.get_number_or("attention_factor", 1.0, 0.0, 1e6));
    if (magnitude == 1.0) scaling.remove("attention_factor");  // 1.0 in GGUF means "not given"
    config_.set("rope_scaling", scaling);
    return {};
  }

  Result<void> longrope() {
    KVASIR_TRY(ConfigView scaling, ConfigView::parse(R"({"rope_type":"longrope"})", where_));
    for (const auto& [tensor, name] :
         {std::pair(kLongFactors, "long_factor"), std::pair(kShortFactors, "short_factor")}) {
      const TensorInfo* factors = file_.tensors.find(tensor);
      if (factors == nullptr)
        return fail(Error::damaged,
                    fmt::format("the tensor {} is missing beside {}", tensor,
                                tensor == kLongFactors ? kShortFactors : kLongFactors),
                    where_);
      KVASIR_TRY(const std::vector<double> numbers, numbers_of(*factors));
      scaling.set(name, numbers);
    }
    KVASIR_CHECK(scaling_numbers({{"original_context_length", "original_max_position_embeddings"},
                                  {"attn_factor", "attention_factor"},
                                  {"factor", "factor"}},
                                 scaling));
    KVASIR_CHECK(metadata().get_string(mark(key("rope.scaling.type"))));
    config_.set("rope_scaling", scaling);
    return {};
  }

  Result<std::optional<double>> scaling_factor() {
    KVASIR_TRY(const auto now, metadata().get_number(mark(key("rope.scaling.factor"))));
    KVASIR_TRY(const auto old,
               metadata().get_number(mark(key("rope.scale_linear"))));  // the key that files of 2023 use
    if (now && old && *now != *old)
      return fail(Error::damaged,
                  fmt::format("{} and {} are both present and differ", in_quotes(key("rope.scaling.factor")),
                              in_quotes(key("rope.scale_linear"))),
                  where_);
    return now ? now : old;
  }

  Result<void> set_factors(const TensorInfo& tensor, ConfigView& scaling) const {
    KVASIR_TRY(const std::vector<double> factors, numbers_of(tensor));
    scaling.set("rope_type", kGgufFactors);
    scaling.set(kGgufFactors, factors);
    return {};
  }

  Result<std::vector<double>> numbers_of(const TensorInfo& tensor) const {
    if (tensor.codec == nullptr || tensor.shape.size() != 1 || tensor.shape[0] > kMaxPairDim)
      return fail(Error::damaged, tensor.name + " is not a short vector of floats", where_);
    std::vector<float> numbers(static_cast<size_t>(tensor.shape[0]));
    tensor.codec->decode(file_.tensors.data(tensor).data(), numbers.data(), tensor.shape[0]);
    return std::vector<double>(numbers.begin(), numbers.end());
  }

  // Reads the sampling that the file's author recommends.
  Result<void> sampling() {
    constexpr GgufName kKeys[] = {{"temp", "temperature"},
                                  {"top_k", "top_k"},
                                  {"top_p", "top_p"},
                                  {"min_p", "min_p"},
                                  {"penalty_repeat", "repetition_penalty"},
                                  {"penalty_last_n", kGgufLastN}};
    KVASIR_TRY(ConfigView view, ConfigView::parse("{}", where_));
    for (const GgufName& name : kKeys)
      KVASIR_CHECK(number(fmt::format("general.sampling.{}", name.gguf), name.hf, view, true));
    if (view.keys().empty()) return {};
    view.set(kGgufSampling, true);
    view.set("do_sample", true);
    sampling_ = std::move(view);
    return {};
  }

  // Collects every token that ends a text or a turn of a chat.
  Result<void> special_ids() {
    std::vector<int64_t> eos;
    for (const char* name : {"eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"}) {
      KVASIR_TRY(const auto id, special_id(name));
      if (id && std::find(eos.begin(), eos.end(), *id) == eos.end()) eos.push_back(*id);
    }
    config_.set("eos_token_id", eos);
    KVASIR_TRY(const auto bos, special_id("bos"));
    if (bos) config_.set("bos_token_id", *bos);
    return {};
  }

  // Some files write -1, signed or as 32 bits unsigned, for none.
  Result<std::optional<int64_t>> special_id(std::string_view name) const {
    KVASIR_TRY(const auto id, metadata().get_int(fmt::format("tokenizer.ggml.{}_token_id", name)));
    return id == -1 || id == int64_t{0xffffffff} ? std::nullopt : id;
  }

  // In a table, a name that ends in '*' matches any name that has digits there.
  static std::string_view translate(std::span<const GgufName> names, std::string_view stem) {
    const auto fits = [stem](const GgufName& name) {
      if (!name.gguf.ends_with('*')) return name.gguf == stem;
      const std::string_view before = name.gguf.substr(0, name.gguf.size() - 1);
      return stem.starts_with(before) && stem.size() > before.size() &&
             std::ranges::all_of(stem.substr(before.size()), [](char c) { return c >= '0' && c <= '9'; });
    };
    const auto it = std::ranges::find_if(names, fits);
    return it == names.end() ? std::string_view() : it->hf;
  }
  std::string_view translate_in_layer(std::string_view part) const {
    const std::span<const GgufName> of_experts = kGgufExpertTensors;
    for (const std::span<const GgufName> names :
         {names_->more_layer_tensors, names_->experts ? of_experts : std::span<const GgufName>(),
          names_->layer_tensors})
      if (const std::string_view hf = translate(names, part); !hf.empty()) return hf;
    return {};
  }

  Result<void> rename_all() {
    std::vector<TensorInfo> renamed;
    for (TensorInfo& tensor : file_.tensors.tensors) {
      tensor.stored_name = tensor.name;
      tensor.converted = true;
      KVASIR_CHECK(tensor.name.starts_with("blk.") ? rename_in_layer(tensor, &renamed) : rename(tensor, &renamed));
    }
    file_.tensors.tensors = std::move(renamed);
    return {};
  }

  // An unknown name stays as it is, and unused_tensors() reports it.
  Result<void> rename(TensorInfo& tensor, std::vector<TensorInfo>* to) const {
    const std::string_view name = tensor.stored_name;
    const size_t dot = std::min(name.rfind('.'), name.size());
    const std::string_view hf = translate(names_->tensors, name.substr(0, dot));
    if (!hf.empty()) tensor.name = std::string(hf).append(name.substr(dot));
    to->push_back(std::move(tensor));
    return {};
  }

  // "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight".
  Result<void> rename_in_layer(TensorInfo& tensor, std::vector<TensorInfo>* to) const {
    const std::string stored = tensor.stored_name;
    const size_t number = std::min(stored.find('.', 4), stored.size() - 1),
                 dot = std::max(stored.rfind('.'), number + 1);
    const std::string_view part = std::string_view(stored).substr(number + 1, dot - number - 1);
    std::string_view ending = std::string_view(stored).substr(std::min(dot, stored.size()));
    std::string_view hf = translate_in_layer(std::string(part).append(ending));  // a name that includes its ending
    if (!hf.empty()) ending = {};
    if (hf.empty()) hf = translate_in_layer(part);
    if (hf.empty()) {
      to->push_back(std::move(tensor));
      return {};
    }
    const std::string before = fmt::format("{}{}.", names_->layers, std::string_view(stored).substr(4, number - 4));
    if (names_->is_paired(part)) tensor.pair_dim = pair_dim(tensor);
    tensor.transposed = names_->transposed && tensor.shape.size() == 2;
    const size_t star = hf.find('*'), numbered = part.rfind('.');
    if (star != hf.npos && numbered == part.npos) {
      KVASIR_TRY(auto parts, split_tensor(tensor, {.name = part, .parts = {&hf, 1}}, before, ending, where_));
      std::move(parts.begin(), parts.end(), std::back_inserter(*to));
      return {};
    }
    tensor.name = before + std::string(hf).append(ending);
    if (star != hf.npos) tensor.name.replace(before.size() + star, 1, part.substr(numbered + 1));
    to->push_back(std::move(tensor));
    return {};
  }

  // 0 if the rows are not whole heads; the check of shapes reports that later.
  int pair_dim(const TensorInfo& tensor) const {
    const bool whole = head_dim_ > 0 && head_dim_ <= kMaxPairDim && head_dim_ % 2 == 0;
    return whole && tensor.shape[0] % head_dim_ == 0 ? static_cast<int>(head_dim_) : 0;
  }

  const GgufMetadata& metadata() const { return file_.metadata; }

  GgufFile file_;
  const std::string& where_;
  const Family* family_ = nullptr;
  const GgufNames* names_ = nullptr;
  std::string arch_;
  int64_t head_dim_ = 0;
  ConfigView config_;
  std::optional<ConfigView> sampling_;
  KeySet read_;
};

}  // namespace

Result<GgufModel> read_gguf_model(GgufFile file, const std::string& where) {
  auto model = Translator(std::move(file), where).run();
  if (!model && model.error().where.empty()) model.error().where = where;
  return model;
}

}  // namespace kvasir
