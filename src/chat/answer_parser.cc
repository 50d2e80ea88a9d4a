// The public AnswerParser, which returns the parts of an answer as its text arrives, and the list of parts.
#include <algorithm>

#include "chat/answer_reader.h"

namespace kvasir {

// ---- parts --------------------------------------------------------------------------------------------------------

void PartList::add(AnswerPart::Kind kind, std::string_view text) {
  if (parts_.empty() || parts_.back().kind != kind || kind == AnswerPart::call)
    parts_.push_back({.kind = kind, .text = std::string(text)});
  else
    parts_.back().text += text;
}

bool PartList::begin(std::string_view name) {
  const bool known = std::find(o_.tools.begin(), o_.tools.end(), name) != o_.tools.end();
  if (name.empty() || (only_known_ && !known)) return false;
  ++begun_;
  if (is_dropped()) return true;
  add(AnswerPart::call, name);
  parts_.back().index = begun_ - 1;
  return true;
}

void PartList::arguments(std::string_view bytes) {
  if (is_dropped() || bytes.empty()) return;
  add(AnswerPart::arguments, bytes);
  parts_.back().index = begun_ - 1;
}

// ---- the parser ---------------------------------------------------------------------------------------------------

struct AnswerParser::Impl {
  Impl(const CallFormat& how, AnswerOptions options, bool in_reasoning)
      : format(how),
        parts(std::move(options)),
        reader(how.channels ? channel_reader(parts) : marked_reader(how, parts, in_reasoning)) {}

  const CallFormat& format;
  PartList parts;
  std::unique_ptr<AnswerReader> reader;
};

AnswerParser::AnswerParser(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;
AnswerParser& AnswerParser::operator=(AnswerParser&&) noexcept = default;
AnswerParser::~AnswerParser() = default;

Result<AnswerParser> AnswerParser::create(std::string_view format, AnswerOptions options, bool in_reasoning) {
  std::string names;
  for (const CallFormat* one : call_formats()) {
    if (one->name == format) return AnswerParser(std::make_unique<Impl>(*one, std::move(options), in_reasoning));
    names += (names.empty() ? "" : ", ") + std::string(one->name);
  }
  return fail(Error::bad_argument, "\"" + std::string(format) + "\" is not a format of answers", "AnswerParser::format",
              names);
}

std::vector<AnswerPart> AnswerParser::push(std::string_view text) {
  for (const char c : text) impl_->reader->take(c);
  return impl_->parts.take();
}

std::vector<AnswerPart> AnswerParser::finish() {
  impl_->reader->finish();
  return impl_->parts.take();
}

bool AnswerParser::reasons() const { return impl_->reader->reasons(); }
int AnswerParser::calls() const { return impl_->parts.begun(); }
int AnswerParser::complete_calls() const { return impl_->parts.ended(); }
size_t AnswerParser::id_characters() const { return impl_->format.id_characters; }

}  // namespace kvasir
