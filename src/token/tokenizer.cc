// The public Tokenizer over a TokenModel: files, argument checks, and the edge where library exceptions become errors.
#include <kvasir/tokenizer.h>

#include <fstream>

#include <fmt/format.h>

#include "token/byte_level.h"
#include "token/guarded.h"
#include "token/llama2c_vocab.h"
#include "token/sentencepiece_vocab.h"
#include "token/spm.h"
#include "token/tokenizer_byte_json.h"
#include "token/tokenizer_spm_json.h"

namespace kvasir {
namespace {

using ModelPtr = std::unique_ptr<const TokenModel>;

// The largest tokenizer.json in use is about 35 MB.
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{512} << 20;

Result<std::string> read_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return fail("cannot be read: " + error.message(), {}, "check the path");
  if (size > kMaxFileBytes) return fail(fmt::format("{} bytes are over the limit of {}", size, kMaxFileBytes));
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!file) return fail(fmt::format("only {} of {} bytes can be read", file.gcount(), size));
  return bytes;
}

// understand(bytes of the file) -> Result<ModelPtr>.
template <class Understand>
Result<ModelPtr> load(const std::filesystem::path& path, const Understand& understand) {
  Result<ModelPtr> model = guarded([&]() -> Result<ModelPtr> {
    KVASIR_TRY(std::string bytes, read_file(path));
    return understand(std::move(bytes));
  });
  if (!model && model.error().where.empty()) model.error().where = path.string();
  return model;
}

// Takes the bytes: they are freed before the index is built.
Result<ModelPtr> from_json_bytes(std::string bytes) {
  KVASIR_TRY(TokenizerJson file, read_tokenizer_json(std::exchange(bytes, {})));
  if (is_spm_json(file)) {
    KVASIR_TRY(SpmParts parts, understand_spm_json(std::move(file)));
    return SpmModel::make(std::move(parts));
  }
  KVASIR_TRY(ByteLevelParts parts, understand_byte_json(std::move(file)));
  return ByteLevelModel::make(std::move(parts));
}

Result<ModelPtr> from_spm_parts(Result<SpmParts> parts) {
  if (!parts) return tl::unexpected<Error>(std::move(parts).error());
  return SpmModel::make(std::move(*parts));
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenModel> model) : model_(std::move(model)) {}
Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> Tokenizer::from_model(std::unique_ptr<const TokenModel> model) {
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(model)));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(const std::filesystem::path& tokenizer_json) {
  return load(tokenizer_json, from_json_bytes).map(from_model);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_llama2c(const std::filesystem::path& tokenizer_bin,
                                                                 int vocab_size) {
  const auto understand = [&](const std::string& bytes) {
    return from_spm_parts(read_llama2c_vocab(bytes, vocab_size));
  };
  return load(tokenizer_bin, understand).map(from_model);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_sentencepiece(const std::filesystem::path& model) {
  const auto understand = [](const std::string& bytes) { return from_spm_parts(read_sentencepiece_vocab(bytes)); };
  return load(model, understand).map(from_model);
}

Result<std::vector<int>> Tokenizer::encode(std::string_view text, bool add_bos) const {
  if (text.size() > kMaxTextBytes) {
    return fail(fmt::format("a text of {} bytes is over {}", text.size(), kMaxTextBytes), "text", "give it in parts");
  }
  return guarded([&] { return model_->encode(text, add_bos); });
}

Result<std::string> Tokenizer::decode(std::span<const int> ids) const {
  return guarded([&]() -> Result<std::string> {
    std::string text;
    int previous = TokenModel::kTextStart;
    for (const int id : ids) {
      if (id < 0 || id >= vocab_size()) {
        return fail(fmt::format("token id {} is outside the vocabulary of {}", id, vocab_size()));
      }
      if (!model_->vocabulary().has(id)) {
        return fail(fmt::format("token id {} has no piece in this vocabulary of {}", id, vocab_size()));
      }
      text += model_->text_after(previous, id);
      previous = id;
    }
    return text;
  });
}

std::string Tokenizer::token_text(int id) const {
  return model_->vocabulary().has(id) ? model_->text(id) : std::string();
}

int Tokenizer::vocab_size() const { return model_->vocabulary().size(); }
std::optional<int> Tokenizer::bos() const { return model_->bos(); }
std::optional<int> Tokenizer::unk() const { return model_->unk(); }
bool Tokenizer::is_special(int id) const { return model_->is_special(id); }
std::optional<int> Tokenizer::find(std::string_view piece) const { return model_->vocabulary().find(piece); }
std::string Tokenizer::piece(int id) const { return std::string(model_->vocabulary().piece(id)); }

}  // namespace kvasir
