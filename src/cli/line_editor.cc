// libedit on a terminal; plain reads of stdin otherwise.
#include "cli/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <utility>

namespace kvasir::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

// `restart`: after SIGINT, interrupted system calls are restarted, so that printing continues. Without it, a wait for a
// line ends.
void handle_interrupts(bool restart) {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = restart ? SA_RESTART : 0;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

// True while an Interrupts object exists; otherwise SIGINT is left alone.
bool handling = false;

class WaitInterruptibly {
 public:
  WaitInterruptibly() { set(false); }
  ~WaitInterruptibly() { set(true); }

 private:
  static void set(bool restart) {
    if (handling) handle_interrupts(restart);
  }
};

}  // namespace

Interrupts::Interrupts() {
  handling = true;
  handle_interrupts(true);
}

Interrupts::~Interrupts() {
  handling = false;
  std::signal(SIGINT, SIG_DFL);
}

bool Interrupts::any() { return interrupted != 0; }
void Interrupts::forget() { interrupted = 0; }

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

LineEditor::Event LineEditor::read(const std::string& prompt, std::string* line) {
  Event event = Event::interrupt;  // Ctrl-C came before the wait began
  if (!Interrupts::any()) {
    const WaitInterruptibly wait;
    event = interactive() ? type(prompt, line) : take(line);
  }
  if (event == Event::interrupt) Interrupts::forget();
  if (line->ends_with('\r')) line->pop_back();
  return event;
}

// The editor handles the text as typed, so a control character would act as a key.
bool LineEditor::offer(const std::string& text) {
  const auto is_key = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (!interactive() || std::any_of(text.begin(), text.end(), is_key)) return false;
  el_push(editor_->line, text.c_str());
  return true;
}

LineEditor::Event LineEditor::type(const std::string& prompt, std::string* line) {
  editor_->prompt = prompt;
  int bytes = 0;
  const char* typed = el_gets(editor_->line, &bytes);
  if (typed == nullptr || bytes <= 0) {
    el_reset(editor_->line);
    return Interrupts::any() ? Event::interrupt : Event::end;
  }
  line->assign(typed, static_cast<size_t>(bytes));
  while (line->ends_with('\n') || line->ends_with('\r')) line->pop_back();
  HistEvent event;
  if (!line->empty()) history(editor_->past, &event, H_ENTER, line->c_str());
  return Event::line;
}

// Reads the file descriptor: standard library streams treat an interrupted wait as the end of the input.
LineEditor::Event LineEditor::take(std::string* line) {
  for (;;) {
    if (const size_t end = waiting_.find('\n'); end != std::string::npos) {
      *line = waiting_.substr(0, end);
      waiting_.erase(0, end + 1);
      return Event::line;
    }
    char buffer[1 << 14];
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got > 0) {
      waiting_.append(buffer, static_cast<size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      if (Interrupts::any()) return Event::interrupt;
    } else {
      *line = std::exchange(waiting_, {});
      return line->empty() ? Event::end : Event::line;
    }
  }
}

}  // namespace kvasir::cli
