// Any bytes as a model's answer, in every format, whole and in two pieces: both give the same parts.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/chat.h>

namespace {

using kvasir::AnswerPart;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

// Joins adjacent parts of one kind.
void add(std::vector<AnswerPart>* all, std::vector<AnswerPart> more) {
  for (AnswerPart& part : more) {
    const bool joins = !all->empty() && all->back().kind == part.kind && part.kind != AnswerPart::call &&
                       all->back().index == part.index;
    if (joins)
      all->back().text += part.text;
    else
      all->push_back(std::move(part));
  }
}

std::vector<AnswerPart> parts_of(std::string_view format, std::string_view answer, size_t cut, bool one_call) {
  auto parser = kvasir::AnswerParser::create(format, {.tools = {"f", "g"}, .one_call = one_call});
  std::vector<AnswerPart> parts;
  add(&parts, parser->push(answer.substr(0, cut)));
  add(&parts, parser->push(answer.substr(cut)));
  add(&parts, parser->finish());
  require(parser->complete_calls() <= parser->calls());
  return parts;
}

bool same(const std::vector<AnswerPart>& a, const std::vector<AnswerPart>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].kind != b[i].kind || a[i].text != b[i].text || a[i].index != b[i].index) return false;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view answer(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = answer.empty() ? 0 : data[0] % (answer.size() + 1);
  for (const char* format : {"none", "hermes", "llama3", "mistral", "deepseek", "gemma", "harmony"}) {
    const std::vector<AnswerPart> whole = parts_of(format, answer, answer.size(), false);
    require(same(whole, parts_of(format, answer, cut, false)));
    int index = -1;
    for (const AnswerPart& part : whole) {
      if (part.kind == AnswerPart::call) require(part.index == ++index && !part.text.empty());
      if (part.kind == AnswerPart::arguments) require(part.index == index);
    }
    int calls = 0;
    for (const AnswerPart& part : parts_of(format, answer, cut, true)) calls += part.kind == AnswerPart::call ? 1 : 0;
    require(calls <= 1);
  }
  return 0;
}
