// Binding tensors to roles, and the pass through the layers.
#include "arch/network.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arch/blocks.h"
#include "base/float_env.h"

namespace kvasir {

// ---- loading ----------------------------------------------------------------------------------------------------

Result<const TensorInfo*> Network::find(const TensorSpec& spec, const TensorDir& dir, const std::string& where) const {
  if (!spec.present) return static_cast<const TensorInfo*>(nullptr);
  KVASIR_TRY(const TensorInfo* info, find_tensor(*family_, spec, dir, where));
  if (info->codec == nullptr)
    return fail(fmt::format("tensor \"{}\" has dtype {}, which is not a weight type", info->name, info->dtype), where,
                "a type that Kvasir reads: docs/models.md");
  return info;
}

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
      info->codec->decode(dir.data(*info).data(), vector.data(), spec.shape[0]);
    } else if (info != nullptr) {
      const int64_t rows = spec.conv1d ? spec.shape[1] : spec.shape[0];
      const int64_t cols = spec.conv1d ? spec.shape[0] : spec.shape[1];
      matrix = {info->codec, nullptr, rows, cols, spec.conv1d != info->transposed, info->pair_dim};
      if (matrix.conv1d && info->codec->act != Act::f32)
        return fail(fmt::format("tensor \"{}\" has integer weights that are stored by column", info->name), where,
                    "a GGUF file, which stores them by row");
    }
    group.infos.push_back(vector.empty() ? info : nullptr);
    group.matrices.push_back(matrix);
    group.vectors.push_back(std::move(vector));
    group.vector_pairs.push_back(info != nullptr ? info->pair_dim : 0);
    group.names.push_back(spec.name);
  }
  return group;
}

Result<std::unique_ptr<Network>> Network::load(const Family& family, ModelConfig config,
                                               std::shared_ptr<const TensorDir> dir, WeightMode mode,
                                               const std::string& where) {
  const FloatEnv env;  // rotations and vectors are computed here
  std::unique_ptr<Network> net(new Network);
  net->family_ = &family;
  net->config_ = std::move(config);
  net->dir_ = dir;
  if (net->config_.rope) net->rope_frequencies_ = net->config_.rope->frequencies(net->config_.head_dim);
  const TensorTable table = family.tensor_table(net->config_);
  std::vector<const std::vector<TensorSpec>*> lists{&table.embed};
  for (const auto& layer : table.layers) lists.push_back(&layer);
  lists.push_back(&table.head);
  std::vector<std::vector<const TensorInfo*>> groups;
  for (const auto* specs : lists) {
    KVASIR_TRY(Group group, net->bind(*specs, *dir, where));
    groups.push_back(group.infos);
    for (const Matrix& m : group.matrices)
      if (m.codec != nullptr && m.codec->act == Act::q8) net->integer_cols_ = std::max(net->integer_cols_, m.cols);
    net->groups_.push_back(std::move(group));
  }
  KVASIR_TRY(net->source_, open_weights(std::move(dir), std::move(groups), mode));
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

int64_t Network::parameters() const {
  int64_t total = 0;
  std::vector<const TensorInfo*> seen;
  for (const Group& group : groups_)
    for (size_t i = 0; i < group.infos.size(); ++i) {
      total += static_cast<int64_t>(group.vectors[i].size());
      const TensorInfo* info = group.infos[i];
      if (info == nullptr || std::find(seen.begin(), seen.end(), info) != seen.end()) continue;
      seen.push_back(info);
      total += group.matrices[i].rows * group.matrices[i].cols;
    }
  return total;
}

// ---- the forward pass -------------------------------------------------------------------------------------------

Result<HeldWeights> Network::acquire(int group) const {
  const Group& g = groups_[static_cast<size_t>(group)];
  KVASIR_TRY(const auto data, source_->acquire(group));
  return HeldWeights(*source_, group, g.matrices, g.vectors, data);
}

Result<void> Network::check(std::span<const BatchItem> items) const {
  for (const BatchItem& item : items) {
    if (item.tokens.empty()) return fail("no tokens to run", "forward", "at least one token");
    if (item.first != item.cache->coverage())
      return fail(fmt::format("tokens start at position {}, the cache ends at {}", item.first, item.cache->coverage()),
                  "forward", "feed the tokens that the cache does not hold");
    const int64_t end = int64_t{item.first} + static_cast<int64_t>(item.tokens.size());
    if (end > std::min(config_.max_ctx, item.cache->shape().max_ctx))
      return fail(fmt::format("{} tokens do not fit the context of {}", end,
                              std::min(config_.max_ctx, item.cache->shape().max_ctx)),
                  "forward", "a shorter prompt or a larger --ctx");
    for (int id : item.tokens)
      if (id < 0 || id >= config_.vocab)
        return fail(fmt::format("token id {} is out of range, the vocabulary has {}", id, config_.vocab), "forward",
                    fmt::format("ids 0..{}", config_.vocab - 1));
  }
  return {};
}

// The widest layer's temporaries, the residual stream, the RoPE tables and the normed rows of the head.
size_t Network::workspace_floats(int tokens) const {
  const ModelConfig& c = config_;
  const int64_t q = int64_t{c.heads} * c.head_dim;
  const int64_t layer = 4 * int64_t{c.hidden} + 2 * q + 2 * int64_t{c.kv_dim()} + 2 * int64_t{c.ffn} + q;
  const int64_t always = 3 * int64_t{c.hidden} + 2 * int64_t{c.head_dim};
  return Workspace::floats_for(tokens, layer + always) + 64 * 16;
}

int64_t Network::scratch_floats() const {
  int64_t cols = 1;
  for (const Group& group : groups_)
    for (const Matrix& m : group.matrices) cols = std::max(cols, m.cols);
  return std::max(cols * kPanelRows, attend_scratch_floats(config_.head_dim, config_.group(), kMaxAttendTokens));
}

Result<void> Network::forward(std::span<const BatchItem> items, Compute& compute, Workspace& workspace,
                              const Options& options, Output* out) const {
  const FloatEnv env;
  KVASIR_CHECK(check(items));
  int tokens = 0;
  std::vector<std::unique_ptr<Layout::Plan>> plans;
  for (const BatchItem& item : items) {
    tokens += static_cast<int>(item.tokens.size());
    KVASIR_TRY(auto plan, item.cache->plan(item.first + static_cast<int>(item.tokens.size())));
    plans.push_back(std::move(plan));
  }
  KVASIR_CHECK(workspace.reserve(workspace_floats(tokens) +
                                 static_cast<size_t>(attend_state_floats(config_, items, compute.threads()))));
  KVASIR_CHECK(compute.reserve_scratch(scratch_floats()));
  if (integer_cols_ > 0) KVASIR_CHECK(compute.reserve_acts(tokens, integer_cols_));
  for (size_t i = 0; i < items.size(); ++i) items[i].cache->apply(std::move(plans[i]));

  Pass pass(config_, rope_frequencies_, compute, workspace, items, options.trace);
  KVASIR_CHECK(run_layers(pass));
  KVASIR_CHECK(read_out(pass, options, out));
  for (const BatchItem& item : items) item.cache->commit(item.first + static_cast<int>(item.tokens.size()));
  return {};
}

Result<void> Network::run_layers(Pass& pass) const {
  {
    KVASIR_TRY(const HeldWeights held, acquire(0));
    family_->embed(pass, held.weights());
    pass.trace(-1, "embedding", pass.x);
  }
  const size_t mark = pass.workspace().mark();
  for (int l = 0; l < config_.layers; ++l) {
    KVASIR_TRY(const HeldWeights held, acquire(l + 1));
    family_->layer(pass, l, held.weights());
    pass.workspace().back_to(mark);
  }
  return {};
}

Result<void> Network::read_out(Pass& pass, const Options& options, Output* out) const {
  KVASIR_TRY(const HeldWeights held, acquire(config_.layers + 1));
  const Rows normed = family_->final_norm(pass, pass.x, held.weights());
  pass.trace(-1, "final_norm", normed);
  if (options.hidden) {
    out->hidden.clear();
    for (int t = 0; t < normed.n; ++t)
      out->hidden.insert(out->hidden.end(), normed.row(t), normed.row(t) + normed.cols);
  }
  return vocabulary_head(pass, normed, held.weights().matrices.back(), out);
}

Result<void> Network::vocabulary_head(Pass& pass, const Rows& normed, const Matrix& head, Output* out) const {
  std::vector<int> wanted;
  for (size_t i = 0; i < pass.items().size(); ++i)
    for (int t = pass.items()[i].wanted_from; t < static_cast<int>(pass.items()[i].tokens.size()); ++t)
      wanted.push_back(pass.first_row(i) + t);
  out->logits.resize(wanted.size() * static_cast<size_t>(config_.vocab));
  if (wanted.empty()) return {};
  const Rows x = pass.workspace().take(static_cast<int>(wanted.size()), normed.cols);
  for (int t = 0; t < x.n; ++t) std::copy_n(normed.row(wanted[static_cast<size_t>(t)]), x.cols, x.row(t));
  const Rows y{out->logits.data(), x.n, config_.vocab, config_.vocab};
  const MatmulJob job{head, nullptr, y};
  pass.compute().matmul(x, {&job, 1});
  for (size_t i = 0; i < out->logits.size(); ++i)
    if (!std::isfinite(out->logits[i]))
      return fail(
          fmt::format("the logit of token {} at position {} is not finite", i % static_cast<size_t>(config_.vocab),
                      pass.position(wanted[i / static_cast<size_t>(config_.vocab)])),
          "forward", "weights without NaN or overflow");
  return {};
}

}  // namespace kvasir
