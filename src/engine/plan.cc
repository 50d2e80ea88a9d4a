// plan(): the memory that a run would take, from a config alone or from an opened model.
#include <kvasir/plan.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "arch/network.h"
#include "base/budget.h"
#include "base/ranges.h"
#include "base/system.h"
#include "cache/kv_type.h"
#include "engine/budget_fit.h"
#include "engine/model_files.h"
#include "engine/model_impl.h"
#include "engine/session_shape.h"
#include "format/gguf.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

// The facts about a model that plan() needs, opened or not.
struct Subject {
  std::string name;
  const Family* family = nullptr;
  ModelConfig config;
  WeightSizes sizes;
  size_t unread_bytes = 0;  // rows are looked up, not all read
  size_t expert_bytes = 0;  // all experts from which tokens choose
  size_t tokenizer_bytes = 0;
  std::vector<std::string> files;
  std::vector<Ignored> ignored;
};

bool is_config_file(const std::string& path) { return fs::path(path).extension() == ".json" && !is_gguf(path); }

size_t elements(const TensorSpec& spec) {
  size_t n = spec.present ? 1 : 0;
  for (int64_t dim : spec.shape) n *= static_cast<size_t>(dim);
  return n;
}

// Weight bytes of a config without weights: every tensor in one type. A tied head is the embedding, counted once.
void count_weights(const Codec& type, Subject* s) {
  const TensorTable table = s->family->tensor_table(s->config);
  size_t n = 0, embed = 0, largest = 0, experts = 0, layers_with_experts = 0;
  for (const TensorSpec& spec : table.embed) embed += elements(spec);
  for (const auto& layer : table.layers) {
    size_t in_layer = 0, of_experts = 0;
    for (const TensorSpec& spec : layer) (spec.of_expert ? of_experts : in_layer) += elements(spec);
    largest = std::max(largest, in_layer);
    layers_with_experts += of_experts > 0 ? 1 : 0;
    experts += of_experts;
    n += in_layer + of_experts;
  }
  for (const TensorSpec& spec : table.head) n += elements(spec);
  const size_t tied = s->config.tied_head ? elements(table.head.back()) : 0;
  s->sizes.all = type.row_bytes(static_cast<int64_t>(n + embed - tied));
  s->unread_bytes = type.row_bytes(static_cast<int64_t>(embed - tied));
  s->sizes.largest_layer = type.row_bytes(static_cast<int64_t>(largest));
  s->expert_bytes = type.row_bytes(static_cast<int64_t>(experts));
  if (experts == 0) return;
  s->sizes.expert = s->expert_bytes / layers_with_experts / static_cast<size_t>(s->config.experts.count);
  s->sizes.experts_used = s->config.experts.used;
}

// Bytes of the experts' tensors, each in its stored type.
size_t stored_expert_bytes(const Network& network) {
  size_t bytes = 0;
  for (const auto& layer : network.family().tensor_table(network.config()).layers)
    for (const TensorSpec& spec : layer) {
      if (!spec.of_expert) continue;
      const auto tensor = find_tensor(network.family(), spec, network.tensors(), "");
      if (tensor && *tensor != nullptr) bytes += (*tensor)->bytes;
    }
  return bytes;
}

// Bytes of weights that one token reads: all except unread rows and the experts that it does not use.
size_t active_bytes(const Subject& s) {
  const ExpertConfig& e = s.config.experts;
  const size_t idle =
      e.count == 0 ? 0 : s.expert_bytes / static_cast<size_t>(e.count) * static_cast<size_t>(e.count - e.used);
  return s.sizes.all - s.unread_bytes - idle;
}

Result<Subject> from_config(const PlanRequest& request) {
  Subject s;
  KVASIR_TRY(const ConfigView file, ConfigView::read(request.model));
  KVASIR_TRY(ModelDescription description, describe_config(file));
  s.family = description.family;
  s.config = std::move(description.config);
  s.ignored = std::move(description.ignored);
  s.name = request.model;
  const ConfigView view = text_config(file);
  KVASIR_TRY(std::string old_dtype, view.get_string_or("torch_dtype", "float16"));
  KVASIR_TRY(std::string dtype, view.get_string_or("dtype", std::move(old_dtype)));
  if (!request.dtype.empty()) dtype = request.dtype;
  KVASIR_TRY(const auto type, catalog::find_weight_type(dtype));
  count_weights(*find_codec(type.name), &s);
  return s;
}

Result<Subject> from_model(const PlanRequest& request) {
  if (!request.dtype.empty())
    return fail(Error::bad_argument, fmt::format("{} has weights, and a type of its own", request.model),
                "PlanRequest::dtype", "a bare config.json, or the model in another type");
  KVASIR_TRY(
      const auto model,
      Model::open(request.model,
                  {.weights = WeightsMode::mapped, .tokenizer = {}, .with_tokenizer = request.ram > 0, .ram = 0}));
  Subject s;
  s.name = model->info().name;
  s.family = &model->impl().network->family();
  s.config = model->impl().network->config();
  const Codec* type = find_codec(model->info().weight_type);
  count_weights(*type, &s);
  s.sizes = model->impl().network->weight_sizes();
  s.expert_bytes = stored_expert_bytes(*model->impl().network);
  s.tokenizer_bytes = model->info().tokenizer_bytes;
  s.files = model->files();
  s.ignored = model->info().ignored;
  return s;
}

size_t session_bytes_of(const Subject& s, const LayoutInfo& layout, CacheShape shape, int positions) {
  shape.max_ctx = positions;
  return session_bytes(s.config, layout, shape);
}

int64_t users(const Subject& s, const LayoutInfo& layout, const CacheShape& shape, int chat, size_t bytes,
              size_t kv_bytes) {
  const size_t kv = std::max<size_t>(1, layout.peak_bytes(shape, chat));
  return static_cast<int64_t>(std::min(bytes / session_bytes_of(s, layout, shape, chat), kv_bytes / kv));
}

size_t minus(size_t a, size_t b) { return a > b ? a - b : 0; }

// Weights that a run keeps in the memory that one sequence leaves: first those that every token reads, then experts. A
// token finds as many of its experts in memory as if it chose them with equal probability.
void add_kept(const Subject& s, size_t sequence_bytes, WeightChoice* c) {
  const size_t room = minus(c->left, sequence_bytes), shared = s.sizes.all - s.unread_bytes - s.expert_bytes;
  const size_t kept = std::min(room, shared), kept_experts = std::min(room - kept, s.expert_bytes);
  c->kept_bytes = kept + kept_experts;
  c->disk_bytes = shared - kept;
  if (s.expert_bytes == 0) return;
  const double absent = 1 - static_cast<double>(kept_experts) / static_cast<double>(s.expert_bytes);
  const size_t used =
      s.expert_bytes / static_cast<size_t>(s.config.experts.count) * static_cast<size_t>(s.config.experts.used);
  c->disk_bytes += static_cast<size_t>(absent * static_cast<double>(used));
}

WeightChoice choice_of(WeightsMode mode, const Subject& s, const LayoutInfo& layout, const CacheShape& shape, int chat,
                       size_t free, size_t kv_ram) {
  WeightChoice c;
  c.mode = mode;
  c.weights_bytes = bytes_in_memory(mode, s.sizes);
  c.left = free > c.weights_bytes ? free - c.weights_bytes : 0;
  c.positions = positions_that_fit(s.config, layout, shape, c.left, kv_ram);
  c.users = users(s, layout, shape, chat, c.left, kv_ram);
  if (mode == WeightsMode::streamed) add_kept(s, session_bytes_of(s, layout, shape, chat), &c);
  return c;
}

int threads_of(const PlanRequest& request) { return request.threads == 0 ? default_threads() : request.threads; }

size_t left_before_weights(const PlanRequest& request, const Subject& s) {
  return minus(request.ram, kProcessBytes + s.tokenizer_bytes);
}

// The way of holding the weights that a run under this budget chooses.
WeightsMode chosen_mode(const PlanRequest& request, const Subject& s) {
  return budgeted_mode(bytes_in_memory(WeightsMode::resident, s.sizes), left_before_weights(request, s));
}

size_t left_after_weights(const PlanRequest& request, const Subject& s) {
  return minus(left_before_weights(request, s), bytes_in_memory(chosen_mode(request, s), s.sizes));
}

// Predicts a run under this budget with the run's own arithmetic (budget_fit.h).
void plan_ram(const PlanRequest& request, const Subject& s, const LayoutInfo& layout, const CacheShape& shape,
              PlanReport* r) {
  r->tokenizer_bytes = s.tokenizer_bytes;
  r->process_bytes = kProcessBytes;
  r->files = s.files;
  const size_t kv_ram = request.kv_ram > 0 ? request.kv_ram : SIZE_MAX;
  const size_t free = minus(left_before_weights(request, s), r->activation_bytes);
  for (const WeightsMode mode : {WeightsMode::resident, WeightsMode::streamed})
    r->choices.push_back(choice_of(mode, s, layout, shape, r->chat, free, kv_ram));
  const WeightChoice& chosen = r->choices[chosen_mode(request, s) == WeightsMode::resident ? 0 : 1];
  r->users_that_fit = chosen.users;
  if (chosen.positions > 0) r->weights_mode = chosen.mode;
  for (const KvType& type : kv_types()) {
    CacheShape other = shape;
    other.k = other.v = &type;
    r->kv_types.push_back({type.name, other.position_bytes(),
                           positions_that_fit(s.config, layout, other, chosen.left, kv_ram),
                           users(s, layout, other, r->chat, chosen.left, kv_ram)});
  }
}

// Bytes of K and V that a token reads after `positions` others.
size_t history_bytes(const CacheShape& shape, int positions) {
  size_t bytes = 0;
  for (int layer = 0; layer < shape.layers; ++layer) {
    const int window = shape.window(layer), seen = window == 0 ? positions : std::min(positions, window + shape.sinks);
    bytes += static_cast<size_t>(seen) * (shape.k_row_bytes() + shape.v_row_bytes());
  }
  return bytes;
}

// Explains a sequence's bytes as whole positions of all layers, or as whole pages if they are not.
std::string explain_sequence(const PlanReport& r, const LayoutInfo& layout, const CacheShape& shape) {
  const size_t a_token = r.kv_bytes_per_token;
  if (a_token == 0 || r.kv_bytes % a_token != 0 ||
      r.kv_bytes / a_token < static_cast<size_t>(layout.recomputes ? 0 : r.chat))
    return fmt::format("a sequence of {} = {} B ({}: whole pages of K and of V in {} layers, window {})", r.chat,
                       r.kv_bytes, r.layout, shape.layers, shape.window_policy());
  return fmt::format("a sequence of {} = {} positions ({}) x {} B = {} B", r.chat, r.kv_bytes / a_token, r.layout,
                     a_token, r.kv_bytes);
}

std::vector<std::string> explain(const PlanReport& r, const LayoutInfo& layout, const CacheShape& shape) {
  const auto row = [&](const char* what, const Codec& codec) {
    const size_t blocks = codec.row_bytes(shape.head_dim) / static_cast<size_t>(codec.block_bytes);
    return fmt::format("{} row   = {} KV heads x {} blocks x {} B = {} B", what, shape.kv_heads, blocks,
                       codec.block_bytes, static_cast<size_t>(shape.kv_heads) * codec.row_bytes(shape.head_dim));
  };
  return {row("K", *shape.k->codec), row("V", *shape.v->codec),
          fmt::format("a token = {} layers x ({} + {}) B = {} B", shape.layers, shape.k_row_bytes(),
                      shape.v_row_bytes(), r.kv_bytes_per_token),
          explain_sequence(r, layout, shape)};
}

}  // namespace

Result<PlanReport> plan(const PlanRequest& request) {
  KVASIR_CHECK(check_at_least(request.threads, 0, "threads", "PlanRequest::threads"));
  KVASIR_CHECK(check_at_least(request.prefill_chunk, 1, "tokens", "PlanRequest::prefill_chunk"));
  KVASIR_TRY(const Subject s, is_config_file(request.model) ? from_config(request) : from_model(request));
  KVASIR_TRY(const LayoutInfo* layout, find_layout(request.session.layout));
  PlanReport r;
  KVASIR_TRY(const Footprint footprint, Footprint::of(*s.family, s.config));
  r.prefill_chunk = budgeted_chunk(footprint, std::min(request.prefill_chunk, s.config.max_ctx), threads_of(request),
                                   request.ram, left_after_weights(request, s));
  KVASIR_TRY(const CacheShape shape, session_shape(*s.family, s.config, request.session, *layout, r.prefill_chunk));
  if (request.chat < 0 || request.chat > shape.max_ctx)
    return fail(Error::bad_argument,
                fmt::format("a chat of {} positions in a context of {}", request.chat, shape.max_ctx),
                "PlanRequest::chat", fmt::format("1..{}", shape.max_ctx));
  r.model = s.name;
  r.ignored = s.ignored;
  r.family = s.config.family;
  r.layout = layout->name;
  r.kv_type_k = shape.k->name;
  r.kv_type_v = shape.v->name;
  r.layers = shape.layers;
  r.heads = s.config.heads;
  r.kv_heads = shape.kv_heads;
  r.head_dim = shape.head_dim;
  r.ctx = shape.max_ctx;
  r.chat = request.chat > 0 ? request.chat : shape.max_ctx;
  r.kv_bytes_per_token = shape.position_bytes();
  r.kv_bytes = layout->bytes(shape, r.chat);
  r.kv_peak_bytes = layout->peak_bytes(shape, r.chat);
  r.weights_bytes = s.sizes.all;
  r.activation_bytes = footprint.activation_bytes(r.prefill_chunk, threads_of(request));
  r.active_weights_bytes = active_bytes(s);
  r.experts = s.config.experts.count;
  r.experts_used = s.config.experts.used;
  r.read_bytes_per_token = r.active_weights_bytes + history_bytes(shape, r.chat);
  r.explanation = explain(r, *layout, shape);
  // A pooled layout reserves blocks as they are needed; any other reserves all that its context may take.
  const size_t promised = layout->pooled ? r.kv_bytes : layout->peak_bytes(shape, shape.max_ctx);
  if (request.kv_ram > 0 && promised > 0) r.users_that_fit = static_cast<int64_t>(request.kv_ram / promised);
  if (request.ram > 0) plan_ram(request, s, *layout, shape, &r);
  return r;
}

double decode_limit(const PlanReport& r, const Rates& rates) {
  return rates.memory / static_cast<double>(r.read_bytes_per_token);
}

std::optional<double> decode_limit(const WeightChoice& c, const PlanReport& r, const Rates& rates) {
  if (c.disk_bytes == 0) return decode_limit(r, rates);
  if (!rates.disk) return std::nullopt;
  return std::min(decode_limit(r, rates), *rates.disk / static_cast<double>(c.disk_bytes));
}

}  // namespace kvasir
