// kvasir: one program, one file per command. `kvasir MODEL ...` is `kvasir run MODEL ...`.
#include <fcntl.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <kvasir/version.h>

#include "base/temporaries.h"
#include "cli/cli.h"
#include "cli/parameter_names.h"
#include "cli/printable.h"

namespace kvasir::cli {
namespace {

// llama.cpp spells these with one dash; CLI11 wants two for names of more than a letter.
std::string long_form(const std::string& arg) {
  for (const char* flag : {"-ctk", "-ctv"})
    if (arg == flag || arg.starts_with(std::string(flag) + "=")) return "-" + arg;
  return arg;
}

std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> args;
  for (int i = 1; i < argc; ++i) args.push_back(long_form(argv[i]));
  if (args.empty()) return {"--help"};
  if (args[0] == "-h" || args[0] == "--help" || args[0] == "--version" || args[0] == "--flags") return args;
  for (const Command* command : commands())
    if (args[0] == command->name) return args;
  args.insert(args.begin(), "run");
  return args;
}

int report(const Error& error) {
  fmt::print(stderr, "kvasir: {}\n", printable(with_flags(error).message()));
  return kBadInput;
}

// If a standard stream is closed, the next file opened would get its number, and output would go into that file.
void keep_standard_streams() {
  for (int fd : {0, 1, 2})
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)open("/dev/null", O_RDONLY);
}

// Ends by the signal itself, so that the parent process sees which one it was.
void end_by(int signal_number) {
  remove_temporaries();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// Removes unfinished output files when a signal ends the program. An ignored signal (nohup) stays ignored.
void clean_up_on_signals() {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ})
    if (const auto before = signal(number, end_by); before != SIG_DFL) signal(number, before);
}

int output_done(int code) {
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return report({Error::io, "the output could not be written", "stdout", "a place with free space"});
}

// All commands with their flags. All are needed to list them in the help.
struct Commands {
  CommandLine line{
      "kvasir", "Kvasir: an LLM inference engine built around its KV cache.", kVersion,
      "Examples:\n  kvasir run tales -p \"Once upon a time\" -n 64 --stats\n  kvasir verify tales --count 4 -n 32\n"
      "Help for a command: kvasir COMMAND --help. For programs: kvasir --flags prints every flag as JSON."};
  std::vector<Run> runs{commands().size()};

  Commands() {
    for (size_t i = 0; i < runs.size(); ++i)
      commands()[i]->add(line.add_command(commands()[i]->name, commands()[i]->summary), &runs[i]);
  }
};

int run_command(Flags& flags, const Run& run) {
  if (const auto read = flags.read(); !read) return report(read.error());
  const auto code = run();
  return code ? output_done(*code) : report(code.error());
}

int main_with(const std::vector<std::string>& args) {
  Commands all;
  if (args[0] == "--flags") {
    if (args.size() > 1)
      return report({Error::bad_argument, "it takes no other argument", "--flags", "kvasir --flags"});
    print_json(all.line.describe());
    return output_done(kOk);
  }
  size_t asked = 0;
  for (size_t i = 0; i < all.runs.size(); ++i)
    if (args[0] == commands()[i]->name) asked = i;
  const auto answered = all.line.cut(args, asked);
  if (!answered) return report(answered.error());
  if (*answered) return output_done(kOk);
  return run_command(all.line.flags(asked), all.runs[asked]);
}

}  // namespace
}  // namespace kvasir::cli

int main(int argc, char** argv) {
  kvasir::cli::keep_standard_streams();
  kvasir::cli::clean_up_on_signals();
  try {
    return kvasir::cli::main_with(kvasir::cli::arguments(argc, argv));
  } catch (const std::exception& e) {  // thrown by another library, for example when memory runs out
    std::fprintf(stderr, "kvasir: %s\n", e.what());
    return kvasir::cli::kBadInput;
  }
}
