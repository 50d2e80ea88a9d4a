// Binds tensors to the family's roles and runs the forward pass.
#include "arch/network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arch/layer_ops.h"
#include "base/float_env.h"

namespace kvasir {

// ---- loading ----------------------------------------------------------------------------------------------------

Result<const TensorInfo*> Network::find(const TensorSpec& spec, const TensorDir& dir, const std::string& where) const {
  KVASIR_TRY(const TensorInfo* info, find_tensor(*family_, spec, dir, where));
  if (info != nullptr && info->codec == nullptr)
    return fail(
        Error::unsupported,
        fmt::format("tensor \"{}\" has dtype {}, which is not a weight type", info->name_in_file(), info->dtype), where,
        "a type that Kvasir reads: docs/models.md");
  return info;
}

namespace {

RowOrder row_order(const TensorSpec& spec, const TensorInfo& info) {
  if (info.pair_dim != 0) return {info.pair_dim, 2, 1};
  if (spec.by_head == 0 || info.converted) return {};
  return {spec.shape[0], 3, spec.shape[0] / (3 * spec.by_head)};
}

}  // namespace

Result<Network::Group> Network::bind(const std::vector<TensorSpec>& specs, const TensorDir& dir,
                                     const std::string& where) const {
  Group group;
  for (const TensorSpec& spec : specs) {
    KVASIR_TRY(const TensorInfo* info, find(spec, dir, where));
    Matrix matrix;
    std::vector<float> vector;
    if (info != nullptr && spec.shape.size() == 1) {
      vector.resize(static_cast<size_t>(spec.shape[0]));
      group.vector_bytes += info->bytes;
      std::vector<std::byte> bytes(info->bytes);
      KVASIR_CHECK(read_tensor(dir, *info, 0, bytes));
      info->codec->decode(bytes.data(), vector.data(), spec.shape[0]);
      if (spec.less_one && !info->converted)
        for (float& gain : vector) gain += 1.0f;
    } else if (info != nullptr) {
      const int64_t rows = spec.conv1d ? spec.shape[1] : spec.shape[0];
      const int64_t cols = spec.conv1d ? spec.shape[0] : spec.shape[1];
      matrix = {info->codec, nullptr, rows, cols, spec.conv1d != info->transposed, row_order(spec, *info)};
      if (matrix.conv1d && info->codec->act != Act::f32)
        return fail(Error::unsupported,
                    fmt::format("tensor \"{}\" has integer weights that are stored by column", info->name), where,
                    "a GGUF file, which stores them by row");
    }
    group.infos.push_back(vector.empty() ? info : nullptr);
    group.matrices.push_back(matrix);
    group.vectors.push_back(std::move(vector));
    group.orders.push_back(info != nullptr ? row_order(spec, *info) : RowOrder{});
    group.names.push_back(spec.name);
    group.grouped.push_back(spec.grouped);
    group.by_position.push_back(spec.by_position);
    group.of_expert.push_back(spec.of_expert);
  }
  return group;
}

// Whether each expert can be read by itself. A scattered tensor is assembled with its whole layer.
bool Network::experts_can_be_apart() const {
  for (const Group& group : groups_)
    for (size_t i = 0; i < group.infos.size(); ++i)
      if (group.of_expert[i] && group.infos[i] != nullptr && group.infos[i]->scattered) return false;
  return config_.experts.count > 0;
}

// Groups of the source: the layers, then slices of the head. Streamed experts are in no group.
WeightUse Network::weight_use(WeightsMode mode) {
  const bool streamed = mode == WeightsMode::streamed;
  WeightUse use;
  use.tables = groups_.front().infos;
  for (size_t l = 0; l < static_cast<size_t>(config_.layers); ++l)
    add_layer(groups_[l + 1], streamed && experts_can_be_apart(), &use);
  add_head(streamed, &use);
  if (!use.experts.empty()) use.experts_used = config_.experts.used;
  return use;
}

// The experts' matrices follow one another, those of one expert together.
void Network::add_layer(const Group& layer, bool experts_apart, WeightUse* use) const {
  auto& parts = use->groups.emplace_back();
  std::vector<TensorPart> of_experts;
  for (size_t i = 0; i < layer.infos.size(); ++i) {
    const bool apart = experts_apart && layer.of_expert[i];
    parts.push_back(TensorPart::all_of(apart ? nullptr : layer.infos[i]));
    if (apart && layer.infos[i] != nullptr) of_experts.push_back(TensorPart::all_of(layer.infos[i]));
  }
  if (!experts_apart) return;
  auto& experts = use->experts.emplace_back();
  const size_t matrices = of_experts.size() / static_cast<size_t>(config_.experts.count);
  for (auto part = of_experts.begin(); part != of_experts.end(); part += static_cast<std::ptrdiff_t>(matrices))
    experts.emplace_back(part, part + static_cast<std::ptrdiff_t>(matrices));
}

// The head is one slice, or several of about a layer's size if weights are streamed, so that memory never holds more
// than that. A head whose rows are stored in another order stays whole.
void Network::add_head(bool sliced, WeightUse* use) {
  const Matrix& head = groups_.back().matrices.back();
  const TensorInfo* stored = groups_.back().infos.back();
  const uint64_t row_bytes = stored->bytes / static_cast<uint64_t>(head.rows);
  sliced = sliced && !head.conv1d && head.order.group == 0;
  const auto fit = std::max<int64_t>(16, static_cast<int64_t>(weight_sizes().largest_layer / row_bytes) / 16 * 16);
  const int64_t most = sliced ? fit : head.rows;
  for (int64_t begin = 0; begin < head.rows; begin += most) {
    Slice slice{begin, head};
    slice.matrix.rows = std::min(most, head.rows - begin);
    use->groups.push_back(
        {{stored, row_bytes * static_cast<uint64_t>(begin), row_bytes * static_cast<uint64_t>(slice.matrix.rows)}});
    slices_.push_back(slice);
  }
}

Result<std::unique_ptr<Network>> Network::load(const Family& family, ModelConfig config,
                                               std::shared_ptr<const TensorDir> dir, WeightsMode mode,
                                               const std::string& where, std::shared_ptr<Budget> budget) {
  const FloatEnv env;  // rotations and vectors are computed here
  std::unique_ptr<Network> net(new Network);
  net->family_ = &family;
  net->config_ = std::move(config);
  net->dir_ = dir;
  for (const RopeConfig& rope : net->config_.ropes) net->ropes_.emplace_back(rope);
  KVASIR_TRY(net->footprint_, Footprint::of(family, net->config_));
  const TensorTable table = family.tensor_table(net->config_);
  std::vector<const std::vector<TensorSpec>*> lists{&table.embed};
  for (const auto& layer : table.layers) lists.push_back(&layer);
  lists.push_back(&table.head);
  for (const auto* specs : lists) {
    KVASIR_TRY(Group group, net->bind(*specs, *dir, where));
    for (const Matrix& m : group.matrices)
      if (m.codec != nullptr && m.codec->act == Act::q8) net->integer_cols_ = std::max(net->integer_cols_, m.cols);
    net->groups_.push_back(std::move(group));
  }
  net->head_bias_ = table.head_bias;
  KVASIR_TRY(net->source_, open_weights(dir, net->weight_use(mode), mode, std::move(budget)));
  for (const auto& file : dir->files) file->drop_pages();  // they were touched only to read the header
  return net;
}

std::string_view Network::weight_type() const {
  const TensorInfo* largest = nullptr;
  for (const Group& group : groups_)
    for (const TensorInfo* info : group.infos)
      if (info != nullptr && (largest == nullptr || info->bytes > largest->bytes)) largest = info;
  return largest != nullptr ? largest->codec->name : "";
}

size_t Network::weights_bytes() const {
  size_t total = source_->total_bytes();
  for (const Group& group : groups_) total += group.vector_bytes;
  return total;
}

WeightSizes Network::weight_sizes() const {
  const bool apart = experts_can_be_apart();
  WeightSizes sizes{.experts_used = apart ? config_.experts.used : 0};
  for (size_t l = 1; l + 1 < groups_.size(); ++l) {
    WeightUse use;
    add_layer(groups_[l], apart, &use);
    const auto bytes_of = [](const std::vector<TensorPart>& parts) {
      size_t bytes = 0;
      for (const TensorPart& part : parts) bytes += part.bytes;
      return bytes;
    };
    sizes.largest_layer = std::max(sizes.largest_layer, bytes_of(use.groups.front()));
    for (const auto& experts : use.experts)
      for (const auto& expert : experts) sizes.expert = std::max(sizes.expert, bytes_of(expert));
  }
  if (source_ != nullptr) sizes.all = weights_bytes();
  return sizes;
}

int64_t Network::parameters() const {
  int64_t total = 0;
  std::unordered_set<const TensorInfo*> seen;
  for (const Group& group : groups_)
    for (size_t i = 0; i < group.infos.size(); ++i) {
      total += static_cast<int64_t>(group.vectors[i].size());
      const TensorInfo* info = group.infos[i];
      if (info == nullptr || !seen.insert(info).second) continue;
      total += group.matrices[i].rows * group.matrices[i].cols;
    }
  return total;
}

// ---- the forward pass -------------------------------------------------------------------------------------------

namespace {

// Adds to a read error the layer in which it happened.
tl::unexpected<Error> in_layer(const std::string& layer, Error error) {
  error.what = layer + ": " + error.what;
  return tl::unexpected(std::move(error));
}

}  // namespace

Result<HeldWeights> Network::acquire_layer(int l, int next, Compute& compute) const {
  auto data = source_->acquire(l, next, compute.pool());
  if (!data) return in_layer(fmt::format("layer {}", l), std::move(data).error());
  const Group& g = groups_[static_cast<size_t>(l) + 1];
  return HeldWeights(*source_, l, *data, g.matrices, g.vectors);
}

// The last slice is followed by the next pass's first layer.
Result<HeldWeights> Network::acquire_slice(size_t slice, Compute& compute) const {
  const int group = config_.layers + static_cast<int>(slice);
  auto data = source_->acquire(group, slice + 1 < slices_.size() ? group + 1 : 0, compute.pool());
  if (!data) return in_layer("vocabulary head", std::move(data).error());
  return HeldWeights(*source_, group, *data, {slices_[slice].matrix});
}

Result<void> Network::check(std::span<const BatchItem> items) const {
  for (const BatchItem& item : items) {
    if (item.tokens.empty()) return fail(Error::bad_argument, "no tokens to run", "forward", "at least one token");
    if (item.first != item.cache->coverage())
      return fail(Error::bad_argument,
                  fmt::format("tokens start at position {}, the cache ends at {}", item.first, item.cache->coverage()),
                  "forward", "feed the tokens that the cache does not hold");
    const int64_t end = int64_t{item.first} + static_cast<int64_t>(item.tokens.size());
    const CacheShape& shape = item.cache->shape();
    if (end > shape.max_ctx)
      return fail(Error::too_long, fmt::format("{} tokens do not fit the context of {}", end, shape.max_ctx), "forward",
                  "a shorter prompt or a larger SessionOptions::ctx");
    if (item.cache->info().drops_old && item.tokens.size() > static_cast<size_t>(shape.lookahead))
      return fail(Error::bad_argument,
                  fmt::format("{} tokens in one pass, this cache allows {}", item.tokens.size(), shape.lookahead),
                  "forward", "fewer tokens at once");
    for (int id : item.tokens)
      if (id < 0 || id >= config_.vocab)
        return fail(Error::bad_argument,
                    fmt::format("token id {} is out of range, the vocabulary has {}", id, config_.vocab), "forward",
                    fmt::format("ids 0..{}", config_.vocab - 1));
  }
  return {};
}

namespace {

// Rows of the pass whose logits are wanted, ascending.
std::vector<int> wanted_rows(const Pass& pass) {
  std::vector<int> wanted;
  for (size_t i = 0; i < pass.items().size(); ++i)
    for (int t = pass.items()[i].wanted_from; t < static_cast<int>(pass.items()[i].tokens.size()); ++t)
      wanted.push_back(pass.first_row(i) + t);
  return wanted;
}

}  // namespace

Result<void> Network::forward(std::span<const BatchItem> items, Compute& compute, Workspace& workspace, Output* out,
                              const Trace* trace) const {
  const FloatEnv env;
  KVASIR_CHECK(check(items));
  int tokens = 0;
  std::vector<std::unique_ptr<Layout::Growth>> growths;
  for (const BatchItem& item : items) {
    tokens += static_cast<int>(item.tokens.size());
    KVASIR_TRY(auto growth, item.cache->prepare(item.first + static_cast<int>(item.tokens.size())));
    growths.push_back(std::move(growth));
  }
  KVASIR_CHECK(workspace.reserve(footprint_.workspace_floats(tokens) + sink_angle_floats(config_, items) +
                                 static_cast<size_t>(attend_state_floats(config_, items, compute.threads()))));
  KVASIR_CHECK(compute.reserve_scratch(footprint_.scratch_floats()));
  if (integer_cols_ > 0) {
    const ExpertConfig& experts = config_.experts;
    KVASIR_CHECK(compute.reserve_acts(tokens, integer_cols_));
    KVASIR_CHECK(
        compute.reserve_acts(int64_t{tokens} * experts.used, std::max(config_.hidden, experts.ffn), kArrangedRows));
  }
  for (size_t i = 0; i < items.size(); ++i) items[i].cache->apply(std::move(growths[i]));

  Pass pass(config_, ropes_, compute, workspace, items, trace);
  const std::vector<int> wanted = wanted_rows(pass);
  const auto one_pass = source_->begin_pass();
  pass.experts = source_->experts();
  KVASIR_CHECK(embed(pass));
  KVASIR_CHECK(run_layers(pass, !wanted.empty()));
  KVASIR_CHECK(read_out(pass, wanted, out->logits));
  if (workspace.most() > workspace.reserved())
    return fail(Error::internal,
                fmt::format("family {} took {} floats of activations for {} tokens, its dry pass counted {}",
                            family_->name, workspace.most(), tokens, workspace.reserved()),
                "forward", "reporting this, with the name of the model");
  out->errors = find_not_finite(pass, wanted, out->logits);
  for (size_t i = 0; i < items.size(); ++i)
    if (!out->errors[i]) items[i].cache->commit(items[i].first + static_cast<int>(items[i].tokens.size()));
  return {};
}

// Reads each table's rows for this pass, in the order of its tokens.
Result<void> Network::embed(Pass& pass) const {
  const size_t mark = pass.workspace().mark();
  const Group& tables = groups_.front();
  std::vector<Matrix> matrices = tables.matrices;
  for (size_t i = 0; i < matrices.size(); ++i) {
    Matrix& m = matrices[i];
    const size_t row = m.row_bytes();
    auto* rows = reinterpret_cast<std::byte*>(pass.take(m.cols).data);  // f32 rows are large enough: no type is wider
    for (int t = 0; t < pass.tokens(); ++t) {
      const auto index = static_cast<uint64_t>(tables.by_position[i] ? pass.position(t) : pass.id(t));
      auto read = source_->copy(*tables.infos[i], index * row, {rows + static_cast<size_t>(t) * row, row});
      if (!read) return in_layer("embedding", std::move(read).error());
    }
    m.data = rows;
    m.rows = pass.tokens();
  }
  family_->embed(pass, {matrices, tables.vectors});
  pass.workspace().back_to(mark);
  pass.trace(-1, "embedding", pass.x);
  return {};
}

void Network::look_ahead(Pass& pass, int l) const {
  pass.ahead = {};
  if (l < config_.layers) pass.ahead = {groups_[static_cast<size_t>(l) + 1].matrices, source_->peek(l)};
}

Result<void> Network::run_layers(Pass& pass, bool logits) const {
  const size_t mark = pass.workspace().mark();
  for (int l = 0; l < config_.layers; ++l) {
    const bool over = l + 1 == config_.layers && !logits;
    KVASIR_TRY(const HeldWeights held, acquire_layer(l, over ? 0 : l + 1, pass.compute()));
    if (pass.experts != nullptr && !over) look_ahead(pass, l + 1);
    family_->layer(pass, l, held.weights());
    if (pass.failed) return in_layer(fmt::format("layer {}", l), std::move(*pass.failed));
    pass.workspace().back_to(mark);
  }
  return {};
}

Result<void> Network::read_out(Pass& pass, std::span<const int> wanted, float* logits) const {
  const Group& head = groups_.back();
  const Rows normed = family_->final_norm(pass, pass.x, {head.matrices, head.vectors});
  pass.trace(-1, "final_norm", normed);
  for (size_t i = 0; i < pass.items().size(); ++i) {
    const BatchItem& item = pass.items()[i];
    float* to = item.hidden;
    for (int t = item.hidden_from; to != nullptr && t < static_cast<int>(item.tokens.size()); ++t, to += normed.cols)
      std::copy_n(normed.row(pass.first_row(i) + t), normed.cols, to);
  }
  return wanted.empty() ? Result<void>() : vocabulary_head(pass, normed, wanted, logits);
}

Result<void> Network::vocabulary_head(Pass& pass, const Rows& normed, std::span<const int> wanted,
                                      float* logits) const {
  const Rows x = pass.workspace().take(static_cast<int>(wanted.size()), normed.cols);
  for (int t = 0; t < x.n; ++t) std::copy_n(normed.row(wanted[static_cast<size_t>(t)]), x.cols, x.row(t));
  const Rows y{logits, x.n, config_.vocab, config_.vocab};
  const auto& vectors = groups_.back().vectors;
  const float* bias = head_bias_ < 0 || vectors[static_cast<size_t>(head_bias_)].empty()
                          ? nullptr
                          : vectors[static_cast<size_t>(head_bias_)].data();
  for (size_t s = 0; s < slices_.size(); ++s) {
    KVASIR_TRY(const HeldWeights held, acquire_slice(s, pass.compute()));
    const Matrix& rows = held.weights().mat(0);
    const MatmulJob job{rows, bias != nullptr ? bias + slices_[s].begin : nullptr,
                        y.columns(slices_[s].begin, rows.rows)};
    pass.compute().matmul(x, {&job, 1});
  }
  const Kernels& kernels = pass.kernels();
  pass.compute().for_rows(y.n, [&](int t) {
    if (config_.logit_scale != 1) kernels.scale(y.row(t), config_.logit_scale, y.cols);
    if (config_.logit_cap != 0) kernels.soft_cap(y.row(t), config_.logit_cap, y.cols);
  });
  return {};
}

namespace {

// Checks whole rows without an early exit, so that compilers vectorise the loop.
bool all_finite(std::span<const float> row) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (const float x : row) found |= static_cast<uint32_t>((std::bit_cast<uint32_t>(x) & kExponent) == kExponent);
  return found == 0;
}

}  // namespace

// Checks the states too: a row whose logits are not wanted still leaves K and V that later tokens attend to.
std::vector<std::optional<Error>> Network::find_not_finite(const Pass& pass, std::span<const int> wanted,
                                                           const float* logits) const {
  std::vector<std::optional<Error>> errors(pass.items().size());
  const auto note = [&](int row, const std::string& what) {
    const auto item = static_cast<size_t>(&pass.item_of(row) - pass.items().data());
    if (errors[item]) return;
    errors[item] = Error{Error::not_finite, fmt::format("{} at position {} is not finite", what, pass.position(row)),
                         "forward", "weights without NaN or overflow"};
  };
  const auto vocab = static_cast<size_t>(config_.vocab);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::span<const float> row(logits + i * vocab, vocab);
    if (all_finite(row)) continue;
    const auto bad = std::find_if_not(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
    note(wanted[i], fmt::format("the logit of token {}", bad - row.begin()));
  }
  const auto look_at = [&](int row, const float* x) {
    if (!all_finite({x, static_cast<size_t>(pass.x.cols)})) note(row, "the state");
  };
  for (int t = 0; t < pass.tokens(); ++t) look_at(t, pass.x.row(t));
  for (size_t i = 0; i < pass.items().size(); ++i) {
    const BatchItem& item = pass.items()[i];
    const float* x = item.hidden;
    for (int t = item.hidden_from; x != nullptr && t < static_cast<int>(item.tokens.size()); ++t, x += pass.x.cols)
      look_at(pass.first_row(i) + t, x);
  }
  return errors;
}

}  // namespace kvasir
