// Comparing two views, and writing the difference.
#include "serve/cache_events.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace kvasir::serve {
namespace {

constexpr int kVersion = 1, kBlockPositions = 64;

const char* name_of(CacheSequence::State state) {
  switch (state) {
    case CacheSequence::waiting:
      return "waiting";
    case CacheSequence::prefill:
      return "prefill";
    case CacheSequence::decode:
      return "decode";
    case CacheSequence::preempted:
      break;
  }
  return "preempted";
}

template <class T>
std::map<uint64_t, const T*> by_id(const std::vector<T>& all) {
  std::map<uint64_t, const T*> found;
  for (const T& each : all) found.emplace(each.id, &each);
  return found;
}

// {"set": new and changed ones, "gone": ids}; an empty object if nothing has changed.
template <class T, class Write>
Json changes(const std::vector<T>& before, const std::vector<T>& now, Write write) {
  auto old = by_id(before);
  Json set = Json::array(), gone = Json::array();
  for (const T& each : now) {
    const auto found = old.find(each.id);
    if (found == old.end() || !(*found->second == each)) set.push_back(write(each));
    if (found != old.end()) old.erase(found);
  }
  for (const auto& [id, each] : old) gone.push_back(id);
  Json json = Json::object();
  if (!set.empty()) json["set"] = std::move(set);
  if (!gone.empty()) json["gone"] = std::move(gone);
  return json;
}

// Blocks that replaced shared ones, which a sequence wrote to.
Json copied(const CacheView& before, const CacheView& now) {
  const auto old = by_id(before.sequences);
  Json ids = Json::array();
  for (const CacheSequence& sequence : now.sequences) {
    const auto found = old.find(sequence.id);
    const int was = found == old.end() ? -1 : found->second->copied;
    if (sequence.copied >= 0 && sequence.copied != was) ids.push_back(sequence.copied);
  }
  return ids;
}

// Blocks that the prefix tree held and holds no more.
Json evicted(const CacheView& before, const CacheView& now) {
  const auto left = by_id(now.blocks);
  Json ids = Json::array();
  for (const CacheBlock& block : before.blocks) {
    const auto found = left.find(static_cast<uint64_t>(block.id));
    if (block.stored && (found == left.end() || !found->second->stored)) ids.push_back(block.id);
  }
  return ids;
}

}  // namespace

bool CacheEvents::is_mine(const std::string& salt) const {
  return salt.starts_with(facts_.salt) || (salt.empty() && facts_.owner.empty());
}

Json CacheEvents::json_of(const CacheBlock& block) {
  Json json = {block.id, block.stored ? 1 : 0};
  for (const uint64_t sequence : block.sequences) json.push_back(sequence);
  return json;
}

Json CacheEvents::json_of(const CacheSequence& s) const {
  return {{"id", s.id},
          {"request", s.request},
          {"choice", s.choice},
          {"owner", s.owner},
          {"mine", s.owner == facts_.owner},
          {"state", name_of(s.state)},
          {"prompt", s.prompt},
          {"reused", s.reused},
          {"computed", s.computed},
          {"generated", s.generated},
          {"max_tokens", s.max_tokens < 0 ? Json() : Json(s.max_tokens)},
          {"preemptions", s.preemptions}};
}

Json CacheEvents::json_of(const CacheNode& n) const {
  const bool mine = is_mine(n.salt);
  Json json = {{"id", n.id},       {"parent", n.parent}, {"mine", mine},
               {"depth", n.depth}, {"tokens", n.tokens}, {"used_s", n.used - facts_.started}};
  if (mine && !n.requests.empty()) json["requests"] = n.requests;
  if (!mine || facts_.tokenizer == nullptr) return json;
  std::string text = facts_.tokenizer->decode(n.ids).value_or("");
  if (n.ids.size() < static_cast<size_t>(n.tokens)) text += "…";
  json["text"] = std::move(text);
  return json;
}

Json CacheEvents::counters(const CacheView& now) const {
  int64_t sequences = 0, shared = 0, prefix = 0;
  for (const CacheBlock& block : now.blocks) {
    const size_t holders = block.sequences.size() + (block.stored ? 1 : 0);
    ++(holders > 1 ? shared : block.stored ? prefix : sequences);
  }
  const SchedulerStats& s = now.stats;
  return {{"running", s.running},
          {"waiting", s.waiting},
          {"submitted", s.submitted},
          {"finished", s.finished},
          {"failed", s.failed},
          {"cancelled", s.cancelled},
          {"reused", s.reused},
          {"computed", s.computed},
          {"recomputed", s.recomputed},
          {"generated", s.generated},
          {"preemptions", s.preemptions},
          {"passes", s.passes},
          {"pass_tokens", s.pass_tokens},
          {"pass_s", s.pass_s},
          {"predicted_s", s.predicted_s},
          {"blocks", {{"sequences", sequences}, {"shared", shared}, {"prefix", prefix}}},
          {"bytes", {{"kv", s.kv_used}, {"weights", now.weight_bytes}}}};
}

Json CacheEvents::snapshot(const CacheView& now) {
  const bool limited = facts_.capacity != SIZE_MAX && facts_.block_bytes > 0;
  Json json = {{"type", "snapshot"},
               {"version", kVersion},
               {"time_s", now.time - facts_.started},
               {"model", facts_.model},
               {"layout", facts_.layout},
               {"block_positions", kBlockPositions},
               {"block_bytes", facts_.block_bytes},
               {"capacity_blocks", limited ? Json(facts_.capacity / facts_.block_bytes) : Json()},
               {"step_ms", facts_.step_ms},
               {"blocks", Json::array()},
               {"sequences", Json::array()},
               {"nodes", Json::array()},
               {"counters", counters(now)}};
  for (const CacheBlock& block : now.blocks) json["blocks"].push_back(json_of(block));
  for (const CacheSequence& sequence : now.sequences) json["sequences"].push_back(json_of(sequence));
  for (const CacheNode& node : now.nodes) json["nodes"].push_back(json_of(node));
  return json;
}

Json CacheEvents::diff(const CacheView& before, const CacheView& now) {
  const auto write = [this](const auto& each) { return json_of(each); };
  Json json = {{"type", "diff"}, {"time_s", now.time - facts_.started}};
  const auto add = [&](const char* name, Json value) {
    if (!value.empty()) json[name] = std::move(value);
  };
  add("blocks", changes(before.blocks, now.blocks, write));
  add("copied", copied(before, now));
  add("evicted", evicted(before, now));
  add("sequences", changes(before.sequences, now.sequences, write));
  add("nodes", changes(before.nodes, now.nodes, write));
  add("first_token_s", Json(std::exchange(first_tokens_, {})));
  json["counters"] = counters(now);
  return json;
}

Json CacheEvents::next(std::shared_ptr<const CacheView> view) {
  Json json = before_ == nullptr ? snapshot(*view) : diff(*before_, *view);
  before_ = std::move(view);
  return json;
}

}  // namespace kvasir::serve
