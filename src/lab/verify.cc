// Comparing every way to compute with the plainest one.
#include <kvasir/verify.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>

#include <fmt/format.h>

#include <kvasir/generate.h>

#include "arch/network.h"
#include "base/ranges.h"
#include "cache/kv_type.h"
#include "lab/verify_acts.h"

namespace kvasir {
namespace {

using Prompts = std::span<const std::vector<int>>;

struct Setting {
  const LayoutInfo* layout;
  int threads, chunk, batch;
  size_t prompts;                  // how many of them this case takes
  const VerifyAct* act = nullptr;  // instead of generating

  std::string name() const {
    if (act != nullptr) return fmt::format("{} {}", layout->name, act->name);
    return fmt::format("{} threads={} chunk={} batch={}", layout->name, threads,
                       chunk == 0 ? "all" : std::to_string(chunk), batch);
  }
};

// Settings that must agree: those of one KV type and one window.
struct Group {
  std::string what;  // before the names of its cases: "", "kv=q8_0 "
  SessionOptions session;
  size_t prompts;
  std::vector<Setting> settings;
};

// What one prompt generated: ids and, at each step, the logits that chose them.
struct Trajectory {
  std::vector<int> ids;
  std::vector<float> logits;  // [ids][vocab]
};

// Sees every generated token: prompt, step, its logits, its id.
using Visit = std::function<void(size_t prompt, int step, std::span<const float> logits, int id)>;

// Up to `batch` sequences side by side: one prefill of all prompts, then one token each per step.
Result<void> run_batch(Engine& engine, const Setting& s, const SessionOptions& session_options, const VerifyOptions& o,
                       size_t first, size_t count, const Visit& visit) {
  std::vector<Session> sessions;
  std::vector<Session*> pointers;
  std::vector<Feed> feeds;
  sessions.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    KVASIR_TRY(Session session, engine.open_session(*s.layout, session_options));
    sessions.push_back(std::move(session));
    pointers.push_back(&sessions.back());
    feeds.push_back({&sessions.back(), o.prompts[first + i]});
  }
  const size_t vocab = static_cast<size_t>(engine.model().info().vocab);
  const SamplingParams greedy{.temperature = 0};
  StepOutput out;
  KVASIR_CHECK(engine.step(feeds, &out));
  for (int step = 0;; ++step) {
    std::vector<int> ids;
    for (size_t i = 0; i < count; ++i) {
      const std::span<const float> row(out.logits.data() + i * vocab, vocab);
      KVASIR_TRY(const int id, sample(row, greedy));
      visit(first + i, step, row, id);
      ids.push_back(id);
    }
    if (step + 1 == o.new_tokens) return {};
    KVASIR_CHECK(engine.decode_step(pointers, ids, &out));
  }
}

Result<void> run_setting(const std::shared_ptr<const Model>& model, const Setting& s, const SessionOptions& session,
                         const VerifyOptions& o, const Visit& visit) {
  EngineOptions options;
  options.threads = s.threads;
  options.prefill_chunk = s.chunk == 0 ? INT_MAX : s.chunk;
  KVASIR_TRY(const auto engine, Engine::create(model, options));
  const size_t batch = static_cast<size_t>(s.batch);
  for (size_t first = 0; first < s.prompts; first += batch)
    KVASIR_CHECK(run_batch(*engine, s, session, o, first, std::min(batch, s.prompts - first), visit));
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

std::vector<const LayoutInfo*> layouts_of(const VerifyOptions& o) {
  if (!o.layouts.empty()) return o.layouts;
  return {layouts().begin(), layouts().end()};
}

std::vector<Setting> all_settings(const VerifyOptions& o) {
  std::vector<Setting> settings;
  const size_t few = std::max<size_t>(1, o.prompts.size() / 10);
  for (const LayoutInfo* layout : layouts_of(o)) {
    for (int threads : o.threads)
      for (int chunk : o.chunks)
        for (int batch : o.batches) {
          const bool quadratic = !layout->keeps && chunk != 0;
          settings.push_back({layout, threads, chunk, batch, quadratic ? few : o.prompts.size()});
        }
    if (!o.acts) continue;
    for (const VerifyAct& act : verify_acts())
      settings.push_back({layout, o.threads.back(), o.chunks[o.chunks.size() / 2], 1,
                          layout->keeps ? std::max<size_t>(few, std::min<size_t>(5, o.prompts.size())) : few, &act});
  }
  return settings;
}

// What every case of a group must give: each token from all of the text before it, computed anew.
Result<std::vector<Trajectory>> recompute(const std::shared_ptr<const Model>& model, const Group& group,
                                          const VerifyOptions& o) {
  KVASIR_TRY(const LayoutInfo* none, find_layout("none"));
  std::vector<Trajectory> reference(group.prompts);
  KVASIR_CHECK(run_setting(model, {none, 1, 0, 1, group.prompts}, group.session, o,
                           [&](size_t prompt, int, std::span<const float> logits, int id) {
                             reference[prompt].ids.push_back(id);
                             reference[prompt].logits.insert(reference[prompt].logits.end(), logits.begin(),
                                                             logits.end());
                           }));
  return reference;
}

// One case for each layout, of some prompts.
Group other_group(std::string what, SessionOptions session, const VerifyOptions& o) {
  Group group{std::move(what), std::move(session), std::max<size_t>(1, o.prompts.size() / 10), {}};
  for (const LayoutInfo* layout : layouts_of(o))
    group.settings.push_back(
        {layout, o.threads.back(), o.chunks[o.chunks.size() / 2], o.batches.back(), group.prompts});
  return group;
}

std::vector<Group> all_groups(const Model& model, const VerifyOptions& o) {
  std::vector<Group> groups{{"", o.session, o.prompts.size(), all_settings(o)}};
  if (!o.others) return groups;
  for (const KvType& type : kv_types()) {
    SessionOptions session = o.session;
    session.kv_type_k = session.kv_type_v = type.name;
    if (session.kv_type_k != o.session.kv_type_k || session.kv_type_v != o.session.kv_type_v)
      groups.push_back(other_group(fmt::format("kv={} ", type.name), session, o));
  }
  const ModelConfig& c = model.network().config();
  constexpr int kWindow = 24;  // with the sinks, shorter than the texts
  if (!c.rope || !c.windows.empty() || o.session.window > 0 || kWindow + kDefaultSinks > c.max_ctx) return groups;
  SessionOptions session = o.session;
  session.window = kWindow;
  groups.push_back(other_group(fmt::format("window={}+{} ", kWindow, kDefaultSinks), session, o));
  return groups;
}

// What the reference typed: its prompts, and what it generated after each.
std::vector<KnownText> known_texts(const VerifyOptions& o, const std::vector<Trajectory>& reference, size_t count) {
  std::vector<KnownText> texts;
  for (size_t i = 0; i < count; ++i) {
    KnownText& text = texts.emplace_back(KnownText{o.prompts[i], static_cast<int>(o.prompts[i].size())});
    text.tokens.insert(text.tokens.end(), reference[i].ids.begin(), reference[i].ids.end());
  }
  return texts;
}

Result<VerifyCase> compare_act(const std::shared_ptr<const Model>& model, const Group& group, const Setting& s,
                               const VerifyOptions& o, const std::vector<Trajectory>& reference) {
  constexpr size_t kKept = size_t{1} << 40;
  KVASIR_TRY(const auto engine, Engine::create(model, {s.threads, s.chunk == 0 ? INT_MAX : s.chunk, kKept}));
  const std::vector<KnownText> texts = known_texts(o, reference, s.prompts);
  const SamplingParams greedy{.temperature = 0};
  VerifyCase c{.name = group.what + s.name()};
  const Compare compare = [&](size_t text, int position, std::span<const float> row) {
    const auto step = static_cast<size_t>(position - texts[text].prompt);
    c.compared_logits += row.size();
    c.differing_logit_bits += differing_bits(row, reference[text].logits.data() + step * row.size());
    ++c.compared_tokens;
    const auto id = sample(row, greedy);
    c.differing_tokens += !id || *id != reference[text].ids[step];
  };
  KVASIR_CHECK(s.act->run({*engine, *s.layout, group.session, texts, compare}));
  return c;
}

Result<VerifyCase> compare(const std::shared_ptr<const Model>& model, const Group& group, const Setting& s,
                           const VerifyOptions& o, const std::vector<Trajectory>& reference) {
  VerifyCase c;
  c.name = group.what + s.name();
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

Result<VerifyReport> verify(const std::shared_ptr<const Model>& model, const VerifyOptions& o) {
  KVASIR_CHECK(check(*model, o));
  const std::vector<Group> groups = all_groups(*model, o);
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
      progress(group.what + s.name());
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
