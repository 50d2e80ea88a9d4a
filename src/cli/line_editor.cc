// libedit on a terminal, getline elsewhere.
#include "cli/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <iostream>

namespace kvasir::cli {

struct LineEditor::Editor {
  Editor() : line(el_init("kvasir", stdin, stdout, stderr)), past(history_init()) {
    constexpr int kLines = 500;
    HistEvent event;
    history(past, &event, H_SETSIZE, kLines);
    el_set(line, EL_CLIENTDATA, this);
    el_set(line, EL_PROMPT, &Editor::show_prompt);
    el_set(line, EL_EDITOR, "emacs");
    el_set(line, EL_HIST, history, past);
    el_set(line, EL_SIGNAL, 1);
    el_source(line, nullptr);  // ~/.editrc
  }
  ~Editor() {
    history_end(past);
    el_end(line);
  }

  static char* show_prompt(EditLine* line) {
    void* self = nullptr;
    el_get(line, EL_CLIENTDATA, &self);
    return static_cast<Editor*>(self)->prompt.data();
  }

  EditLine* line;
  History* past;
  std::string prompt;
};

LineEditor::LineEditor() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return;
  std::setlocale(LC_CTYPE, "");  // characters of more than one byte
  editor_ = std::make_unique<Editor>();
}

LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read(const std::string& prompt) {
  std::string text;
  if (!interactive()) return std::getline(std::cin, text) ? std::optional(text) : std::nullopt;
  editor_->prompt = prompt;
  int bytes = 0;
  const char* typed = el_gets(editor_->line, &bytes);
  if (typed == nullptr || bytes <= 0) return std::nullopt;
  text.assign(typed, static_cast<size_t>(bytes));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  HistEvent event;
  if (!text.empty()) history(editor_->past, &event, H_ENTER, text.c_str());
  return text;
}

}  // namespace kvasir::cli
