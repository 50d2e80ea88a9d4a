// Checks that a memory budget holds over many runs: sessions of random prompts and lengths are opened, stepped together
// and closed; some ask for more than is left. Prints a summary; exit code 1 if memory passed the budget, an answer
// differed from its own alone, or a refusal lacked its numbers.
//   usage: budget_runs MODEL RAM_BYTES RUNS SEED
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <kvasir/generate.h>

#include "base/system.h"

namespace kvasir {
namespace {

constexpr double kTolerance = 1.02;
constexpr size_t kMostAtOnce = 6;

struct Request {
  std::vector<int> prompt;
  int ctx = 0, tokens = 0;
  std::string layout, kv_type;
};

struct Running {
  Request request;
  Session session;
  Receipt receipt;
  std::vector<float> logits = {};
  int made = 0;
};

class Soak {
 public:
  Soak(std::shared_ptr<const Model> model, std::unique_ptr<Engine> engine, size_t ram, unsigned seed)
      : model_(std::move(model)), engine_(std::move(engine)), ram_(ram), random_(seed) {}

  bool run(int runs) {
    while (done_ + refused_ < runs || !running_.empty()) {
      if (done_ + refused_ + static_cast<int>(running_.size()) < runs && running_.size() < kMostAtOnce && below(3) > 0)
        open(random_request());
      else if (!running_.empty())
        step();
      check_memory();
    }
    for (const auto& [request, receipt] : finished_)
      if (alone(request) != receipt)
        wrong(fmt::format("an answer of {} tokens differs from its own alone", request.tokens));
    check_memory();
    fmt::print("weights {}, {} finished, {} refused, most at once {}, peak {} of {} B ({:.1f} %), {} wrong\n",
               weights_mode_name(model_->info().weights_mode), done_, refused_, most_, peak_rss_bytes(), ram_,
               100.0 * static_cast<double>(peak_rss_bytes()) / static_cast<double>(ram_), wrong_);
    return wrong_ == 0 && done_ > 0 && refused_ > 0;
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  Request random_request() {
    Request r;
    const int most = model_->info().max_ctx;
    r.ctx = 8 + below(below(4) == 0 ? most - 8 : most / 8);
    for (int i = 1 + below(r.ctx / 2); i > 0; --i) r.prompt.push_back(below(model_->info().vocab));
    r.tokens = 1 + below(std::min(24, r.ctx - static_cast<int>(r.prompt.size())));
    r.layout = below(2) == 0 ? "dense" : "grow";  // dense holds its whole context from the start
    r.kv_type = below(3) == 0 ? "f16" : "f32";
    return r;
  }

  Result<Session> session_for(const Request& r) {
    SessionOptions options;
    options.layout = r.layout;
    options.ctx = r.ctx;
    options.kv_type_k = options.kv_type_v = r.kv_type;
    return engine_->open_session(options);
  }

  void open(const Request& r) {
    auto session = session_for(r);
    if (!session) {
      ++refused_;
      const std::string message = session.error().message();
      if (message.find("ModelOptions::ram") == std::string::npos ||
          message.find(std::to_string(ram_)) == std::string::npos)
        wrong("a refusal without its numbers: " + message);
      if (refused_ == 1) fmt::print("{}\n", message);
      return;
    }
    Running run{r, std::move(*session), {}, {}, 0};
    FeedOutput out;
    if (auto fed = engine_->prefill(run.session, r.prompt, &out); !fed) return wrong(fed.error().message());
    run.logits.assign(out.logits.begin(), out.logits.end());
    run.receipt = *Receipt::start(engine_->model(), run.session.cache_stats(), run.session.tokens());
    running_.push_back(std::move(run));
    most_ = std::max(most_, running_.size());
  }

  // Decodes one token for every session, in one batch.
  void step() {
    std::vector<Session*> sessions;
    std::vector<int> ids;
    for (auto run = running_.begin(); run != running_.end();) {
      const int id = *sample(run->logits, greedy(), {.recent = run->session.tokens(), .position = run->session.pos()});
      run->receipt.add(run->logits, id);
      if (++run->made == run->request.tokens) {
        finished_.emplace_back(run->request, run->receipt.hex());
        ++done_;
        run = running_.erase(run);
        continue;
      }
      ids.push_back(id);
      ++run;
    }
    for (Running& run : running_) sessions.push_back(&run.session);
    if (sessions.empty()) return;
    PassOutput out;
    if (auto stepped = engine_->decode_step(sessions, ids, &out); !stepped) return wrong(stepped.error().message());
    for (size_t i = 0; i < running_.size(); ++i) running_[i].logits.assign(out[i].logits.begin(), out[i].logits.end());
  }

  std::string alone(const Request& r) {
    auto session = session_for(r);
    if (!session) return session.error().message();
    GenerateOptions options;
    options.sampling = greedy();
    options.max_tokens = r.tokens;
    options.ignore_eos = options.receipt = true;
    const auto g = generate(*engine_, *session, r.prompt, options);
    return g ? g->receipt : g.error().message();
  }

  static SamplingParams greedy() {
    SamplingParams p;
    p.temperature = 0;
    return p;
  }

  void check_memory() {
    if (static_cast<double>(peak_rss_bytes()) > static_cast<double>(ram_) * kTolerance && !over_) {
      over_ = true;
      wrong(fmt::format("{} B resident, {} sequences, the budget is {} B", peak_rss_bytes(), running_.size(), ram_));
    }
  }

  void wrong(const std::string& what) {
    ++wrong_;
    fmt::print("WRONG: {}\n", what);
  }

  std::shared_ptr<const Model> model_;
  std::unique_ptr<Engine> engine_;
  size_t ram_;
  std::mt19937 random_;
  std::vector<Running> running_;
  std::vector<std::pair<Request, std::string>> finished_;
  int done_ = 0, refused_ = 0, wrong_ = 0;
  size_t most_ = 0;
  bool over_ = false;
};

int run(char** argv) {
  ModelOptions options;
  options.ram = std::strtoull(argv[2], nullptr, 10);
  options.with_tokenizer = false;
  auto model = Model::open(argv[1], options);
  auto engine = model ? Engine::create(*model, {.threads = 2}) : tl::unexpected(model.error());
  if (!engine) {
    fmt::print("{}\n", engine.error().message());
    return 2;
  }
  Soak soak(*model, std::move(*engine), options.ram, static_cast<unsigned>(std::atoi(argv[4])));
  return soak.run(std::atoi(argv[3])) ? 0 : 1;
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) {
  if (argc == 5) return kvasir::run(argv);
  std::fprintf(stderr, "usage: budget_runs MODEL RAM_BYTES RUNS SEED\n");
  return 2;
}
