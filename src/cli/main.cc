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

#include "base/temporaries.h"
#include "cli/cli.h"
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
  if (args[0] == "-h" || args[0] == "--help" || args[0] == "--version") return args;
  for (const Command* command : commands())
    if (args[0] == command->name) return args;
  args.insert(args.begin(), "run");
  return args;
}

int report(const Error& error) {
  fmt::print(stderr, "kvasir: {}\n", printable(error.message()));
  return kBadInput;
}

// The next file opened would take the number of a standard stream that is closed, and output would go there.
void keep_standard_streams() {
  for (int fd : {0, 1, 2})
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)open("/dev/null", O_RDONLY);
}

// Ended by the signal itself after all, so that whoever waits for us sees which one it was.
void end_by(int signal_number) {
  remove_temporaries();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// What a signal that ends the program would leave half done. One that is ignored (nohup) stays so.
void clean_up_on_signals() {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ})
    if (const auto before = signal(number, end_by); before != SIG_DFL) signal(number, before);
}

int output_done(int code) {
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return report({"the output could not be written", "stdout", "a place with free space"});
}

int main_with(std::vector<std::string> args) {
  CLI::App app("Kvasir: an LLM inference engine built around its KV cache.", "kvasir");
  app.require_subcommand(1);
  app.set_version_flag("--version", KVASIR_VERSION);
  app.footer(
      "Examples:\n  kvasir run tales -p \"Once upon a time\" -n 64 --stats\n  kvasir verify tales --count 4 -n 32\n"
      "Each command explains itself: kvasir COMMAND --help");
  std::vector<Run> runs(commands().size());
  std::vector<CLI::App*> subcommands;
  for (size_t i = 0; i < runs.size(); ++i) {
    CLI::App* sub = app.add_subcommand(commands()[i]->name, commands()[i]->summary);
    commands()[i]->add(*sub, &runs[i]);
    subcommands.push_back(sub);
  }
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp& e) {
    return output_done(app.exit(e));
  } catch (const CLI::CallForVersion& e) {
    return output_done(app.exit(e));
  } catch (const CLI::ParseError& e) {
    return report({e.what(), "arguments", fmt::format("kvasir {} --help", args[0])});
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!subcommands[i]->parsed()) continue;
    auto code = runs[i]();
    if (!code) return report(code.error());
    return output_done(*code);
  }
  return kBadInput;
}

}  // namespace
}  // namespace kvasir::cli

int main(int argc, char** argv) {
  kvasir::cli::keep_standard_streams();
  kvasir::cli::clean_up_on_signals();
  try {
    return kvasir::cli::main_with(kvasir::cli::arguments(argc, argv));
  } catch (const std::exception& e) {  // a library's own failure, out of memory for one
    std::fprintf(stderr, "kvasir: %s\n", e.what());
    return kvasir::cli::kBadInput;
  }
}
