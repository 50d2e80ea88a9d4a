// Translating keys and names. Tensors keep their bytes: how these differ from Hugging Face's is said in TensorInfo.
#include "arch/gguf.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "format/strict_json.h"

namespace kvasir {
namespace {

class Translator {
 public:
  Translator(GgufFile file, const std::string& where) : file_(std::move(file)), where_(where) {}

  Result<GgufModel> run() {
    KVASIR_CHECK(find_family());
    KVASIR_TRY(config_, ConfigView::parse("{}", where_));
    config_.set("model_type", family_->aliases.front());
    for (std::string_view name : {"block_count", "embedding_length", "attention.head_count"})
      if (metadata().find(key(name)) == nullptr) return fail(in_quotes(key(name)) + " is missing", where_);
    for (const GgufName& name : names_->keys) KVASIR_CHECK(number(name));
    window_pattern();
    KVASIR_CHECK(from_tensors());
    KVASIR_CHECK(rope());
    KVASIR_CHECK(special_ids());
    for (TensorInfo& tensor : file_.tensors.tensors) rename(tensor);
    KVASIR_CHECK(sort_tensors(file_.tensors.tensors, where_));
    return GgufModel{std::move(config_), std::move(file_.tensors)};
  }

 private:
  Result<void> find_family() {
    KVASIR_TRY(const auto arch, metadata().get_string("general.architecture"));
    if (!arch) return fail("general.architecture is missing", where_, "a GGUF file of a language model");
    std::vector<std::string_view> known;
    for (const Family* family : families()) {
      if (family->gguf.arch == *arch) family_ = family, names_ = &family->gguf;
      if (!family->gguf.arch.empty()) known.push_back(family->gguf.arch);
    }
    if (family_ != nullptr) return {};
    return fail(fmt::format("the architecture {} is not supported", in_quotes(*arch)), where_,
                fmt::format("a model of architecture {}", fmt::join(known, ", ")));
  }

  std::string key(std::string_view name) const { return fmt::format("{}.{}", names_->arch, name); }

  Result<void> number(const GgufName& name) {
    const std::string at = key(name.gguf);
    const GgufValue* value = metadata().find(at);
    if (value == nullptr) return {};
    if (const auto integer = value->as_int()) {
      config_.set(name.hf, *integer);
    } else if (const auto real = value->as_number()) {
      config_.set(name.hf, *real);
    } else {
      return fail(fmt::format("the metadata key {} holds a value of type {}, expected one number", in_quotes(at),
                              gguf_type_name(value->type)),
                  where_);
    }
    return {};
  }

  // A file that has a window uses it; which layers do may be in a list.
  void window_pattern() {
    if (metadata().find(key("attention.sliding_window")) != nullptr) config_.set("use_sliding_window", true);
    const GgufValue* value = metadata().find(key("attention.sliding_window_pattern"));
    if (const auto pattern = value != nullptr ? value->as_numbers() : std::nullopt)
      config_.set("sliding_window_pattern", std::vector<int64_t>(pattern->begin(), pattern->end()));
  }

  // What a config.json says in words shows in which tensors there are.
  Result<void> from_tensors() {
    const TensorDir& dir = file_.tensors;
    const TensorInfo* embedding = dir.find("token_embd.weight");
    if (embedding == nullptr || embedding->shape.size() != 2)
      return fail("the matrix token_embd.weight is missing", where_, "a GGUF file with the weights of a model");
    config_.set("vocab_size", embedding->shape[0]);
    config_.set("tie_word_embeddings", dir.find("output.weight") == nullptr);
    config_.set("attention_bias", dir.find("blk.0.attn_q.bias") != nullptr);
    config_.set("mlp_bias", dir.find("blk.0.ffn_up.bias") != nullptr);
    return {};
  }

  Result<void> rope() {
    KVASIR_TRY(const auto kind, metadata().get_string(key("rope.scaling.type")));
    KVASIR_TRY(const auto factor, metadata().get_number(key("rope.scaling.factor")));
    KVASIR_TRY(const auto rotated, metadata().get_int(key("rope.dimension_count")));
    KVASIR_TRY(head_dim_, this->head_dim());
    if (rotated && head_dim_ != 0 && *rotated != head_dim_)
      return fail(fmt::format("{} of {} channels of a head are rotated, which is not supported", *rotated, head_dim_),
                  where_, "a model that rotates whole heads");
    if (file_.tensors.find("rope_factors_long.weight") != nullptr)
      return fail("RoPE scaling \"longrope\" is not supported", where_, "a model with linear, llama3 or no scaling");
    KVASIR_TRY(ConfigView scaling, ConfigView::parse("{}", where_));
    if (const TensorInfo* factors = file_.tensors.find("rope_freqs.weight")) {
      KVASIR_CHECK(set_factors(*factors, scaling));
    } else if (kind && *kind != "none") {
      scaling.set("rope_type", *kind);
      if (factor) scaling.set("factor", *factor);
    } else {
      return {};
    }
    config_.set("rope_scaling", scaling);
    return {};
  }

  Result<int64_t> head_dim() const {
    KVASIR_TRY(const int64_t channels, config_.get_int_or("hidden_size", 0, 0, INT32_MAX));
    KVASIR_TRY(const int64_t heads, config_.get_int_or("num_attention_heads", 1, 1, INT32_MAX));
    return config_.get_int_or("head_dim", channels / heads, 1, INT32_MAX);
  }

  Result<void> set_factors(const TensorInfo& tensor, ConfigView& scaling) const {
    if (tensor.codec == nullptr || tensor.shape.size() != 1 || tensor.shape[0] > kMaxPairDim)
      return fail("rope_freqs.weight is no short vector of floats", where_);
    std::vector<float> factors(static_cast<size_t>(tensor.shape[0]));
    tensor.codec->decode(file_.tensors.data(tensor).data(), factors.data(), tensor.shape[0]);
    scaling.set("rope_type", "factors");
    scaling.set("factors", std::vector<double>(factors.begin(), factors.end()));
    return {};
  }

  // Every token that ends a text or a turn of a chat.
  Result<void> special_ids() {
    std::vector<int64_t> eos;
    for (const char* name : {"eos", "eot", "eom"}) {
      KVASIR_TRY(const auto id, metadata().get_int(fmt::format("tokenizer.ggml.{}_token_id", name)));
      if (id && std::find(eos.begin(), eos.end(), *id) == eos.end()) eos.push_back(*id);
    }
    config_.set("eos_token_id", eos);
    KVASIR_TRY(const auto bos, metadata().get_int("tokenizer.ggml.bos_token_id"));
    if (bos) config_.set("bos_token_id", *bos);
    return {};
  }

  static std::string_view translate(std::span<const GgufName> names, std::string_view stem) {
    const auto it = std::find_if(names.begin(), names.end(), [&](const GgufName& name) { return name.gguf == stem; });
    return it == names.end() ? std::string_view() : it->hf;
  }

  // "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight". An unknown name stays, and nobody asks for it.
  void rename(TensorInfo& tensor) const {
    const std::string_view name = tensor.name;
    const size_t dot = name.rfind('.');
    if (dot == name.npos) return;
    std::string_view stem = name.substr(0, dot);
    const std::string_view ending = name.substr(dot);
    constexpr std::string_view kBlock = "blk.";
    if (!stem.starts_with(kBlock)) {
      const std::string_view hf = translate(names_->tensors, stem);
      if (!hf.empty()) tensor.name = std::string(hf).append(ending);
      return;
    }
    stem.remove_prefix(kBlock.size());
    const size_t number = std::min(stem.find('.'), stem.size());
    const std::string_view part = stem.substr(std::min(number + 1, stem.size()));
    const std::string_view hf = translate(names_->layer_tensors, part);
    if (hf.empty()) return;
    if (names_->paired_qk && (part == "attn_q" || part == "attn_k")) tensor.pair_dim = pair_dim(tensor);
    tensor.transposed = names_->transposed && tensor.shape.size() == 2;
    tensor.name = fmt::format("{}{}.{}{}", names_->layers, stem.substr(0, number), hf, ending);
  }

  // A tensor whose rows are no whole heads has a wrong shape, which is found later.
  int pair_dim(const TensorInfo& tensor) const {
    const bool whole = head_dim_ > 0 && head_dim_ <= kMaxPairDim && head_dim_ % 2 == 0;
    return whole && tensor.shape[0] % head_dim_ == 0 ? static_cast<int>(head_dim_) : 0;
  }

  const GgufMetadata& metadata() const { return file_.metadata; }

  GgufFile file_;
  const std::string& where_;
  const Family* family_ = nullptr;
  const GgufNames* names_ = nullptr;
  int64_t head_dim_ = 0;
  ConfigView config_;
};

}  // namespace

Result<GgufModel> read_gguf_model(GgufFile file, const std::string& where) {
  auto model = Translator(std::move(file), where).run();
  if (!model && model.error().where.empty()) model.error().where = where;
  return model;
}

}  // namespace kvasir
