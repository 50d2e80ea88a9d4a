// Compares every way to compute with plain recomputation. The acts are in verify_acts.cc.
#include <kvasir/verify.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>

#include <fmt/format.h>

#include <kvasir/catalog.h>
#include <kvasir/generate.h>

#include "base/ranges.h"
#include "lab/step_all.h"
#include "lab/verify_acts.h"

namespace kvasir {
namespace {

using Prompts = std::span<const std::vector<int>>;

struct Setting {
  VerifyCase what;                 // its counters are still zero
  size_t prompts;                  // number of prompts that this case takes
  const VerifyAct* act = nullptr;  // null: plain generation
};

// Prefix of the name of a case with another KV type or window than requested: "kv=q8_0 " or "window=24+4 "; else "".
std::string kind_of(const VerifyCase& c) {
  if (!c.kv_type.empty()) return fmt::format("kv={} ", c.kv_type);
  return c.window > 0 ? fmt::format("window={}+{} ", c.window, c.sinks) : "";
}

// Settings with one KV type and window, whose results must agree.
struct Group {
  std::string what;  // prefix of the names of its cases: "", "kv=q8_0 "
  SessionOptions session;
  size_t prompts;
  std::vector<Setting> settings;
};

// The tokens generated after one prompt, and the logits that chose each.
struct Trajectory {
  std::vector<int> ids;
  std::vector<float> logits;  // [ids][vocab]
};

// Called for every generated token.
using Visit = std::function<void(size_t prompt, int step, std::span<const float> logits, int id)>;

// Runs `count` sequences in the same passes: one prefill of all prompts, then one token of each per step.
Result<void> run_batch(Engine& engine, const SessionOptions& session_options, const VerifyOptions& o, size_t first,
                       size_t count, const Visit& visit) {
  std::vector<Session> sessions;
  std::vector<Session*> pointers;
  std::vector<Feed> feeds;
  sessions.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    KVASIR_TRY(Session session, engine.open_session(session_options));
    sessions.push_back(std::move(session));
    pointers.push_back(&sessions.back());
    feeds.push_back({&sessions.back(), o.prompts[first + i]});
  }
  const SamplingParams greedy{.temperature = 0};
  PassOutput out;
  KVASIR_CHECK(step_all(engine, feeds, &out));
  for (int step = 0;; ++step) {
    std::vector<int> ids;
    for (size_t i = 0; i < count; ++i) {
      const std::span<const float> row = out[i].logits;
      KVASIR_TRY(const int id, sample(row, greedy));
      visit(first + i, step, row, id);
      ids.push_back(id);
    }
    if (step + 1 == o.new_tokens) return {};
    KVASIR_CHECK(decode_all(engine, pointers, ids, &out));
  }
}

SessionOptions in_layout(SessionOptions options, const std::string& layout) {
  options.layout = layout;
  return options;
}

EngineOptions engine_options(const VerifyCase& c) {
  return {.threads = c.threads, .prefill_chunk = c.chunk == 0 ? INT_MAX : c.chunk};
}

Result<void> run_setting(const std::shared_ptr<const Model>& model, const Setting& s, const SessionOptions& session,
                         const VerifyOptions& o, const Visit& visit) {
  KVASIR_TRY(const auto engine, Engine::create(model, engine_options(s.what)));
  const SessionOptions options = in_layout(session, s.what.layout);
  const size_t batch = static_cast<size_t>(s.what.batch);
  for (size_t first = 0; first < s.prompts; first += batch)
    KVASIR_CHECK(run_batch(*engine, options, o, first, std::min(batch, s.prompts - first), visit));
  return {};
}

size_t differing_bits(std::span<const float> a, const float* b) {
  if (std::memcmp(a.data(), b, a.size_bytes()) == 0) return 0;
  size_t bits = 0;
  for (size_t i = 0; i < a.size(); ++i)
    bits += static_cast<size_t>(std::popcount(std::bit_cast<uint32_t>(a[i]) ^ std::bit_cast<uint32_t>(b[i])));
  return bits;
}

Result<void> check(const Model& model, const VerifyOptions& o) {
  if (o.prompts.empty())
    return fail(Error::bad_argument, "no prompts to verify with", "VerifyOptions::prompts",
                "a file with one prompt per line");
  KVASIR_CHECK(check_at_least(o.new_tokens, 1, "tokens", "VerifyOptions::new_tokens"));
  KVASIR_CHECK(check_all_at_least(o.threads, 1, "threads", "VerifyOptions::threads"));
  KVASIR_CHECK(check_all_at_least(o.chunks, 0, "tokens", "VerifyOptions::chunks"));
  KVASIR_CHECK(check_all_at_least(o.batches, 1, "sequences", "VerifyOptions::batches"));
  const int ctx = o.session.ctx > 0 ? o.session.ctx : model.info().max_ctx;
  for (const auto& prompt : o.prompts)
    if (prompt.size() + static_cast<size_t>(o.new_tokens) > static_cast<size_t>(ctx))
      return fail(Error::too_long,
                  fmt::format("a prompt of {} tokens and {} more do not fit the context of {}", prompt.size(),
                              o.new_tokens, ctx),
                  "VerifyOptions::new_tokens", "fewer tokens or a larger SessionOptions::ctx");
  return {};
}

using Layouts = std::vector<catalog::LayoutEntry>;

Result<Layouts> layouts_of(const VerifyOptions& o) {
  if (o.layouts.empty()) return Layouts(catalog::layouts().begin(), catalog::layouts().end());
  Layouts layouts;
  for (const std::string& name : o.layouts) {
    KVASIR_TRY(catalog::LayoutEntry layout, catalog::find_layout(name));
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

int middle_chunk(const VerifyOptions& o) { return o.chunks[o.chunks.size() / 2]; }

// Number of prompts for cases that cost more than the others.
size_t few_prompts(const VerifyOptions& o) { return std::max<size_t>(1, o.prompts.size() / 10); }

std::vector<Setting> all_settings(const Layouts& layouts, const VerifyOptions& o) {
  std::vector<Setting> settings;
  const size_t few = few_prompts(o), some = std::max(few, std::min<size_t>(5, o.prompts.size()));
  for (const auto& layout : layouts) {
    for (int threads : o.threads)
      for (int chunk : o.chunks)
        for (int batch : o.batches) {
          const bool quadratic = layout.recomputes && chunk != 0;
          const VerifyCase what{.layout = layout.name, .threads = threads, .chunk = chunk, .batch = batch};
          settings.push_back({what, quadratic ? few : o.prompts.size()});
        }
    if (!o.acts) continue;
    VerifyCase what{.layout = layout.name, .threads = o.threads.back(), .chunk = middle_chunk(o), .batch = 1};
    for (const VerifyAct& act : verify_acts()) {
      what.act = act.name;
      settings.push_back({what, layout.recomputes ? few : some, &act});
    }
  }
  return settings;
}

// The reference of a group: computes each token from the whole text before it, without a cache.
Result<std::vector<Trajectory>> recompute(const std::shared_ptr<const Model>& model, const Group& group,
                                          const VerifyOptions& o) {
  const VerifyCase plainest{.layout = "none", .threads = 1, .chunk = 0, .batch = 1};
  std::vector<Trajectory> reference(group.prompts);
  KVASIR_CHECK(run_setting(model, {plainest, group.prompts}, group.session, o,
                           [&](size_t prompt, int, std::span<const float> logits, int id) {
                             reference[prompt].ids.push_back(id);
                             reference[prompt].logits.insert(reference[prompt].logits.end(), logits.begin(),
                                                             logits.end());
                           }));
  return reference;
}

// One case for each layout, with a tenth of the prompts. `what` has the KV type or window of all of them.
Group other_group(VerifyCase what, SessionOptions session, const Layouts& layouts, const VerifyOptions& o) {
  Group group{kind_of(what), std::move(session), few_prompts(o), {}};
  what.threads = o.threads.back();
  what.chunk = middle_chunk(o);
  what.batch = o.batches.back();
  for (const auto& layout : layouts) {
    what.layout = layout.name;
    group.settings.push_back({what, group.prompts});
  }
  return group;
}

std::vector<Group> all_groups(const Model& model, const Layouts& layouts, const VerifyOptions& o) {
  std::vector<Group> groups{{"", o.session, o.prompts.size(), all_settings(layouts, o)}};
  if (!o.others) return groups;
  for (const auto& type : catalog::kv_types()) {
    SessionOptions session = o.session;
    session.kv_type_k = session.kv_type_v = type.name;
    if (session.kv_type_k != o.session.kv_type_k || session.kv_type_v != o.session.kv_type_v)
      groups.push_back(other_group({.kv_type = type.name}, session, layouts, o));
  }
  constexpr int kWindow = 24;  // with the sinks, shorter than the texts
  const ModelInfo& info = model.info();
  if (!info.takes_window || o.session.window > 0 || kWindow + kDefaultSinks > info.max_ctx) return groups;
  SessionOptions session = o.session;
  session.window = kWindow;
  groups.push_back(other_group({.window = kWindow, .sinks = kDefaultSinks}, session, layouts, o));
  return groups;
}

// The texts of the reference: each prompt and the tokens generated after it.
std::vector<KnownText> known_texts(const VerifyOptions& o, const std::vector<Trajectory>& reference, size_t count) {
  std::vector<KnownText> texts;
  for (size_t i = 0; i < count; ++i) {
    KnownText& text = texts.emplace_back(KnownText{o.prompts[i], static_cast<int>(o.prompts[i].size())});
    text.tokens.insert(text.tokens.end(), reference[i].ids.begin(), reference[i].ids.end());
  }
  return texts;
}

// Compares a generation whose logits were not recorded by its receipt; a different receipt counts as one bit.
Result<void> compare_with(const Model& model, std::span<const int> prompt, const Trajectory& want, const Generation& g,
                          VerifyCase* c) {
  const size_t vocab = want.logits.size() / want.ids.size();
  KVASIR_TRY(Receipt receipt, Receipt::start(model, g.stats.cache, prompt));
  for (size_t i = 0; i < g.tokens.size(); ++i) {
    c->differing_tokens += i >= want.ids.size() || g.tokens[i] != want.ids[i];
    if (i < want.ids.size()) receipt.add(std::span(want.logits).subspan(i * vocab, vocab), want.ids[i]);
  }
  c->compared_tokens += static_cast<int>(g.tokens.size());
  c->compared_logits += g.tokens.size() * vocab;
  c->differing_logit_bits += g.tokens.empty() || receipt.hex() == g.receipt ? 0 : 1;
  return {};
}

Result<VerifyCase> compare_act(const std::shared_ptr<const Model>& model, const Group& group, const Setting& s,
                               const VerifyOptions& o, const std::vector<Trajectory>& reference) {
  constexpr size_t kKept = size_t{1} << 40;
  EngineOptions options = engine_options(s.what);
  options.prefix_ram = kKept;
  KVASIR_TRY(const auto engine, Engine::create(model, options));
  const std::vector<KnownText> texts = known_texts(o, reference, s.prompts);
  const SamplingParams greedy{.temperature = 0};
  VerifyCase c = s.what;
  const Compare compare = [&](size_t text, int position, std::span<const float> row) {
    const auto step = static_cast<size_t>(position - texts[text].prompt);
    c.compared_logits += row.size();
    c.differing_logit_bits += differing_bits(row, reference[text].logits.data() + step * row.size());
    ++c.compared_tokens;
    const auto id = sample(row, greedy);
    c.differing_tokens += !id || *id != reference[text].ids[step];
  };
  const CompareGeneration compare_generation = [&](size_t text, const Generation& g) {
    return compare_with(*model, o.prompts[text], reference[text], g, &c);
  };
  const CompareAlone compare_alone = [&](const Generation& g, const Generation& alone) {
    for (size_t i = 0; i < g.tokens.size(); ++i)
      c.differing_tokens += i >= alone.tokens.size() || g.tokens[i] != alone.tokens[i];
    c.compared_tokens += static_cast<int>(g.tokens.size());
    c.compared_logits += g.tokens.size() * static_cast<size_t>(model->info().vocab);
    c.differing_logit_bits += g.tokens.size() == alone.tokens.size() && g.receipt != alone.receipt ? 1 : 0;
  };
  KVASIR_CHECK(
      s.act->run({*engine, in_layout(group.session, c.layout), texts, compare, compare_generation, compare_alone}));
  return c;
}

Result<VerifyCase> compare(const std::shared_ptr<const Model>& model, const Group& group, const Setting& s,
                           const VerifyOptions& o, const std::vector<Trajectory>& reference) {
  VerifyCase c = s.what;
  KVASIR_CHECK(
      run_setting(model, s, group.session, o, [&](size_t prompt, int step, std::span<const float> logits, int id) {
        const Trajectory& want = reference[prompt];
        c.compared_logits += logits.size();
        ++c.compared_tokens;
        c.differing_logit_bits +=
            differing_bits(logits, want.logits.data() + static_cast<size_t>(step) * logits.size());
        c.differing_tokens += id != want.ids[static_cast<size_t>(step)];
      }));
  return c;
}

}  // namespace

std::string VerifyCase::name() const {
  if (!act.empty()) return fmt::format("{} {}", layout, act);
  return fmt::format("{}{} threads={} chunk={} batch={}", kind_of(*this), layout, threads,
                     chunk == 0 ? "all" : std::to_string(chunk), batch);
}

Result<VerifyReport> verify(const std::shared_ptr<const Model>& model, const VerifyOptions& o) {
  KVASIR_CHECK(check(*model, o));
  KVASIR_TRY(const Layouts layouts, layouts_of(o));
  const std::vector<Group> groups = all_groups(*model, layouts, o);
  VerifyReport report;
  report.prompts = static_cast<int>(o.prompts.size());
  report.tokens = report.prompts * o.new_tokens;
  report.pass = !groups.front().settings.empty();
  size_t cases = 0;
  for (const Group& group : groups) cases += group.settings.size();
  const auto progress = [&](const std::string& what) {
    if (o.progress) o.progress(report.cases.size(), cases, what);
  };
  for (const Group& group : groups) {
    progress(group.what + "reference: recomputing every token");
    KVASIR_TRY(const std::vector<Trajectory> reference, recompute(model, group, o));
    for (const Setting& s : group.settings) {
      progress(s.what.name());
      KVASIR_TRY(VerifyCase c, (s.act != nullptr ? compare_act : compare)(model, group, s, o, reference));
      report.differing_tokens += c.differing_tokens;
      report.differing_logit_bits += c.differing_logit_bits;
      report.pass = report.pass && c.compared_logits > 0 && c.differing_logit_bits == 0 && c.differing_tokens == 0;
      report.cases.push_back(std::move(c));
    }
  }
  return report;
}

}  // namespace kvasir
