// The acts of verify. All random choices come from generators with fixed seeds.
#include "lab/verify_acts.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include <fmt/format.h>

#include <kvasir/catalog.h>
#include <kvasir/generate.h>

#include "lab/step_all.h"

namespace kvasir {

int below(std::mt19937& random, int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); }

namespace {

// Feeds ("types") one text of a run to its session, and compares the logits.
class Typist {
 public:
  static Result<Typist> open(const ActRun& run, size_t text) {
    KVASIR_TRY(Session session, run.engine.open_session(run.session));
    return Typist(run, text, std::move(session));
  }
  Result<Typist> fork() const {
    KVASIR_TRY(Session other, session.fork());
    return Typist(*run_, text_, std::move(other));
  }

  /// Number of tokens to type: all except the last one, which is only chosen.
  int length() const { return static_cast<int>(text().tokens.size()) - 1; }
  int left() const { return length() - session.pos(); }
  std::span<const int> part(int first, int end) const {
    return std::span(text().tokens).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
  }
  const KnownText& text() const { return run_->texts[text_]; }

  /// Types the next n tokens of the text.
  Result<void> type(int n) {
    if (n <= 0) return {};
    const Feed feed{&session, part(session.pos(), session.pos() + n), Logits::all};
    PassOutput out;
    KVASIR_CHECK(step_all(run_->engine, {&feed, 1}, &out));
    compare(out[0].logits);
    return {};
  }
  /// Types up to n tokens of another text: this text's tokens in reverse.
  Result<void> type_something_else(int n) {
    const int most = std::min({n, length(), session.ctx() - session.pos()});
    if (most <= 0) return {};
    const std::vector<int> other(text().tokens.rbegin(), text().tokens.rbegin() + most);
    FeedOutput out;
    return run_->engine.prefill(session, other, &out);
  }
  /// Compares the logits of the last typed tokens, if these follow the text.
  void compare(std::span<const float> rows) const {
    const size_t vocab = static_cast<size_t>(run_->engine.model().info().vocab), n = rows.size() / vocab;
    for (size_t i = 0; i < n; ++i) {
      const int position = session.pos() - static_cast<int>(n - i) + 1;
      const auto typed = session.tokens().first(static_cast<size_t>(position));
      if (position >= text().prompt && position <= length() &&
          std::equal(typed.begin(), typed.end(), text().tokens.begin()))
        run_->compare(text_, position, rows.subspan(i * vocab, vocab));
    }
  }

  Session session;

 private:
  Typist(const ActRun& run, size_t text, Session opened) : session(std::move(opened)), run_(&run), text_(text) {}
  const ActRun* run_;
  size_t text_;
};

template <class F>
Result<void> each_text(const ActRun& run, F&& f) {
  for (size_t text = 0; text < run.texts.size(); ++text) {
    KVASIR_TRY(Typist typist, Typist::open(run, text));
    KVASIR_CHECK(f(typist));
  }
  return {};
}

// Truncates to `length`, or to nothing if a windowed cache no longer holds the positions before it.
void take_back(Session* session, int length) {
  if (!session->truncate(length)) session->clear();
}

// Passes of random batches: any sequences, each with any number of its tokens.
Result<void> batch(const ActRun& run) {
  std::mt19937 random(1);
  std::vector<Typist> all;
  for (size_t text = 0; text < run.texts.size(); ++text) {
    KVASIR_TRY(Typist typist, Typist::open(run, text));
    all.push_back(std::move(typist));
  }
  const auto unfinished = [](const Typist& t) { return t.left() > 0; };
  while (std::any_of(all.begin(), all.end(), unfinished)) {
    std::vector<Feed> feeds;
    std::vector<const Typist*> typists;
    for (Typist& t : all) {
      if (!unfinished(t) || random() % 2 == 0) continue;
      const int n = random() % 2 == 0 ? 1 : 1 + below(random, t.left()), pos = t.session.pos();
      feeds.push_back({&t.session, t.part(pos, pos + n), Logits::all});
      typists.push_back(&t);
    }
    PassOutput out;
    KVASIR_CHECK(step_all(run.engine, feeds, &out));
    for (size_t i = 0; i < feeds.size(); ++i) typists[i]->compare(out[i].logits);
  }
  return {};
}

// Forks anywhere: one session continues the text while the other types something else, twice.
Result<void> fork(const ActRun& run) {
  std::mt19937 random(2);
  bool first_goes_on = false;
  const auto part_once = [&](Typist& one) -> Result<void> {
    first_goes_on = !first_goes_on;
    const int at = 1 + below(random, one.left());
    KVASIR_CHECK(one.type(at));
    KVASIR_TRY(Typist two, one.fork());
    Typist &same = first_goes_on ? one : two, &other = first_goes_on ? two : one;
    KVASIR_CHECK(other.type_something_else(1 + below(random, 70)));
    KVASIR_CHECK(same.type(below(random, std::max(1, same.left()))));
    take_back(&other.session, at);
    KVASIR_CHECK(other.type_something_else(1 + below(random, 70)));
    return same.type(same.left());
  };
  for (int i = 0; i < 3; ++i) KVASIR_CHECK(each_text(run, part_once));
  return {};
}

// Types something else, truncates it, and types the text again.
Result<void> truncate(const ActRun& run) {
  std::mt19937 random(3);
  return each_text(run, [&](Typist& typist) -> Result<void> {
    Session& session = typist.session;
    for (int i = 0; i < 3; ++i) {
      KVASIR_CHECK(typist.type(below(random, typist.left() + 1)));
      const int keep = std::max(0, session.pos() - below(random, 20));
      KVASIR_CHECK(typist.type_something_else(1 + below(random, 40)));
      take_back(&session, keep);
    }
    return typist.type(typist.left());
  });
}

// For every length of the text, a new session reuses the prefix that an earlier one left.
Result<void> prefix(const ActRun& run) {
  return each_text(run, [&](Typist& typist) -> Result<void> {
    Session& session = typist.session;
    KVASIR_CHECK(typist.type(typist.left()));
    KVASIR_CHECK(run.engine.keep(session));
    for (int end = 1; end <= typist.length(); ++end) {
      KVASIR_TRY(session, run.engine.open_session(run.session));
      KVASIR_CHECK(run.engine.reuse(session, typist.part(0, end)));
      KVASIR_CHECK(typist.type(end - session.pos()));
    }
    return {};
  });
}

// The next layout in the catalogue; the first after the last, or after an unknown name.
std::string layout_after(const std::string& name) {
  const auto all = catalog::layouts();
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& layout) { return layout.name == name; });
  return at == all.end() || at + 1 == all.end() ? all.front().name : (at + 1)->name;
}

// Saves anywhere, loads into the next layout, saves again and loads back.
Result<void> snapshot(const ActRun& run) {
  namespace fs = std::filesystem;
  std::error_code ec;
  const fs::path file = fs::temp_directory_path(ec) / fmt::format("kvasir-verify-{}.kv", ::getpid());
  std::mt19937 random(4);
  const auto done = each_text(run, [&](Typist& typist) -> Result<void> {
    for (const std::string& layout : {layout_after(run.session.layout), run.session.layout}) {
      SessionOptions into = run.session;
      into.layout = layout;
      KVASIR_CHECK(typist.type(below(random, typist.left() + 1)));
      KVASIR_CHECK(typist.session.save(file.string()));
      KVASIR_TRY(typist.session, run.engine.open_session(into));
      KVASIR_CHECK(typist.session.load(file.string()));
    }
    return typist.type(typist.left());
  });
  fs::remove(file, ec);
  return done;
}

// Generates greedily with prompt lookup (GenerateOptions::lookup).
Result<void> lookup(const ActRun& run) {
  GenerateOptions options;
  options.sampling = {.temperature = 0};
  options.ignore_eos = true;
  options.lookup = 5;
  return each_text(run, [&](Typist& typist) -> Result<void> {
    options.max_tokens = typist.length() + 1 - typist.text().prompt;
    const auto prompt = typist.part(0, typist.text().prompt);
    KVASIR_TRY(Generator generator,
               Generator::create(run.engine.shared_model(), {prompt.begin(), prompt.end()}, options));
    while (!generator.done()) {
      const Feed feed = generator.next(typist.session);
      PassOutput out;
      KVASIR_CHECK(step_all(run.engine, {&feed, 1}, &out));
      typist.compare(out[0].logits);
      KVASIR_CHECK(generator.take(out[0].logits));
    }
    return {};
  });
}

constexpr VerifyAct kActs[] = {{"batch", batch},       {"fork", fork},     {"truncate", truncate}, {"prefix", prefix},
                               {"snapshot", snapshot}, {"lookup", lookup}, {"schedule", schedule}};

}  // namespace

std::span<const VerifyAct> verify_acts() { return kActs; }

}  // namespace kvasir
