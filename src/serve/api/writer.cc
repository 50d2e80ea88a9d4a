// Selects the writer of a call, and holds the writers' helpers.
#include "serve/api/writer.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace kvasir::serve {

std::unique_ptr<AnswerWriter> chat_writer();
std::unique_ptr<AnswerWriter> messages_writer();
std::unique_ptr<AnswerWriter> responses_writer();

std::unique_ptr<AnswerWriter> make_writer(const Call& call) {
  if (call.dialect == Dialect::messages) return messages_writer();
  if (call.dialect == Dialect::responses) return responses_writer();
  return chat_writer();
}

std::string call_id(const Envelope& envelope, size_t choice, int index, size_t characters) {
  const std::string of = fmt::format("{}/{}/{}", envelope.id, choice, index);
  const XXH128_hash_t hash = XXH3_128bits(of.data(), of.size());
  const std::string digits = fmt::format("{:016x}{:08x}", hash.low64, static_cast<uint32_t>(hash.high64));
  return characters == 0 ? "call_" + digits : digits.substr(0, characters);
}

std::string event_text(const Json& json, std::string_view name) {
  return (name.empty() ? "" : fmt::format("event: {}\n", name)) + "data: " + to_text(json) + "\n\n";
}

}  // namespace kvasir::serve
