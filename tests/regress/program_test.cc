// Work that the program used to lose: because of one bad line of a file, or because of a signal.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// ---- one bad line -------------------------------------------------------------------------------------------------

std::string long_line() {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "word ";
  return text;
}

std::vector<std::string> run_of(const std::string& prompts, std::vector<std::string> more) {
  std::vector<std::string> arguments{"run", "tales", "--prompts", prompts, "-n", "4", "--greedy"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(E2eRegressPrompts, ALineThatIsTooLongIsNamedAndTheOthersAreAnswered) {
  const TempFolder folder;
  const std::string bad = (folder / "p.txt").string(), good = (folder / "good.txt").string();
  put(bad, "The cat\n\n" + long_line() + "\nThe dog\n");
  put(good, "The cat\nThe dog\n");
  for (const char* batch : {"1", "2", "4"}) {
    const std::string want = expect_ok(run_program(run_of(good, {"--batch", batch, "--receipt"})));
    const Outcome got = run_program(run_of(bad, {"--batch", batch, "--receipt"}));
    EXPECT_EQ(got.code, 1);
    EXPECT_EQ(got.out, want);
    EXPECT_THAT(got.err, AllOf(HasSubstr("kvasir: " + bad + ", line 3: a prompt of "), HasSubstr("context of"),
                               Not(HasSubstr("-p:"))));
    EXPECT_EQ(std::count(got.err.begin(), got.err.end(), '\n'), 1);
  }
}

TEST(E2eRegressPrompts, AsJsonEachLineHasItsEntry) {
  const TempFolder folder;
  const std::string bad = (folder / "p.txt").string(), good = (folder / "good.txt").string();
  put(bad, long_line() + "\nThe cat\nThe dog\n");
  put(good, "The cat\nThe dog\n");
  const Json want = Json::parse(expect_ok(run_program(run_of(good, {"--json"}))));
  const Outcome outcome = run_program(run_of(bad, {"--json"}));
  EXPECT_EQ(outcome.code, 1);
  const Json got = Json::parse(outcome.out, nullptr, false);
  ASSERT_EQ(got["generations"].size(), 3u);
  EXPECT_THAT(got["generations"][0]["error"].get<std::string>(), HasSubstr("line 1: a prompt of"));
  EXPECT_EQ(got["generations"][0]["prompt"], long_line());
  for (size_t i : {0u, 1u}) {
    EXPECT_EQ(got["generations"][i + 1]["receipt"], want["generations"][i]["receipt"]);
    EXPECT_FALSE(got["generations"][i + 1].contains("error"));
  }
}

TEST(E2eRegressPrompts, ABatchThatOutgrowsItsBlocksAnswersAll) {
  const TempFolder folder;
  const std::string prompts = (folder / "p.txt").string();
  put(prompts, "Once upon a time\nThe dog\n");
  const auto receipts = [&](std::vector<std::string> more) {
    std::vector<std::string> all;
    more.insert(more.end(), {"--ignore-eos", "--json", "-n", "200"});
    std::vector<std::string> arguments{"run", "tales", "--prompts", prompts, "--greedy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json json = Json::parse(expect_ok(run_program(arguments)), nullptr, false);
    for (const Json& g : json["generations"]) all.push_back(g.value("receipt", "none"));
    return all;
  };
  const auto alone = receipts({"--batch", "1"});
  EXPECT_EQ(alone.size(), 2u);
  EXPECT_EQ(receipts({"--batch", "2", "--cache", "paged", "--kv-ram", "1M"}), alone);
}

// ---- signals ------------------------------------------------------------------------------------------------------

/// Starts the program, sends it the signal `number` after `ms` milliseconds, and returns its wait status.
int killed_after(std::vector<std::string> arguments, int number, double ms, const TempFolder& scratch) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
    const int out = ::open("/dev/null", O_WRONLY);
    ::dup2(out, 1);
    ::dup2(out, 2);
    arguments.insert(arguments.begin(), KVASIR_PROGRAM);
    ::execv(KVASIR_PROGRAM, pointers(arguments).data());
    ::_exit(127);
  }
  ::usleep(static_cast<useconds_t>(ms * 1e3));
  ::kill(pid, number);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

bool has_unnamed_files(const TempFolder& folder) {
  const int fd = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

TEST(SlowRegressInterrupted, NothingHalfDoneStays) {
  const TempFolder scratch, folder;
  const std::string out = (folder / "out").string(), text = "Once upon a time there was a fox who lived in a wood";
  const std::vector<std::vector<std::string>> works{
      {"synth", "smollm2-135m", out, "--dtype", "f16", "--force"},
      {"quantize", "tales", out + ".gguf", "--type", "q4_k", "--force"},
      {"run", "tales", "-p", text, "-n", "8", "--save-cache", out + ".kv"},
      {"logits", "tales", "--ids", "1,2,3,4,5,6,7,8,9", "--out", out + ".npy"}};
  std::mt19937 random(7);
  std::vector<int> numbers{SIGTERM, SIGINT, SIGHUP};
  if (has_unnamed_files(folder)) numbers.push_back(SIGKILL);
  int ended_early = 0;
  for (const auto& work : works)
    for (const int number : numbers)
      for (int i = 0; i < 4; ++i) {
        const double ms = static_cast<double>(random() % 1000) * (work[0] == "synth" ? 0.4 : 0.08);
        const int status = killed_after(work, number, ms, scratch);
        if (WIFSIGNALED(status)) {
          EXPECT_EQ(WTERMSIG(status), number) << "whoever waits learns of the signal";
          ++ended_early;
        }
        for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
          EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos)
              << work[0] << " after " << ms << " ms and signal " << number << " left " << entry.path();
        for (const auto& entry : fs::directory_iterator(folder.path())) fs::remove_all(entry.path());
      }
  EXPECT_GT(ended_early, 10);
}

// A signal that the caller ignores stays ignored, as nohup needs.
TEST(SlowRegressInterrupted, AnIgnoredSignalStaysIgnored) {
  const TempFolder scratch, folder;
  const auto before = std::signal(SIGHUP, SIG_IGN);
  const int status =
      killed_after({"quantize", "tales", (folder / "t.gguf").string(), "--type", "q8_0"}, SIGHUP, 20, scratch);
  std::signal(SIGHUP, before);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(folder.count(), 1u);
}

}  // namespace
}  // namespace kvasir::e2e
