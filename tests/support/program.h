// Runs the built program as a user does: arguments, environment and streams in; exit code and text out. Tests only.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/temp_files.h"

namespace kvasir::e2e {

namespace fs = std::filesystem;
using format_test::outside_data;
using format_test::put;
using format_test::slurp;
using format_test::TempFolder;

/// The settings of a run that differ from the default.
struct How {
  std::string program = KVASIR_PROGRAM, input, folder;
  std::string output;  ///< file for stdout; empty: Outcome::out
  bool close_output = false;
  std::map<std::string, std::string> environment;
};

struct Outcome {
  int code = -1;  ///< exit code, or 128 + the signal that ended it
  std::string out, err, command;
};

/// The environment of a run: uses its own cache folder, never the user's, and drops the caller's KVASIR_ variables.
inline std::vector<std::string> environment_of(const How& how, const TempFolder& scratch) {
  std::map<std::string, std::string> all = how.environment;
  all.try_emplace("XDG_CACHE_HOME", scratch.path());
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('='));
    if (!name.starts_with("KVASIR_")) all.try_emplace(name, text.substr(std::min(text.size(), name.size() + 1)));
  }
  for (const auto& [name, value] : all) out.push_back(name + "=" + value);
  return out;
}

inline std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

inline Outcome run_program(std::vector<std::string> arguments, const How& how = {}) {
  static const TempFolder scratch;
  const std::string in = scratch / "in", err = scratch / "err",
                    out = how.output.empty() ? (scratch / "out").string() : how.output;
  put(in, how.input);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
  if (how.close_output)
    posix_spawn_file_actions_addclose(&actions, 1);
  else
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!how.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, how.folder.c_str());

  Outcome outcome;
  for (const std::string& argument : arguments) outcome.command += " '" + argument + "'";
  arguments.insert(arguments.begin(), how.program);
  auto environment = environment_of(how, scratch);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, how.program.c_str(), &actions, nullptr, pointers(arguments).data(),
                                 pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return outcome;
  int status = 0;
  ::waitpid(pid, &status, 0);
  outcome.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (how.output.empty() && !how.close_output) outcome.out = slurp(out);
  outcome.err = slurp(err);
  return outcome;
}

/// Expects exit code 2, one line "kvasir: ..." that contains `needle`, and nothing on stdout.
inline void expect_refused(const Outcome& outcome, std::string_view needle) {
  SCOPED_TRACE("kvasir" + outcome.command);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, testing::StartsWith("kvasir: "));
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr(std::string(needle)));
}

inline std::string expect_ok(const Outcome& outcome) {
  SCOPED_TRACE("kvasir" + outcome.command);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

/// The names of this build's commands.
inline std::vector<std::string> command_names() {
  std::vector<std::string> names;
#define KVASIR_ENTRY(name) names.push_back(std::string(#name).substr(4));
#include "generated/commands.inc"
#undef KVASIR_ENTRY
  for (std::string& name : names) std::replace(name.begin(), name.end(), '_', '-');
  return names;
}

}  // namespace kvasir::e2e
