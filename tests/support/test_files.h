// Shared by the tokenizer tests: folders, temporary files, and hand-made tokenizer.json texts. Test code only.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace kvasir::token_test {

inline std::filesystem::path data_folder() {
  const char* given = std::getenv("KVASIR_DATA");
  return given != nullptr ? std::filesystem::path(given) : std::filesystem::path(KVASIR_SOURCE_DIR) / "../shared/data";
}

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A file of this test's own, removed at the end.
class TempFile {
 public:
  explicit TempFile(std::string_view bytes) {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    static int count = 0;
    path_ = std::filesystem::path(testing::TempDir()) /
            ("kvasir_" + std::to_string(getpid()) + "_" + test->test_suite_name() + "_" + test->name() +
             std::to_string(count++));
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The parts of a small tokenizer.json, each the JSON text of its value.
struct JsonParts {
  std::string added = "[]";
  std::string normalizer = "null";
  std::string pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";
  std::string post_processor = "null";
  std::string decoder = R"({"type":"ByteLevel"})";
  std::string model_extra = R"("type":"BPE","unk_token":null)";
  std::string vocab = R"({"a":0,"b":1,"c":2,"Ġ":3,"ab":4,"abc":5,"bc":6,"1":7,"2":8,"12":9})";
  std::string merges = R"(["a b","b c","ab c","1 2"])";

  std::string text() const {
    return R"({"version":"1.0","added_tokens":)" + added + R"(,"normalizer":)" + normalizer + R"(,"pre_tokenizer":)" +
           pre_tokenizer + R"(,"post_processor":)" + post_processor + R"(,"decoder":)" + decoder + R"(,"model":{)" +
           model_extra + R"(,"vocab":)" + vocab + R"(,"merges":)" + merges + "}}";
  }
};

}  // namespace kvasir::token_test
