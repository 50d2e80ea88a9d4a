// Tests the pure parts of a pull: checksums, listings, the choice of files, URLs, refusals. tests/hub tests the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/blob_file.h"
#include "hub/choose.h"
#include "hub/digest.h"
#include "hub/http.h"
#include "hub/listing.h"
#include "hub/refusals.h"
#include "tests/support/temp_files.h"

namespace kvasir::hub {
namespace {

namespace fs = std::filesystem;
using format_test::as_span;
using format_test::message_of;
using format_test::put;
using format_test::slurp;
using format_test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kCommit(40, 'a');
// Checksums of "hello\n" by `git hash-object` and `sha256sum`.
constexpr const char* kGitSum = "ce013625030ba8dba906f756967f9e9ca394464a";
constexpr const char* kSha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

TEST(HubDigest, IsGitsAndSha256s) {
  for (const char* sum : {kGitSum, kSha256}) {
    Digest digest(sum, 6);
    digest.add(as_span("hel"));
    digest.add(as_span("lo\n"));
    EXPECT_EQ(digest.finish(), sum);
  }
  EXPECT_FALSE(is_sum("") || is_sum(std::string(40, 'A')) || is_sum(std::string(41, 'a')) || is_sum("../" + kCommit));
}

TEST(HubListing, SizesAndSumsAreThoseOfTheContents) {
  const auto listing = parse_listing(R"({"sha": ")" + kCommit + R"(", "other": 1, "siblings": [
      {"rfilename": "config.json", "size": 7, "blobId": ")" +
                                         kGitSum + R"("},
      {"rfilename": "m.gguf", "size": 134, "blobId": ")" +
                                         kGitSum + R"(", "lfs": {"size": 9, "sha256": ")" + kSha256 +
                                         R"("}}, {"rfilename": "bare", "lfs": null}]})",
                                     "x");
  ASSERT_TRUE(listing) << message_of(listing);
  EXPECT_EQ(listing->commit, kCommit);
  ASSERT_EQ(listing->files.size(), 3u);
  EXPECT_EQ(listing->files[0].bytes, 7u);
  EXPECT_EQ(listing->files[0].sum, kGitSum);
  EXPECT_EQ(listing->files[1].bytes, 9u);
  EXPECT_EQ(listing->files[1].sum, kSha256);
  EXPECT_FALSE(listing->files[2].bytes);
  EXPECT_EQ(listing->files[2].sum, "");
}

Listing listing_of(const std::vector<std::string>& names) {
  Listing out{kCommit, {}};
  for (const std::string& name : names) out.files.push_back({name, 1, kGitSum});
  return out;
}

std::vector<std::string> chosen(const std::vector<std::string>& names, const std::string& what = "") {
  const auto files = choose_files(listing_of(names), {{"a", "b"}, what});
  if (!files) return {files.error().message()};
  std::vector<std::string> out;
  for (const RemoteFile& file : *files) out.push_back(file.name);
  return out;
}

TEST(HubChoice, AFolderIsWhatAModelNeedsWithItsConfigurationLast) {
  EXPECT_THAT(
      chosen({"config.json", "model.safetensors", "model.fp16.safetensors", "pytorch_model.bin", "tokenizer.json",
              "additional_chat_templates/tool.jinja", "onnx/model.safetensors", "README.md", "m.gguf"}),
      ElementsAre("tokenizer.json", "additional_chat_templates/tool.jinja", "model.safetensors", "config.json"));
  EXPECT_THAT(chosen({"model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors", "config.json",
                      "model.safetensors.index.json", "consolidated.safetensors"}),
              ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                          "model.safetensors.index.json", "config.json"));
  EXPECT_THAT(chosen({"config.json", "m-Q8_0.gguf"}), ElementsAre("m-Q8_0.gguf"));
  EXPECT_THAT(chosen({"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}),
              ElementsAre("m-00002-of-00002.gguf", "m-00001-of-00002.gguf"));
  EXPECT_THAT(chosen({"config.json", "model.safetensors", "m-Q8_0.gguf"}, "Q8_0"), ElementsAre("m-Q8_0.gguf"));
  EXPECT_THAT(chosen({"config.json", "pytorch_model.bin"}), ElementsAre(HasSubstr("neither config.json")));
  EXPECT_THAT(chosen({"a-Q8_0.gguf", "b-Q4_0.gguf"}), ElementsAre(HasSubstr("a-Q8_0.gguf, b-Q4_0.gguf")));
}

TEST(HubHttp, PathsAreWrittenForUrls) {
  EXPECT_EQ(url_path("a b/c+%#?.json"), "a%20b/c%2B%25%23%3F.json");
  EXPECT_EQ(url_path("\xc3\xa4-_.~"), "%C3%A4-_.~");
  EXPECT_EQ(shown_url("https://a/b?key=secret"), "https://a/b");
}

TEST(HubHttp, PatienceEndsAndWaitsAsTold) {
  Failure failure{{Error::io, "x", "", ""}, true, {}};
  Patience patience;
  for (const double seconds : {0.25, 0.5, 1.0, 2.0, 4.0}) EXPECT_EQ(patience.wait_after(failure), seconds);
  EXPECT_FALSE(patience.wait_after(failure));
  patience.progress();
  failure.after_seconds = 7;
  EXPECT_EQ(patience.wait_after(failure), 7.0);
  failure.after_seconds = 1e6;
  EXPECT_FALSE(patience.wait_after(failure));
  failure.again = false;
  EXPECT_FALSE(Patience().wait_after(failure));
}

TEST(HubHttp, RefusalsSayWhatHelps) {
  const auto refused = [](long status, std::map<std::string, std::string> headers, const std::string& body) {
    return refusal({status, "https://hub/x?secret", std::move(headers)}, body, 0, true, false);
  };
  const Failure gated = refused(403, {{"x-error-code", "GatedRepo"}, {"x-error-message", "ask\nfirst"}}, "");
  EXPECT_THAT(gated.error.message(),
              testing::AllOf(HasSubstr("gated"), HasSubstr("ask\\x0afirst"), HasSubstr("https")));
  EXPECT_THAT(gated.error.message(), testing::Not(HasSubstr("secret")));
  EXPECT_FALSE(gated.again);
  EXPECT_THAT(refused(404, {}, R"({"error": "no such repo"})").error.message(), HasSubstr("no such repo"));
  for (const long status : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(refused(status, {}, "").again) << status;
  for (const long status : {400, 404, 418, 501}) EXPECT_FALSE(refused(status, {}, "").again) << status;
}

TEST(HubBlob, GoesOnWhereItEndedAndGetsItsNameWhenItsSumIsRight) {
  const TempFolder folder;
  {
    auto blob = BlobFile::open(folder.path(), kSha256, 6);
    ASSERT_TRUE(blob) << message_of(blob);
    EXPECT_TRUE(blob->append("hel"));
    EXPECT_FALSE(blob->append("more than is left"));
  }
  EXPECT_EQ(bytes_there(folder.path(), kSha256, 6), 3u);
  EXPECT_FALSE(has_blob(folder.path(), kSha256, 6));
  auto blob = BlobFile::open(folder.path(), kSha256, 6);
  ASSERT_TRUE(blob) << message_of(blob);
  EXPECT_EQ(blob->found(), 3u);
  EXPECT_TRUE(blob->append("lo\n"));
  EXPECT_TRUE(blob->commit());
  EXPECT_EQ(slurp(folder / kSha256), "hello\n");
  EXPECT_TRUE(has_blob(folder.path(), kSha256, 6));
  EXPECT_EQ(folder.count(), 1u);

  put(folder / (std::string(kGitSum) + ".incomplete"), "hellx");
  auto wrong = BlobFile::open(folder.path(), kGitSum, 6);
  ASSERT_TRUE(wrong) << message_of(wrong);
  EXPECT_TRUE(wrong->append("\n"));
  EXPECT_EQ(wrong->commit().error().kind, Error::damaged);
  EXPECT_EQ(folder.count(), 1u) << "wrong bytes are not kept";
}

}  // namespace
}  // namespace kvasir::hub
