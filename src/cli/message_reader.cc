// Joins lines to messages.
#include "cli/message_reader.h"

namespace kvasir::cli {
namespace {

using Event = LineEditor::Event;

constexpr const char* kMark = "\"\"\"";
constexpr const char *kFirst = "> ", *kMore = "| ";

}  // namespace

Event MessageReader::read(Typed* typed) {
  *typed = {};
  std::string line;
  if (const Event event = editor_.read(kFirst, &line); event != Event::line) return event;
  if (line == kMark) return read_block(typed);
  while (line.ends_with('\\')) {
    line.pop_back();
    typed->text += line + "\n";
    const Event event = editor_.read(kMore, &line);
    if (event == Event::interrupt) return event;
    if (event == Event::end) line.clear();
  }
  typed->text += line;
  return Event::line;
}

Event MessageReader::read_block(Typed* typed) {
  typed->is_block = true;
  bool is_first = true;
  for (std::string line;; line.clear()) {
    const Event event = editor_.read(kMore, &line);
    if (event == Event::interrupt) return event;
    if (event == Event::end || line == kMark) return Event::line;
    typed->text += (is_first ? "" : "\n") + line;
    is_first = false;
  }
}

}  // namespace kvasir::cli
