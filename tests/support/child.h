// The program while it runs: tests type to it and read from it through pipes or on a terminal of its own. Tests only.
#pragma once

#include <poll.h>
#include <pty.h>
#include <signal.h>

#include <chrono>

#include "tests/support/program.h"

namespace kvasir::e2e {

class Child {
 public:
  /// Starts the program; stdout and stderr come together.
  Child(std::vector<std::string> arguments, bool terminal) {
    std::vector<std::string> environment = environment_of({}, scratch_);
    environment.insert(environment.begin(), {"TERM=dumb", "HOME=" + scratch_.path().string()});
    arguments.insert(arguments.begin(), KVASIR_PROGRAM);
    std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    if (!terminal && (pipe(in) != 0 || pipe(out) != 0)) return;
    pid_ = terminal ? forkpty(&read_, nullptr, nullptr, nullptr) : fork();
    if (pid_ == 0) {
      if (!terminal) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(out[1], 2);
        for (int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      }
      execve(KVASIR_PROGRAM, argv.data(), envp.data());
      _exit(127);
    }
    write_ = read_;
    if (terminal) return;
    ::close(in[0]);
    ::close(out[1]);
    write_ = in[1];
    read_ = out[0];
  }
  ~Child() {
    if (pid_ > 0) kill(pid_, SIGKILL), (void)end();
    close_input();
    if (read_ >= 0) ::close(read_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void type(const std::string& text) {
    EXPECT_EQ(::write(write_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void interrupt() { kill(pid_, SIGINT); }
  void close_input() {
    if (write_ >= 0 && write_ != read_) ::close(write_);
    write_ = -1;
  }
  /// Returns the output up to and including `needle` and removes it; "" if it does not come in time.
  std::string wait_for(const std::string& needle, int seconds = 60) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    for (;;) {
      if (const size_t at = text_.find(needle); at != std::string::npos) {
        const std::string seen = text_.substr(0, at + needle.size());
        text_.erase(0, seen.size());
        return seen;
      }
      pollfd wait{read_, POLLIN, 0};
      char buffer[4096];
      if (std::chrono::steady_clock::now() > until || poll(&wait, 1, 500) < 0) break;
      if (wait.revents == 0) continue;
      const ssize_t got = ::read(read_, buffer, sizeof buffer);
      if (got <= 0) break;
      text_.append(buffer, static_cast<size_t>(got));
    }
    ADD_FAILURE() << "\"" << needle << "\" does not come after: " << text_;
    return {};
  }
  /// Waits for the end; returns the exit code, or 128 + the signal that ended it.
  int end() {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) return -1;
    pid_ = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  TempFolder scratch_;
  pid_t pid_ = 0;
  int read_ = -1, write_ = -1;
  std::string text_;
};

}  // namespace kvasir::e2e
