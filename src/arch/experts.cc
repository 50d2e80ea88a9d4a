// Routing, and the products of each expert with its tokens; also the keys and tensor specs of experts.
#include "arch/experts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <tuple>

#include "arch/layer_ops.h"

namespace kvasir {
namespace {

/// Roles of the specs that add_experts() appends, counted from its first.
enum ExpertRole { kRouter, kRouterBias, kChoiceBias, kSharedMix, kSharedGate, kSharedUp, kSharedDown, kExperts };
/// The matrices of one expert, counted from kExperts. The biases of all experts follow in the same order.
enum PartRole { kGate, kUp, kDown, kPerExpert };

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Orders NaN above every number, so that a token with a NaN score chooses it and the NaN reaches the result.
bool less_or_nan(float a, float b) { return a < b || (!std::isnan(a) && std::isnan(b)); }

/// One expert of one token.
struct Choice {
  int expert = 0;
  float share = 0;
  int row = 0;  // among the rows of all products
};

// Sets the scores of all but the best groups to kNever. A group's score is the sum of its two best (DeepSeek-V3,
// arXiv:2412.19437).
void exclude_other_groups(std::vector<float>& scores, int groups, int kept) {
  const auto size = static_cast<std::ptrdiff_t>(scores.size()) / groups;
  std::vector<float> best_of;
  for (auto group = scores.begin(); group != scores.end(); group += size) {
    std::vector<float> sorted(group, group + size);
    std::ranges::sort(sorted, std::greater<>());
    best_of.push_back(size > 1 ? sorted[0] + sorted[1] : sorted[0]);
  }
  std::vector<bool> stays(best_of.size());
  for (int i = 0; i < kept; ++i) {
    const auto best = std::ranges::max_element(best_of);
    stays[static_cast<size_t>(best - best_of.begin())] = true;
    *best = kNever;
  }
  for (size_t i = 0; i < scores.size(); ++i)
    if (!stays[i / static_cast<size_t>(size)]) scores[i] = kNever;
}

class Routed {
 public:
  Routed(Pass& pass, int layer, const Rows& h, const Weights& w, int first)
      : pass_(pass), c_(pass.config().experts), layer_(layer), h_(h), w_(w), first_(first) {}

  Rows run() {
    choose_all();
    sort_by_expert();
    const Rows x = gather();
    const Rows gate = rows_of(c_.ffn), up = rows_of(c_.ffn), down = rows_of(h_.cols);
    for_experts([&](std::span<const Expert> experts) {
      products(x, {{kGate, gate}, {kUp, up}}, experts);
      activate(gate, up, experts);
      products(gate, {{kDown, down}}, experts);
    });
    return combine(down);
  }

 private:
  struct Product {
    PartRole part;
    Rows y;
  };
  // A chosen expert, its rows among those of all products, and the addresses of its matrices.
  struct Expert {
    int index, begin, end;
    std::array<const std::byte*, kPerExpert> data;
  };

  // Rows [tokens * used, cols]: one for each choice of each token.
  Rows rows_of(int64_t cols) {
    const Rows wide = pass_.take(c_.used * cols);
    return {wide.data, wide.n * c_.used, cols, cols};
  }
  std::span<Choice> choices_of(int t) {
    return std::span(choices_).subspan(static_cast<size_t>(t * c_.used), static_cast<size_t>(c_.used));
  }

  void choose_all() {
    choices_.resize(static_cast<size_t>(h_.n * c_.used));
    const Rows z = linear(pass_, h_, {w_.mat(first_ + kRouter), w_.vec(first_ + kRouterBias)});
    pass_.trace(layer_, "router", z);
    pass_.compute().for_rows(h_.n, [&](int t) { choose(z.row(t), choices_of(t)); });
  }

  // Turns the logits z [experts] into shares, in place, and chooses.
  void choose(float* z, std::span<Choice> chosen) const {
    const int64_t n = c_.count;
    if (c_.gate == ExpertGate::softmax) pass_.kernels().softmax(z, n);
    if (c_.gate == ExpertGate::sigmoid) pass_.kernels().activate(Activation::sigmoid, z, nullptr, n);
    std::vector<float> scores(z, z + n);
    if (const float* bias = w_.vec(first_ + kChoiceBias)) pass_.kernels().add(scores.data(), bias, n);
    if (c_.groups > 1) exclude_other_groups(scores, c_.groups, c_.groups_used);
    for (Choice& choice : chosen) {
      const auto best = std::ranges::max_element(scores, less_or_nan);  // the lower number of equal scores
      choice.expert = static_cast<int>(best - scores.begin());
      const bool of_near = c_.gate == ExpertGate::softmax_of_near;
      choice.share = of_near ? share_of_near(z, scores, choice.expert) : z[choice.expert];
      *best = kNever;
    }
    share_out(chosen);
  }

  // Share of the best expert in a softmax over those that remain and are near it.
  float share_of_near(const float* z, std::vector<float> left, int best) const {
    const float top = left[static_cast<size_t>(best)];
    for (size_t e = 0; e < left.size(); ++e)
      if (top - z[e] > c_.nearness * std::max(std::abs(z[e]), top)) left[e] = kNever;
    pass_.kernels().softmax(left.data(), c_.count);
    return left[static_cast<size_t>(best)];
  }

  void share_out(std::span<Choice> chosen) const {
    std::vector<float> shares;
    for (const Choice& choice : chosen) shares.push_back(choice.share);
    if (c_.gate == ExpertGate::softmax_of_chosen) pass_.kernels().softmax(shares.data(), c_.used);
    float sum = 0;
    for (const float share : shares) sum += share;
    for (size_t i = 0; i < chosen.size(); ++i)
      chosen[i].share = (c_.normalised ? shares[i] / sum : shares[i]) * c_.scale;
  }

  // Assigns each choice its row: the rows of one expert are adjacent, in the order of tokens.
  void sort_by_expert() {
    ends_.assign(static_cast<size_t>(c_.count), 0);
    for (const Choice& choice : choices_) ++ends_[static_cast<size_t>(choice.expert)];
    std::vector<int> next;
    int rows = 0;
    for (int& end : ends_) {
      next.push_back(rows);
      end = rows += end;
    }
    for (Choice& choice : choices_) choice.row = next[static_cast<size_t>(choice.expert)]++;
  }

  Expert expert(int e) const {
    const auto i = static_cast<size_t>(e);
    Expert out{e, i == 0 ? 0 : ends_[i - 1], ends_[i], {}};
    for (int part = 0; part < kPerExpert; ++part) out.data[static_cast<size_t>(part)] = w_.mat(role(e, part)).data;
    return out;
  }
  int role(int e, int part) const { return first_ + kExperts + e * kPerExpert + part; }

  // Calls f with the chosen experts: with all of them, or as many at a time as are in memory. Rows do not depend on
  // one another, so neither do results on the order.
  template <class F>
  void for_experts(F f) {
    std::vector<Expert> experts;
    for (int e = 0; e < c_.count; ++e)
      if (expert(e).end > expert(e).begin) experts.push_back(expert(e));
    if (pass_.experts == nullptr) return f(experts);
    std::vector<int> wanted;
    for (const Expert& each : experts) wanted.push_back(each.index);
    pass_.experts->want(layer_, wanted);
    for (;;) {
      auto loaded = pass_.experts->next(pass_.compute().pool());
      if (!loaded) pass_.failed = std::move(loaded).error();
      if (pass_.failed || loaded->empty()) return;
      experts.clear();
      for (const ExpertCache::Loaded& each : *loaded) {
        experts.push_back(expert(each.expert));
        std::ranges::copy(each.parts, experts.back().data.begin());
      }
      if (pass_.experts->all_provided()) guess_next();
      f(experts);
    }
  }

  // Starts to read the experts that the next layer will probably choose: those that its router chooses for this layer's
  // input (as in arXiv:2312.17238). Many tokens use almost all experts, so there is nothing to guess.
  void guess_next() const {
    constexpr int kMostTokens = 4;
    const auto role = static_cast<size_t>(first_ + kRouter);
    if (h_.n > kMostTokens || pass_.ahead.data.empty() || !pass_.config().has_experts(layer_ + 1)) return;
    Matrix router = pass_.ahead.matrices[role];
    router.data = pass_.ahead.data[role];
    std::vector<float> scores(static_cast<size_t>(h_.n * c_.count));
    const MatmulJob job{router, nullptr, {scores.data(), h_.n, c_.count, c_.count}};
    pass_.compute().matmul(h_, {&job, 1});
    std::vector<int> experts;
    for (auto row = scores.begin(); row != scores.end(); row += c_.count)
      for (int i = 0; i < c_.used; ++i) {
        const auto best = std::max_element(row, row + c_.count, less_or_nan);
        experts.push_back(static_cast<int>(best - row));
        *best = kNever;
      }
    std::ranges::sort(experts);
    experts.erase(std::unique(experts.begin(), experts.end()), experts.end());
    pass_.experts->guess(layer_ + 1, experts);
  }

  // A single token's rows are too few to be worth waking the threads.
  void activate(const Rows& gate, const Rows& up, std::span<const Expert> experts) const {
    const Activation f = pass_.config().activation;
    std::vector<int> rows;
    for (const Expert& e : experts)
      for (int row = e.begin; row < e.end; ++row) rows.push_back(row);
    const auto one = [&](int i) {
      const int row = rows[static_cast<size_t>(i)];
      pass_.kernels().activate(f, gate.row(row), up.row(row), gate.cols);
    };
    const int n = static_cast<int>(rows.size());
    if (h_.n > 1) return pass_.compute().for_rows(n, one);
    for (int i = 0; i < n; ++i) one(i);
  }

  // Copies h to those rows. With a single token all rows are the same, so h itself serves.
  Rows gather() {
    const Rows x = rows_of(h_.cols);
    if (h_.n == 1) return h_;
    pass_.compute().for_rows(h_.n, [&](int t) {
      for (const Choice& choice : choices_of(t)) std::copy_n(h_.row(t), h_.cols, x.row(choice.row));
    });
    return x;
  }

  void products(const Rows& x, std::initializer_list<Product> wanted, std::span<const Expert> experts) const {
    const int biases = c_.count * kPerExpert;
    int first = x.n, end = 0;  // the rows of x that these experts read
    for (const Expert& e : experts) first = std::min(first, e.begin), end = std::max(end, e.end);
    const Rows read = x.n == 1 ? x : Rows{x.row(first), end - first, x.cols, x.stride};
    std::vector<MatmulJob> jobs;
    for (const Expert& e : experts)
      for (const Product& p : wanted) {
        Matrix w = w_.mat(role(e.index, p.part));
        w.data = e.data[static_cast<size_t>(p.part)];
        jobs.push_back({w,
                        w_.vec(role(e.index, p.part) + biases),
                        {p.y.row(e.begin), e.end - e.begin, p.y.cols, p.y.stride},
                        x.n == 1 ? 0 : e.begin - first});
      }
    pass_.compute().matmul(read, jobs);
  }

  Rows combine(const Rows& down) {
    const Rows out = pass_.take(h_.cols);
    pass_.compute().for_rows(h_.n, [&](int t) {
      std::fill_n(out.row(t), out.cols, 0.0f);
      for (const Choice& choice : choices_of(t))
        pass_.kernels().add_scaled(out.row(t), choice.share, down.row(choice.row), out.cols);
    });
    return out;
  }

  Pass& pass_;
  const ExpertConfig& c_;
  const int layer_;
  const Rows h_;
  const Weights& w_;
  const int first_;
  std::vector<Choice> choices_;  // [tokens][used], best first
  std::vector<int> ends_;        // [experts]: one past its last row
};

void add_shared(Pass& pass, const Rows& h, const Weights& w, int first, const Rows& out) {
  if (w.mat(first + kSharedUp).codec == nullptr) return;
  const auto [gate, up] = linears<2>(pass, h, {{{w.mat(first + kSharedGate)}, {w.mat(first + kSharedUp)}}});
  const Rows shared = linear(pass, glu(pass, gate, up), {w.mat(first + kSharedDown)});
  const bool mixed = w.mat(first + kSharedMix).codec != nullptr;
  const Rows mix = mixed ? activate(pass, Activation::sigmoid, linear(pass, h, {w.mat(first + kSharedMix)})) : Rows{};
  pass.compute().for_rows(out.n, [&](int t) {
    pass.kernels().add_scaled(out.row(t), mixed ? *mix.row(t) : 1.0f, shared.row(t), out.cols);
  });
}

}  // namespace

Rows moe(Pass& pass, int layer, const Rows& h, const Weights& w, int first) {
  const Rows out = Routed(pass, layer, h, w, first).run();
  add_shared(pass, h, w, first, out);
  pass.trace(layer, "experts", out);
  return out;
}

void add_experts(const ModelConfig& c, int l, const ExpertNames& names, std::vector<TensorSpec>* table) {
  const ExpertConfig& experts = c.experts;
  if (!c.has_experts(l)) return;
  const std::string layer = "layers." + std::to_string(l) + ".";
  bool of_expert = false;
  const auto add = [&](std::string name, std::vector<int64_t> shape, bool present) {
    table->push_back({.name = layer + name, .shape = std::move(shape), .present = present, .of_expert = of_expert});
  };
  const auto named = [](std::string_view before, std::string_view name, std::string_view after) {
    return std::string(before).append(name).append(after);
  };
  const int64_t d = c.hidden, f = experts.ffn, s = experts.shared_ffn;
  add(named("", names.router, ".weight"), {experts.count, d}, true);
  add(std::string(names.router_bias), {experts.count}, !names.router_bias.empty());
  add(std::string(names.choice_bias), {experts.count}, !names.choice_bias.empty());
  add(named("", names.shared_mix, ".weight"), {1, d}, s != 0 && !names.shared_mix.empty());
  add(named(names.shared, names.gate, ".weight"), {s, d}, s != 0);
  add(named(names.shared, names.up, ".weight"), {s, d}, s != 0);
  add(named(names.shared, names.down, ".weight"), {d, s}, s != 0);
  of_expert = true;
  const auto add_all = [&](std::string_view ending, bool matrices) {
    for (int e = 0; e < experts.count; ++e) {
      std::string expert(names.expert);
      expert.replace(expert.find('*'), 1, std::to_string(e));
      for (const auto& [name, rows, cols] : {std::tuple(names.gate, f, d), {names.up, f, d}, {names.down, d, f}})
        add(named(expert, name, ending), matrices ? std::vector{rows, cols} : std::vector{rows}, true);
    }
  };
  add_all(".weight", true);
  if (names.biases) add_all(".bias", false);
}

namespace {

// Value of the first of these keys that the file contains.
Result<int64_t> first_of(const ConfigView& view, std::initializer_list<const char*> keys, int64_t unsaid) {
  for (const char* key : keys)
    if (view.has(key)) return view.get_int(key, 0, 1 << 22);
  return unsaid;
}

// GGUF's key for the gate, if present, must confirm the family's own.
Result<void> check_gate(const ConfigView& view, ExpertGate gate) {
  constexpr int64_t kSoftmax = 1, kSigmoid = 2, kOfChosen = 3;
  KVASIR_TRY(const int64_t said, view.get_int_or(kGgufGate, 0, 0, 1 << 20));
  const bool good = gate == ExpertGate::sigmoid             ? said == kSigmoid
                    : gate == ExpertGate::softmax_of_chosen ? said == kSoftmax || said == kOfChosen
                                                            : said == kSoftmax;
  if (said == 0 || good) return {};
  return fail(Error::unsupported,
              "\"expert_gating_func\" is " + std::to_string(said) + ", which this family does not use", view.where(),
              "a file of the family's own models");
}

}  // namespace

Result<void> parse_experts(const ConfigView& view, const ExpertDefaults& defaults, ModelConfig* c) {
  ExpertConfig& e = c->experts;
  const auto read = [&](std::initializer_list<const char*> keys, int64_t unsaid, int* out) -> Result<void> {
    KVASIR_TRY(const int64_t value, first_of(view, keys, unsaid));
    *out = static_cast<int>(value);
    return {};
  };
  KVASIR_CHECK(read({"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}, 0, &e.count));
  if (e.count == 0) return {};
  KVASIR_CHECK(read({"num_experts_per_tok", "num_experts_per_token", "moe_k"}, defaults.used, &e.used));
  KVASIR_CHECK(read({"moe_intermediate_size"}, c->ffn, &e.ffn));
  int shared = 0, first = 0, step = 1;
  KVASIR_CHECK(read({"n_shared_experts", "moe_num_shared_experts"}, 0, &shared));
  KVASIR_CHECK(
      read({"shared_expert_intermediate_size", "shared_intermediate_size"}, int64_t{shared} * e.ffn, &e.shared_ffn));
  KVASIR_CHECK(read({"first_k_dense_replace", "moe_layer_start_index"}, 0, &first));
  KVASIR_CHECK(read({"decoder_sparse_step", "moe_layer_freq", "moe_layer_interval"}, 1, &step));
  KVASIR_CHECK(read({"n_group"}, 1, &e.groups));
  KVASIR_CHECK(read({"topk_group"}, 1, &e.groups_used));
  KVASIR_TRY(const auto dense, view.get_ints_or_empty("mlp_only_layers"));
  KVASIR_TRY(e.normalised, view.get_bool_or("norm_topk_prob", defaults.normalised));
  KVASIR_TRY(const double scale, view.get_number_or("routed_scaling_factor", 1.0, 0.0, 1e6));
  e.scale = scale == 0 ? 1.0f : static_cast<float>(scale);  // GGUF files write 0 for no scale
  e.gate = defaults.gate;
  KVASIR_CHECK(check_gate(view, e.gate));
  for (int l = 0; l < c->layers; ++l)
    e.layers.push_back(l >= first && (l + 1) % std::max(step, 1) == 0 && std::ranges::find(dense, l) == dense.end());
  const bool groups_fit = e.groups >= 1 && e.count % e.groups == 0 && e.groups_used >= 1 && e.groups_used <= e.groups;
  if (e.used < 1 || e.ffn < 1 || !groups_fit || e.used > e.count / e.groups * e.groups_used)
    return fail(Error::damaged,
                "a token uses " + std::to_string(e.used) + " of " + std::to_string(e.count) + " experts of " +
                    std::to_string(e.ffn) + " channels",
                view.where(), "a configuration whose numbers of experts fit together");
  return {};
}

}  // namespace kvasir
