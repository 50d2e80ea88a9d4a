// The public Tokenizer over a TokenModel: reads files, checks arguments, turns library exceptions into errors.
#include <kvasir/tokenizer.h>

#include <fmt/format.h>

#include "base/files.h"
#include "token/byte_level.h"
#include "token/end_of_turn.h"
#include "token/exceptions_to_errors.h"
#include "token/files/folder_tokenizer.h"
#include "token/files/llama2c_vocab.h"
#include "token/files/sentencepiece_vocab.h"
#include "token/files/tokenizer_byte_json.h"
#include "token/files/tokenizer_spm_json.h"
#include "token/model.h"
#include "token/spm.h"
#include "token/tokenizer_impl.h"

namespace kvasir {
namespace {

using ModelPtr = std::unique_ptr<const TokenModel>;

// understand(bytes of the file) -> Result<ModelPtr>.
template <class Understand>
Result<ModelPtr> load(const std::filesystem::path& path, const Understand& understand) {
  Result<ModelPtr> model = guarded([&]() -> Result<ModelPtr> {
    KVASIR_TRY(std::string bytes, read_text_file(path, kMaxTokenizerBytes));
    return understand(std::move(bytes));
  });
  if (!model && model.error().where.empty()) model.error().where = path.string();
  return model;
}

// Takes the bytes by value, to free them before the index is built.
Result<ModelPtr> from_json_bytes(std::string bytes) {
  KVASIR_TRY(TokenizerJson file, read_tokenizer_json(std::exchange(bytes, {})));
  if (is_spm_json(file)) {
    KVASIR_TRY(SpmTables tables, understand_spm_json(std::move(file)));
    return SpmModel::make(std::move(tables));
  }
  KVASIR_TRY(ByteLevelTables tables, understand_byte_json(std::move(file)));
  return ByteLevelModel::make(std::move(tables));
}

Result<ModelPtr> from_spm_parts(Result<SpmTables> tables) {
  if (!tables) return tl::unexpected<Error>(std::move(tables).error());
  return SpmModel::make(std::move(*tables));
}

std::shared_ptr<const Tokenizer> alone(ModelPtr model) { return make_tokenizer(std::move(model)); }

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> make_tokenizer(std::unique_ptr<const TokenModel> model, std::vector<Ignored> ignored,
                                                bool turn_end_is_named) {
  auto impl = std::make_unique<Tokenizer::Impl>();
  if (!turn_end_is_named) impl->end_of_turn = end_of_turn_ids(*model);
  impl->model = std::move(model);
  impl->ignored = std::move(ignored);
  return std::make_shared<const Tokenizer>(std::move(impl));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_folder(const std::filesystem::path& folder) {
  auto read = guarded([&] { return read_folder_tokenizer(folder); });
  if (!read)
    return fail(read.error().kind, read.error().what, read.error().where.empty() ? folder.string() : read.error().where,
                read.error().hint);
  return make_tokenizer(std::move(read->model), std::move(read->ignored));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(const std::filesystem::path& tokenizer_json) {
  return load(tokenizer_json, from_json_bytes).map(alone);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_llama2c(const std::filesystem::path& tokenizer_bin,
                                                                 int vocab_size) {
  const auto understand = [&](const std::string& bytes) {
    return from_spm_parts(read_llama2c_vocab(bytes, vocab_size));
  };
  return load(tokenizer_bin, understand).map(alone);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_sentencepiece(const std::filesystem::path& model) {
  const auto understand = [](const std::string& bytes) { return from_spm_parts(read_sentencepiece_vocab(bytes)); };
  return load(model, understand).map(alone);
}

Result<std::vector<int>> Tokenizer::encode(std::string_view text, bool add_bos) const {
  return encode(text, {}, add_bos);
}

Result<std::vector<int>> Tokenizer::encode(std::string_view text, std::span<const TextSpan> data, bool add_bos) const {
  if (text.size() > kMaxTextBytes) {
    return fail(Error::too_long, fmt::format("a text of {} bytes is over {}", text.size(), kMaxTextBytes), "text",
                "give it in parts");
  }
  return guarded([&] { return impl_->model->encode(text, data, add_bos); });
}

Result<std::string> Tokenizer::decode(std::span<const int> ids) const {
  return guarded([&]() -> Result<std::string> {
    std::string text;
    int previous = TokenModel::kTextStart;
    for (const int id : ids) {
      if (id < 0 || id >= vocab_size()) {
        return fail(Error::bad_argument, fmt::format("token id {} is outside the vocabulary of {}", id, vocab_size()));
      }
      if (!impl_->model->vocabulary().has(id)) {
        return fail(Error::bad_argument,
                    fmt::format("token id {} has no piece in this vocabulary of {}", id, vocab_size()));
      }
      text += impl_->model->text_after(previous, id);
      previous = id;
    }
    return text;
  });
}

std::string Tokenizer::token_text(int id) const {
  return impl_->model->vocabulary().has(id) ? impl_->model->text(id) : std::string();
}

const std::vector<int>& Tokenizer::end_of_turn() const { return impl_->end_of_turn; }
const std::vector<Ignored>& Tokenizer::ignored() const { return impl_->ignored; }
int Tokenizer::vocab_size() const { return impl_->model->vocabulary().size(); }
std::optional<int> Tokenizer::bos() const { return impl_->model->bos(); }
std::optional<int> Tokenizer::unk() const { return impl_->model->unk(); }
bool Tokenizer::is_special(int id) const { return impl_->model->is_special(id); }
bool Tokenizer::is_added(int id) const { return impl_->model->vocabulary().has(id) && impl_->model->is_added(id); }
std::optional<int> Tokenizer::find(std::string_view piece) const { return impl_->model->vocabulary().find(piece); }
std::string Tokenizer::piece(int id) const { return std::string(impl_->model->vocabulary().piece(id)); }

}  // namespace kvasir
