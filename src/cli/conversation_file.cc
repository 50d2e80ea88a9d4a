// Conversations as JSON. A turn stores only what it adds to the turn before, so that the size of a file is linear in
// its conversation.
#include "cli/conversation_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/files.h"
#include "serve/json.h"

namespace kvasir::cli {
namespace {

using serve::Json;

constexpr int kVersion = 1;
constexpr size_t kMostBytes = size_t{1} << 30;

// The text as a reader of the file gets it: invalid UTF-8 is replaced.
std::string as_utf8(const std::string& text) { return Json::parse(serve::to_text(Json(text))).get<std::string>(); }

bool begins_with(const std::vector<int>& ids, const std::vector<int>& with) {
  return ids.size() >= with.size() && std::equal(with.begin(), with.end(), ids.begin());
}

Json turn_json(const Turn& turn, const Held& before, const Held& held) {
  const bool goes_on = held.text.starts_with(before.text) && begins_with(held.ids, before.ids);
  const auto known = static_cast<std::ptrdiff_t>(goes_on ? before.ids.size() : 0);
  return {{"user", turn.user},
          {"answer", turn.answer},
          {"tries", turn.tries},
          {"goes_on", goes_on},
          {"text", held.text.substr(goes_on ? before.text.size() : 0)},
          {"ids", std::vector<int>(held.ids.begin() + known, held.ids.end())}};
}

tl::unexpected<Error> no_conversation(const std::string& path, const std::string& what) {
  return fail(Error::damaged, what, path, "the file that /save wrote beside its snapshot");
}

// The member with this name and type, or null.
const Json* member(const Json& object, const char* name, bool (Json::*is)() const noexcept) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && ((*found).*is)() ? &*found : nullptr;
}

Result<Turn> turn_of(const Json& json, const Held& before, int vocab, const std::string& path, size_t index) {
  const Json* user = member(json, "user", &Json::is_string);
  const Json* answer = member(json, "answer", &Json::is_string);
  const Json* tries = member(json, "tries", &Json::is_number_unsigned);
  const Json* goes_on = member(json, "goes_on", &Json::is_boolean);
  const Json* text = member(json, "text", &Json::is_string);
  const Json* ids = member(json, "ids", &Json::is_array);
  for (const Json* part : {user, answer, tries, goes_on, text, ids})
    if (part == nullptr) return no_conversation(path, fmt::format("turn {} is not as /save writes it", index));
  Turn turn{.user = *user, .answer = *answer, .held = {}, .tries = *tries};
  if (goes_on->get<bool>()) turn.held = before;
  turn.held.text += text->get<std::string>();
  for (const Json& id : *ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(vocab))
      return no_conversation(path, fmt::format("turn {} has an id that the model does not know", index));
    turn.held.ids.push_back(id);
  }
  return turn;
}

}  // namespace

std::string conversation_path(const std::string& snapshot) { return snapshot + ".json"; }

Result<void> write_conversation(const std::string& path, const SavedConversation& conversation) {
  Json turns = Json::array();
  Held before;
  for (const Turn& turn : conversation.turns) {
    Held held{.text = as_utf8(turn.held.text), .ids = turn.held.ids};
    turns.push_back(turn_json(turn, before, held));
    before = std::move(held);
  }
  const std::string text =
      serve::to_text({{"kvasir_conversation", kVersion}, {"system", conversation.system}, {"turns", turns}}) + "\n";
  return write_file_atomically(path, std::as_bytes(std::span(text)));
}

Result<SavedConversation> read_conversation(const std::string& path, int vocab) {
  KVASIR_TRY(const std::string text, kvasir::read_text_file(path, kMostBytes));
  const auto json = serve::parse_json(text, {.values = kMostBytes, .containers = kMostBytes, .searched = kMostBytes});
  if (!json) return no_conversation(path, "this is not JSON");
  const Json* version = member(*json, "kvasir_conversation", &Json::is_number_unsigned);
  const Json* system = member(*json, "system", &Json::is_string);
  const Json* turns = member(*json, "turns", &Json::is_array);
  if (version == nullptr || system == nullptr || turns == nullptr)
    return no_conversation(path, "this is not a saved conversation");
  if (*version != kVersion)
    return fail(Error::unsupported, fmt::format("version {} of saved conversations is unknown", version->dump()), path,
                "the version of Kvasir that wrote it");
  SavedConversation conversation{.system = *system, .turns = {}};
  for (const Json& turn : *turns) {
    const Held before = conversation.turns.empty() ? Held() : conversation.turns.back().held;
    KVASIR_TRY(Turn read, turn_of(turn, before, vocab, path, conversation.turns.size()));
    conversation.turns.push_back(std::move(read));
  }
  return conversation;
}

}  // namespace kvasir::cli
