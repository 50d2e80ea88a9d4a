// Plans a GGUF file from either source: a model with Hugging Face's tensor names, or another GGUF file.
#include "lab/quantize_outline.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "arch/family.h"
#include "base/quote.h"
#include "engine/model_files.h"
#include "format/gguf.h"
#include "lab/quantize_types.h"
#include "token/files/gguf_vocab.h"
#include "token/tokenizer_impl.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

constexpr uint32_t kQuantizationVersion = 2;  // ggml.h, GGML_QNT_VERSION

Result<void> refuse_integers(const TensorInfo& tensor, const std::string& where) {
  if (tensor.codec != nullptr && tensor.codec->block_elems == 1) return {};
  return fail(Error::unsupported,
              fmt::format("tensor {} is {} already, and quantising it again would lose more", in_quotes(tensor.name),
                          tensor.dtype),
              where, "the model in f32, f16 or bf16");
}

// ---- from Hugging Face's names ------------------------------------------------------------------------------------

class FolderPlanner {
 public:
  FolderPlanner(const fs::path& path, const QuantizeOptions& options) : where_(path.string()), options_(options) {}

  Result<GgufOutline> run() {
    KVASIR_TRY(ModelFiles files, read_model_files(where_));
    KVASIR_TRY(ModelDescription description, describe_model(files, where_));
    family_ = description.family;
    config_ = std::move(description.config);
    KVASIR_TRY(types_, TypeChooser::create(options_.type, options_.types, config_));
    if (const std::string note = note_of(description.ignored); !note.empty()) outline_.notes.push_back(note);
    names_ = &family_->gguf;
    if (names_->arch.empty())
      return fail(Error::unsupported, fmt::format("GGUF has no name for a {} model", family_->name), where_);
    if (config_.has_extras())
      return fail(Error::unsupported, "its multipliers, caps or experts cannot be written as GGUF", where_,
                  "a GGUF file of the model in f32, f16 or bf16, which keeps its keys");
    KVASIR_CHECK(rope());
    if (interleaved() && names_->paired.empty())
      return fail(Error::unsupported, "its rows are in an order that GGUF cannot express", where_);
    outline_.source = std::move(files.tensors);
    KVASIR_CHECK(numbers());
    KVASIR_CHECK(tensors());
    KVASIR_CHECK(special_ids());
    if (files.generation) sampling(description.sampling);
    KVASIR_CHECK(tokenizer(files));
    KVASIR_TRY(const std::vector<std::string> notes, types_->finish());
    outline_.notes.insert(outline_.notes.begin(), notes.begin(), notes.end());
    return std::move(outline_);
  }

 private:
  bool interleaved() const { return rope_ != nullptr && rope_->interleaved; }
  GgufEntries& entries() { return outline_.entries; }
  std::string key(std::string_view name) const { return fmt::format("{}.{}", names_->arch, name); }

  // The keys below can express only one plain kind of RoPE.
  Result<void> rope() {
    if (config_.ropes.empty()) return {};
    rope_ = &config_.ropes.front();
    if (config_.ropes.size() == 1 && config_.rope_kinds.empty() && !rope_->yarn && rope_->long_factors.empty())
      return {};
    return fail(Error::unsupported, "its kinds of RoPE cannot be written as GGUF", where_,
                "a GGUF file of the model in f32, f16 or bf16, which keeps its keys");
  }

  Result<void> numbers() {
    entries().string("general.architecture", names_->arch);
    entries().string("general.type", "model");
    entries().string("general.name", fs::path(where_).stem().string());
    entries().u32("general.file_type", types_->type().number);
    entries().u32("general.quantization_version", kQuantizationVersion);
    for (const GgufKey& known : names_->keys) KVASIR_CHECK(number(known));
    entries().u32(key("vocab_size"), static_cast<uint32_t>(config_.vocab));
    if (rope_ == nullptr) return {};
    entries().u32(key("attention.value_length"), static_cast<uint32_t>(config_.head_dim));
    entries().u32(key("rope.dimension_count"), static_cast<uint32_t>(rope_->channels));
    if (rope_->linear == 1.0) return {};
    entries().string(key("rope.scaling.type"), "linear");
    return real("rope.scaling.factor", rope_->linear);
  }

  Result<void> number(const GgufKey& known) {
    const std::string_view name = known.gguf;
    if (known.integer != nullptr) {
      entries().u32(key(name), static_cast<uint32_t>(config_.*known.integer));
    } else if (known.real != nullptr) {
      entries().f32(key(name), config_.*known.real);
    } else if (name == "attention.sliding_window") {
      windows();
    } else if (name == "rope.freq_base") {
      return real(name, rope_->theta);
    } else {
      return fail(Error::unsupported, fmt::format("no value is known for the key {}", key(name)), where_);
    }
    return {};
  }

  // Writes one window, and which layers have it.
  void windows() {
    const std::vector<int>& all = config_.windows;
    const auto window = std::max_element(all.begin(), all.end());
    if (window == all.end() || *window == 0) return;
    entries().u32(key("attention.sliding_window"), static_cast<uint32_t>(*window));
    std::vector<int32_t> pattern;
    for (int of_layer : all) pattern.push_back(of_layer != 0);
    entries().i32s(key("attention.sliding_window_pattern"), pattern);
  }

  // GGUF stores these numbers in 32 bits.
  Result<void> real(std::string_view name, double value) {
    const auto rounded = static_cast<float>(value);
    if (static_cast<double>(rounded) != value)
      outline_.notes.push_back(fmt::format("{} is {} instead of {}: GGUF keeps 32 bits", key(name), rounded, value));
    entries().f32(key(name), rounded);
    return {};
  }

  Result<void> tensors() {
    const TensorTable table = family_->tensor_table(config_);
    std::vector<TensorSpec> specs = table.embed;
    for (const auto& layer : table.layers) specs.insert(specs.end(), layer.begin(), layer.end());
    specs.insert(specs.end(), table.head.begin(), table.head.end());
    std::set<std::string> seen;  // a tied head is the embedding again
    for (const TensorSpec& spec : specs)
      if (seen.insert(spec.name).second) KVASIR_CHECK(tensor(spec));
    if (rope_ != nullptr && !rope_->factors.empty()) rope_factors();
    return {};
  }

  Result<void> tensor(const TensorSpec& spec) {
    KVASIR_TRY(const TensorInfo* info, find_tensor(*family_, spec, outline_.source, where_));
    if (info == nullptr) return {};
    KVASIR_CHECK(refuse_integers(*info, where_));
    if (spec.less_one || spec.by_head != 0 || info->scattered)
      return fail(Error::unsupported, fmt::format("the tensor {} cannot be written as GGUF", in_quotes(spec.name)),
                  where_, "a GGUF file of the model in f32, f16 or bf16");
    KVASIR_TRY(std::string name, gguf_name(spec.name));
    TensorOutline t{
        .decl = {std::move(name), nullptr, spec.shape}, .from = info->codec, .data = outline_.source.data(*info)};
    t.transpose = spec.shape.size() == 2 && spec.conv1d && names_->transposed;
    if (t.transpose) std::reverse(t.decl.shape.begin(), t.decl.shape.end());
    if (names_->is_paired(layer_part(t.decl.name)) && !interleaved()) t.pair_dim = config_.head_dim;
    t.decl.codec = &types_->choose(t.decl.name, t.decl.shape);
    outline_.tensors.push_back(std::move(t));
    return {};
  }

  // "blk.3.attn_q.weight" -> "attn_q"; empty for a tensor outside the layers.
  static std::string_view layer_part(std::string_view name) {
    if (!name.starts_with("blk.")) return {};
    const size_t begin = name.find('.', 4) + 1;
    return name.substr(begin, name.rfind('.') - begin);
  }

  // "layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight".
  Result<std::string> gguf_name(const std::string& name) const {
    for (const std::string_view prefix : family_->prefixes) {
      const std::string full = std::string(prefix) + name;
      const size_t dot = full.rfind('.');
      const std::string stem = full.substr(0, dot), ending = full.substr(dot);
      for (const GgufName& known : names_->tensors)
        if (known.hf == stem) return std::string(known.gguf) + ending;
      if (!stem.starts_with(names_->layers)) continue;
      const size_t number = names_->layers.size(), after = std::min(stem.find('.', number), stem.size() - 1);
      for (const std::span<const GgufName> list : {names_->more_layer_tensors, names_->layer_tensors})
        for (const GgufName& known : list)
          if (stem.compare(after + 1, std::string::npos, known.hf) == 0)
            return fmt::format("blk.{}.{}{}", stem.substr(number, after - number), known.gguf, ending);
    }
    return fail(Error::unsupported, fmt::format("GGUF has no name for the tensor {}", in_quotes(name)), where_);
  }

  void rope_factors() {
    const std::vector<float>& factors = outline_.made.emplace_back(rope_->factors);
    outline_.tensors.push_back({.decl = {"rope_freqs.weight", &codec_f32(), {static_cast<int64_t>(factors.size())}},
                                .from = &codec_f32(),
                                .data = std::as_bytes(std::span(factors))});
  }

  // Writes all sampling defaults, so that the file samples as the folder does.
  void sampling(const SamplingParams& p) {
    entries().f32("general.sampling.temp", static_cast<float>(p.temperature));
    entries().i32("general.sampling.top_k", p.top_k);
    entries().f32("general.sampling.top_p", static_cast<float>(p.top_p));
    entries().f32("general.sampling.min_p", static_cast<float>(p.min_p));
    entries().f32("general.sampling.penalty_repeat", static_cast<float>(p.repeat_penalty));
    entries().i32("general.sampling.penalty_last_n", p.repeat_last_n);
  }

  // The end-of-text ids. The BOS id is written with the tokenizer.
  Result<void> special_ids() {
    constexpr std::array kNames{"eos", "eot", "eom"};
    for (size_t i = 0; i < config_.eos.size() && i < kNames.size(); ++i)
      entries().u32(fmt::format("tokenizer.ggml.{}_token_id", kNames[i]), static_cast<uint32_t>(config_.eos[i]));
    for (size_t i = kNames.size(); i < config_.eos.size(); ++i)
      outline_.notes.push_back(
          fmt::format("token {} does not end a text in the file: GGUF has keys for three such tokens", config_.eos[i]));
    return {};
  }

  Result<void> tokenizer(const ModelFiles& files) {
    const fs::path file = options_.tokenizer.empty() ? files.tokenizer : fs::path(options_.tokenizer);
    if (file.empty() || !options_.with_tokenizer) {
      if (options_.with_tokenizer)
        outline_.notes.push_back("there is no tokenizer beside the model, so the file has none");
      entries().string("tokenizer.ggml.model", "no_vocab");  // as llama.cpp names it
      if (config_.bos) entries().u32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(*config_.bos));
      return {};
    }
    KVASIR_TRY(const auto tokenizer, open_tokenizer_file(file, config_.vocab));
    auto owned = gguf_vocab_of(model_of(*tokenizer), config_.vocab, names_->rstrip_but);
    if (!owned)
      return fail(owned.error().kind, owned.error().what, vocabulary_file(file).string(),
                  "another file of the same vocabulary as QuantizeOptions::tokenizer, or "
                  "QuantizeOptions::with_tokenizer = false");
    vocabulary(owned->vocab);
    chat_template();
    return {};
  }

  void vocabulary(const GgufVocab& v) {
    const auto id = [&](const char* name, std::optional<int> value) {
      if (value) entries().u32(fmt::format("tokenizer.ggml.{}_token_id", name), static_cast<uint32_t>(*value));
    };
    entries().string("tokenizer.ggml.model", v.model);
    entries().string("tokenizer.ggml.pre", v.pre);
    entries().strings("tokenizer.ggml.tokens", v.tokens);
    if (!v.scores.empty()) entries().f32s("tokenizer.ggml.scores", v.scores);
    entries().i32s("tokenizer.ggml.token_type", v.types);
    if (v.model == kGgufByteLevel) entries().strings("tokenizer.ggml.merges", v.merges);
    id("bos", v.bos ? v.bos : config_.bos);
    id("unknown", v.unk);
    entries().boolean("tokenizer.ggml.add_bos_token", v.add_bos.value_or(false));
    if (v.add_space_prefix) entries().boolean("tokenizer.ggml.add_space_prefix", *v.add_space_prefix);
  }

  // Copies the chat template if it is a plain text; a folder may have it in other forms, or none.
  void chat_template() {
    const auto view = ConfigView::read(fs::path(where_) / "tokenizer_config.json");
    if (!view) return;
    const auto text = view->get_string_or("chat_template", "");
    if (text && !text->empty()) entries().string("tokenizer.chat_template", *text);
  }

  const std::string where_;
  const QuantizeOptions& options_;
  std::optional<TypeChooser> types_;
  const Family* family_ = nullptr;
  const GgufNames* names_ = nullptr;
  ModelConfig config_;
  const RopeConfig* rope_ = nullptr;
  GgufOutline outline_;
};

// ---- from GGUF ----------------------------------------------------------------------------------------------------

bool copied(std::string_view key, bool with_tokenizer) {
  if (key == "general.file_type" || key == "general.quantization_version" || key == "general.alignment") return false;
  if (key.starts_with("split.")) return false;
  return with_tokenizer || !key.starts_with("tokenizer.") || key.ends_with("_token_id");
}

Result<GgufOutline> outline_of_gguf(const fs::path& path, const QuantizeOptions& options) {
  KVASIR_TRY(const ModelFiles files, read_model_files(path));
  // Refuses models that Kvasir does not support.
  KVASIR_TRY(const ModelDescription description, describe_model(files, path.string()));
  KVASIR_TRY(GgufFile file, open_gguf(path));
  if (!options.tokenizer.empty())
    return fail(Error::bad_argument, "a GGUF file keeps the tokenizer that it has", "QuantizeOptions::tokenizer",
                "QuantizeOptions::with_tokenizer = false, or the model's folder");
  KVASIR_TRY(TypeChooser types, TypeChooser::create(options.type, options.types, description.config));
  GgufOutline outline;
  for (const auto& [key, value] : file.metadata.entries)
    if (copied(key, options.with_tokenizer)) outline.entries.copy(key, value);
  if (!options.with_tokenizer) outline.entries.string("tokenizer.ggml.model", "no_vocab");
  outline.entries.u32("general.file_type", types.type().number);
  outline.entries.u32("general.quantization_version", kQuantizationVersion);
  outline.source = std::move(file.tensors);
  std::vector<const TensorInfo*> order;
  for (const TensorInfo& tensor : outline.source.tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return std::pair(a->file, a->offset) < std::pair(b->file, b->offset);
  });
  for (const TensorInfo* tensor : order) {
    KVASIR_CHECK(refuse_integers(*tensor, path.string()));
    outline.tensors.push_back({.decl = {tensor->name, &types.choose(tensor->name, tensor->shape), tensor->shape},
                               .from = tensor->codec,
                               .data = outline.source.data(*tensor)});
  }
  KVASIR_TRY(outline.notes, types.finish());
  return outline;
}

}  // namespace

int64_t TensorOutline::rows() const {
  int64_t n = 1;
  for (size_t i = 0; i + 1 < decl.shape.size(); ++i) n *= decl.shape[i];
  return n;
}

int64_t TensorOutline::source_row(int64_t r) const {
  if (pair_dim == 0) return r;
  const int64_t in_group = r % pair_dim;
  return r - in_group + in_group % 2 * (pair_dim / 2) + in_group / 2;
}

void TensorOutline::row(int64_t r, float* out) const {
  const auto decode = [&](int64_t element, float* to, int64_t n) {
    from->decode(data.data() + static_cast<size_t>(element) * static_cast<size_t>(from->block_bytes), to, n);
  };
  const bool vector = decl.shape.size() == 1;
  if (!transpose && !(vector && pair_dim > 0)) return decode(source_row(r) * cols(), out, cols());
  for (int64_t c = 0; c < cols(); ++c) decode(vector ? source_row(c) : c * rows() + r, out + c, 1);
}

Result<GgufOutline> outline_gguf(const fs::path& model, const QuantizeOptions& options) {
  if (is_gguf(model) || model.extension() == ".gguf") return outline_of_gguf(model, options);
  return FolderPlanner(model, options).run();
}

Result<void> check_gguf_output(const fs::path& out, const fs::path& model, bool force) {
  std::error_code ec;
  if (out.extension() != ".gguf")
    return fail(Error::bad_argument, "the output's name does not end in .gguf", out.string(), "NAME.gguf");
  if (!fs::exists(out, ec)) return {};
  if (fs::equivalent(out, model, ec))
    return fail(Error::bad_argument, "is the model itself", out.string(), "another name");
  if (!fs::is_regular_file(out, ec))
    return fail(Error::bad_argument, "exists and is not a file", out.string(), "another name");
  if (!force)
    return fail(Error::bad_argument, "exists", out.string(),
                "another name, or QuantizeOptions::force = true to replace it");
  return {};
}

}  // namespace kvasir
