// The byte-level BPE pipeline. Source of the order of steps: huggingface/tokenizers, tokenizer/mod.rs.
#include "token/byte_level.h"

#include <deque>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <boost/unordered/unordered_flat_map.hpp>

#include "token/byte_map.h"
#include "token/normalize.h"
#include "token/text_spans.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

// Words repeat in a text: the ids of a repeated word are copied from its first occurrence in the output. These bounds
// keep one call's memory small.
constexpr std::size_t kMaxCachedWords = 1 << 14;
constexpr std::size_t kMaxCachedWordBytes = 48;

}  // namespace

// One call of encode: its buffers and its output.
class ByteLevelModel::Encoder {
 public:
  explicit Encoder(const ByteLevelModel& model)
      : model_(model), tables_(model.tables_), scratch_(model.pre_tokenizer_) {}

  Result<std::vector<int>> run(std::string_view text, std::span<const TextSpan> data) {
    text_ = text;
    data_ = data;
    KVASIR_CHECK(model_.added_.raw().split(text, data, out_, [this](std::string_view part) { return raw(part); }));
    return std::move(out_);
  }

 private:
  // Each ill-formed byte is a word of its own: no pattern and no merge sees it.
  Result<void> raw(std::string_view text) {
    after_ill_formed_ = false;
    while (!text.empty()) {
      const std::size_t valid = utf8_valid_prefix(text);
      if (valid > 0) KVASIR_CHECK(normalize(text.substr(0, valid)));
      text.remove_prefix(valid);
      if (text.empty()) break;
      for (std::size_t i = utf8_step(text).length; i > 0; --i) {
        KVASIR_CHECK(word(text.substr(0, 1)));
        text.remove_prefix(1);
      }
      after_ill_formed_ = true;
    }
    return {};
  }

  Result<void> normalize(std::string_view text) {
    const AddedTokenFinder& finder = model_.added_.normalized();
    std::vector<TextSpan> data;
    if (!data_.empty() && !finder.empty()) {
      const auto begin = static_cast<std::size_t>(text.data() - text_.data());
      data = spans_within(data_, begin, begin + text.size());
    }
    if (tables_.nfc && !is_surely_nfc(text)) {
      KVASIR_TRY(std::string normal, normal_parts(text, &data));
      text = own(std::move(normal));
    }
    return finder.split(text, data, out_, [this](std::string_view part) { return words(part); });
  }

  // Returns `text` in NFC. Normalises each part inside and between the spans of `data` on its own, so that `data` can
  // be moved to where the spans lie in the result.
  static Result<std::string> normal_parts(std::string_view text, std::vector<TextSpan>* data) {
    if (data->empty()) return to_nfc(text);
    std::string all;
    Result<void> done;
    *data = moved_spans(*data, text, [&](std::string_view part) -> std::size_t {
      auto normal = to_nfc(part);
      if (!normal)
        done = tl::unexpected<Error>(normal.error());
      else
        all += *normal;
      return normal ? normal->size() : 0;
    });
    KVASIR_CHECK(done);
    return all;
  }

  Result<void> words(std::string_view text) {
    const bool starts = !std::exchange(after_ill_formed_, false);
    if (tables_.leading_space && starts && !text.starts_with(' ')) text = own(std::string(" ").append(text));
    return model_.pre_tokenizer_.split(text, scratch_, [this](std::string_view piece) { return word(piece); });
  }

  Result<void> word(std::string_view word) {
    const bool cached = word.size() <= kMaxCachedWordBytes;
    if (cached) {
      if (const auto it = cache_.find(word); it != cache_.end()) {
        for (std::uint32_t i = 0; i < it->second.count; ++i) out_.push_back(out_[it->second.begin + i]);
        return {};
      }
    }
    const std::size_t begin = out_.size();
    KVASIR_CHECK(merge(word));
    if (cached && cache_.size() < kMaxCachedWords) {
      cache_.emplace(word, Run{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(out_.size() - begin)});
    }
    return {};
  }

  Result<void> merge(std::string_view word) {
    if (tables_.ignore_merges) {
      if (const auto whole = tables_.vocabulary.find(spell_bytes(word)); whole && !model_.added_.has(*whole)) {
        out_.push_back(*whole);
        return {};
      }
    }
    bool after_unk = false;
    for (std::size_t i = 0; i < word.size(); ++i) {
      const auto byte = static_cast<unsigned char>(word[i]);
      const int id = model_.byte_ids_[byte];
      if (id < 0 && !tables_.unk) return missing(word, i);
      const bool joins = i == 0 || id < 0 || after_unk ||
                         model_.seams_.may_join(kByteChars[static_cast<unsigned char>(word[i - 1])], kByteChars[byte]);
      if (!joins) merge_run();
      if (id >= 0 || !(tables_.fuse_unk && after_unk)) queue_.add(id >= 0 ? id : *tables_.unk, 1);
      after_unk = id < 0;
    }
    merge_run();
    return {};
  }

  void merge_run() {
    tables_.merges.merge(queue_, out_);
    queue_.clear();
  }

  Result<void> missing(std::string_view word, std::size_t i) const {
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(word[i]));
    const bool inside =
        std::greater_equal<>()(word.data(), text_.data()) && std::less<>()(word.data(), text_.data() + text_.size());
    const std::string place =
        inside ? fmt::format("at offset {}", static_cast<std::size_t>(word.data() - text_.data()) + i)
               : fmt::format("at offset {} of {} in the normalised text", i, quote(word));
    return fail(
        Error::bad_argument,
        fmt::format("byte 0x{:02X} {} has no token in this vocabulary, which has no unknown token", byte, place),
        "text", "leave the character out or use another model");
  }

  std::string_view own(std::string text) { return owned_.emplace_back(std::move(text)); }

  struct Run {
    std::uint32_t begin;
    std::uint32_t count;
  };

  const ByteLevelModel& model_;
  const ByteLevelTables& tables_;
  PreTokenizer::Scratch scratch_;
  std::string_view text_;
  std::span<const TextSpan> data_;
  bool after_ill_formed_ = false;  // the next part continues a stretch and does not start one
  std::deque<std::string> owned_;  // normalised text that the cache's keys point into
  boost::unordered_flat_map<std::string_view, Run> cache_;
  MergeQueue queue_;
  std::vector<int> out_;
};

ByteLevelModel::ByteLevelModel(ByteLevelTables tables) : tables_(std::move(tables)) {
  for (int id = 0; id < tables_.vocabulary.size(); ++id) seams_.add(tables_.vocabulary.piece(id));
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(static_cast<unsigned char>(byte));
    byte_ids_[byte] = tables_.vocabulary.find(spell_bytes({&one, 1})).value_or(-1);
  }
}

Result<std::unique_ptr<const TokenModel>> ByteLevelModel::make(ByteLevelTables tables) {
  std::unique_ptr<ByteLevelModel> model(new ByteLevelModel(std::move(tables)));
  KVASIR_TRY(model->pre_tokenizer_, PreTokenizer::make(model->tables_.cuts));
  const ByteLevelTables& made = model->tables_;
  const auto normalize = [&made](std::string_view text) -> Result<std::string> {
    return made.nfc ? to_nfc(text) : std::string(text);
  };
  KVASIR_TRY(model->added_, AddedTokens::make(made.added, made.vocabulary.size(), normalize));
  return std::unique_ptr<const TokenModel>(std::move(model));
}

Result<std::vector<int>> ByteLevelModel::encode(std::string_view text, std::span<const TextSpan> data,
                                                bool add_bos) const {
  KVASIR_TRY(std::vector<int> ids, Encoder(*this).run(text, data));
  if (add_bos) put_prefix(tables_.prefix, ids);
  return ids;
}

std::string ByteLevelModel::text(int id) const {
  const std::string_view piece = tables_.vocabulary.piece(id);
  if (added_.has(id)) return std::string(piece);
  // A piece with a character that spells no byte is returned unchanged.
  return unspell_bytes(piece).value_or(std::string(piece));
}

bool ByteLevelModel::is_special(int id) const { return vocabulary().has(id) && added_.is_special(id); }

std::optional<int> ByteLevelModel::bos() const {
  if (tables_.prefix.empty()) return std::nullopt;
  return tables_.prefix.front();
}

}  // namespace kvasir
