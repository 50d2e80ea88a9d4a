// Opening a model: finding it, its tokenizer, loading its weights, its fingerprint.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "base/hub_cache.h"
#include "base/quote.h"
#include "base/rss.h"
#include "base/system.h"
#include "engine/budget_fit.h"
#include "engine/fingerprint_store.h"
#include "engine/model_files.h"
#include "engine/model_impl.h"
#include "format/gguf.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

constexpr const char* kMoreRam = "a larger ModelOptions::ram";

Result<std::shared_ptr<const Tokenizer>> tokenizer_for(const fs::path& path, int vocab) {
  KVASIR_TRY(auto tokenizer, open_tokenizer_file(path, vocab));
  // Padding tokens and the like may have no row of weights; a text that contains one is refused. A word without a row
  // means that the vocabulary belongs to another model.
  for (int id = vocab; id < tokenizer->vocab_size(); ++id) {
    if (tokenizer->piece(id).empty() || tokenizer->is_added(id)) continue;
    return fail(Error::damaged, fmt::format("{} tokens, the model has logits for {}", tokenizer->vocab_size(), vocab),
                vocabulary_file(path).string(), "the tokenizer that belongs to these weights");
  }
  return tokenizer;
}

WeightsMode choose_mode(WeightsMode asked, const TensorDir& dir, size_t bytes, const Budget& budget) {
  if (asked != WeightsMode::automatic) return asked;
  if (budget.limited()) return budgeted_mode(bytes_in_memory(WeightsMode::resident, {.all = bytes}), budget.left());
  if (bytes <= available_memory_bytes() / 2) return WeightsMode::resident;
  const bool scattered = std::ranges::any_of(dir.tensors, [](const TensorInfo& t) { return t.scattered.has_value(); });
  return scattered ? WeightsMode::streamed : WeightsMode::mapped;
}

// Number of matrix elements, over all layers, that one token is multiplied with; only experts in use count.
int64_t layer_weights(const Family& family, const ModelConfig& config) {
  int64_t total = 0, of_experts = 0;
  for (const auto& layer : family.tensor_table(config).layers)
    for (const TensorSpec& spec : layer)
      if (spec.present && spec.shape.size() > 1)
        (spec.of_expert ? of_experts : total) +=
            std::accumulate(spec.shape.begin(), spec.shape.end(), int64_t{1}, std::multiplies<>());
  const ExpertConfig& experts = config.experts;
  return experts.count == 0 ? total : total + of_experts / experts.count * experts.used;
}

size_t tensor_bytes(const TensorDir& dir) {
  size_t total = 0;
  for (const TensorInfo& tensor : dir.tensors) total += tensor.bytes;
  return total;
}

std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders;
  if (const char* env = std::getenv("KVASIR_MODELS"); env != nullptr && *env != '\0') folders.emplace_back(env);
  std::error_code ec;
  const fs::path program = fs::read_symlink("/proc/self/exe", ec).parent_path();
  for (const char* place : {"models", "../models", "../share/kvasir/models"}) folders.push_back(program / place);
  return folders;
}

}  // namespace

Result<std::string> find_model(const std::string& name) {
  std::error_code ec;
  if (auto dangling = dangling_link(name)) return tl::unexpected(std::move(*dangling));
  if (fs::exists(name, ec)) return name;
  if (name.find('/') == std::string::npos)
    for (const fs::path& folder : model_folders())
      if (is_there(folder / name / "config.json") || fs::is_regular_file(folder / name, ec))
        return fs::weakly_canonical(folder / name, ec).string();
  if (const auto wanted = hub::parse_wanted(name)) return hub::pulled_model(hub::cache_folder(), *wanted);
  return fail(Error::not_found, "no such model", name,
              "a path, a model that ships with Kvasir (tales, tales-gpt2), or OWNER/NAME that has been pulled");
}

Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const std::string& name_or_path) {
  KVASIR_TRY(const fs::path path, find_model(name_or_path));
  std::error_code ec;
  const bool llama2c = !fs::is_directory(path, ec) && path.extension() == ".bin" && !is_gguf(path);
  if (!llama2c) return open_tokenizer_file(path, std::nullopt);
  KVASIR_TRY(const ModelFiles files, read_model_files(path));
  KVASIR_TRY(const int64_t vocab, files.config.get_int("vocab_size", 1, 1 << 24));
  if (files.tokenizer.empty())
    return fail(Error::not_found, "no tokenizer lies beside this model", path.string(), "a tokenizer.bin");
  return open_tokenizer_file(files.tokenizer, static_cast<int>(vocab));
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

const ModelInfo& Model::info() const { return impl_->info; }
WeightStats Model::weight_stats() const {
  const WeightSource& source = impl_->network->source();
  WeightStats stats{.memory_bytes = source.resident_bytes()};
  if (source.experts() == nullptr) return stats;
  const ExpertStats experts = source.experts()->stats();
  stats.experts = experts.used;
  stats.experts_read = experts.read;
  stats.experts_guessed = experts.guessed;
  stats.guesses_used = experts.guesses_used;
  return stats;
}
const std::shared_ptr<const Tokenizer>& Model::tokenizer() const { return impl_->tokenizer; }
const SamplingParams& Model::sampling_defaults() const { return impl_->sampling; }
const std::vector<std::string>& Model::files() const { return impl_->files; }

Result<void> Model::Impl::take(size_t bytes, const std::string& owner, const std::string& hint) {
  KVASIR_TRY(auto share, memory.budget().take(bytes, owner, owner + " need", hint));
  shares.push_back(std::move(share));
  return {};
}

// Adds the tokenizer's end-of-turn tokens to those that end a text. A GGUF file names its end-of-turn token by itself.
// A folder has one list of end tokens: with two or more it is complete, a single one is only the end of text.
void Model::Impl::add_turn_ends(bool inside_gguf) {
  if (!inside_gguf && info.eos.size() > 1) return;
  for (const int id : tokenizer->end_of_turn()) {
    const bool known = std::find(info.eos.begin(), info.eos.end(), id) != info.eos.end();
    if (!known && id < info.vocab) info.eos.push_back(id);
  }
}

Result<void> Model::check_ids(std::span<const int> ids, const std::string& where) const {
  for (const int id : ids) {
    if (id >= 0 && id < info().vocab) continue;
    if (tokenizer() == nullptr || tokenizer()->piece(id).empty())
      return fail(Error::bad_argument,
                  fmt::format("token id {} is out of range, the vocabulary has {}", id, info().vocab), where,
                  fmt::format("ids 0..{}", info().vocab - 1));
    return fail(Error::bad_argument,
                fmt::format("token {} ({}) is out of range: the weights have rows for {} tokens", id,
                            in_quotes(tokenizer()->piece(id)), info().vocab),
                where, "a text without it");
  }
  return {};
}

Result<void> Model::Impl::open_tokenizer(const std::string& file, bool inside_gguf) {
  const size_t before = heap_bytes();
  KVASIR_TRY(tokenizer, tokenizer_for(file, info.vocab));
  add_turn_ends(inside_gguf);
  info.ignored.insert(info.ignored.end(), tokenizer->ignored().begin(), tokenizer->ignored().end());
  const size_t after = heap_bytes();
  info.tokenizer_bytes = after > before ? after - before : 0;
  return take(info.tokenizer_bytes, "tokenizer", kMoreRam);
}

Result<std::shared_ptr<const Model>> Model::open(const std::string& name_or_path, const ModelOptions& options) {
  KVASIR_TRY(const std::string path, find_model(name_or_path));
  KVASIR_TRY(ModelFiles files, read_model_files(path));
  KVASIR_TRY(ModelDescription description, describe_model(files, path));
  const ModelConfig& config = description.config;
  auto model = std::make_unique<Impl>(options);
  model->info = {.name = hub::model_name(path),
                 .path = path,
                 .family = config.family,
                 .weight_type = {},
                 .layers = config.layers,
                 .hidden = config.hidden,
                 .heads = config.heads,
                 .kv_heads = config.kv_heads,
                 .head_dim = config.head_dim,
                 .ffn = config.ffn,
                 .vocab = config.vocab,
                 .max_ctx = config.max_ctx,
                 .layer_weights = layer_weights(*description.family, config),
                 .takes_window = !config.ropes.empty() && config.windows.empty() && !config.norm_after_rope,
                 .bos = config.bos,
                 .eos = config.eos,
                 .ignored = std::move(description.ignored)};
  model->sampling = description.sampling;
  KVASIR_CHECK(model->take(kProcessBytes, "code and small objects", kMoreRam));
  if (!options.tokenizer.empty()) files.tokenizer = options.tokenizer;
  const bool inside_gguf = options.tokenizer.empty() && files.format.starts_with("GGUF");
  if (!files.tokenizer.empty() && options.with_tokenizer)
    KVASIR_CHECK(model->open_tokenizer(files.tokenizer, inside_gguf));
  for (const auto& file : files.tensors.files) model->files.push_back(file->path().string());
  KVASIR_CHECK(
      model->load_weights(*description.family, config, std::make_shared<TensorDir>(std::move(files.tensors)), options));
  return std::make_shared<const Model>(std::move(model));
}

// Weights that are whole in memory (resident or mapped) are reserved before they are read.
Result<void> Model::Impl::load_weights(const Family& family, const ModelConfig& config,
                                       std::shared_ptr<const TensorDir> dir, const ModelOptions& options) {
  const size_t whole = tensor_bytes(*dir);
  const WeightsMode mode = choose_mode(options.weights, *dir, whole, memory.budget());
  const bool streamed = mode == WeightsMode::streamed;
  if (!streamed)
    KVASIR_CHECK(take(bytes_in_memory(mode, {.all = whole}), "weights",
                      "a larger ModelOptions::ram, or ModelOptions::weights = streamed"));
  KVASIR_TRY(network, Network::load(family, config, std::move(dir), mode, info.path, memory.shared_budget()));
  if (streamed) KVASIR_CHECK(take(bytes_in_memory(mode, network->weight_sizes()), "weights", kMoreRam));
  for (const auto& spare : network->source().spare()) memory.pool()->add_holder(spare, &memory.budget());
  info.weight_type = network->weight_type();
  info.parameters = network->parameters();
  info.weights_bytes = network->weights_bytes();
  info.weights_mode = mode;
  return {};
}

// Resident weights cannot change. Other weights stay in files, which may change at any time: the fingerprint holds for
// one state of them, and in another state the weights must turn out to be the same.
Result<std::string> Model::fingerprint() const {
  const MutexLock lock(impl_->mutex);
  return impl_->find_fingerprint();
}

Result<std::string> Model::Impl::find_fingerprint() const {
  const TensorDir& tensors = network->tensors();
  const bool in_memory = network->source().mode() == WeightsMode::resident, known = !fingerprint.empty();
  if (in_memory && known) return fingerprint;
  KVASIR_TRY(std::string now, stamps_now(tensors));
  if (known && now == stamps) return fingerprint;
  const bool as_opened = now == stamps_opened(tensors);
  const auto changed = fail(Error::damaged, "the model's files were changed while they are in use", info.path,
                            "open the model again; replace files in use by new files, and do not edit them");
  if (!in_memory && !known && !as_opened) return changed;
  const FingerprintKey key = fingerprint_key(tensors, network->config().canonical());
  std::optional<std::string> found = as_opened ? remembered_fingerprint(key) : std::nullopt;
  if (!found) {
    const int64_t begun = file_clock_ns();
    KVASIR_TRY(found, network->fingerprint());
    KVASIR_TRY(const std::string after, stamps_now(tensors));
    if (!in_memory && after != now) return changed;
    if (as_opened && after == now) remember_fingerprint(key, *found, begun);
  }
  if (known && *found != fingerprint) return changed;
  stamps = std::move(now);
  return fingerprint = std::move(*found);
}

}  // namespace kvasir
