// The SAX handler for tokenizer.json.
#include "token/files/tokenizer_json.h"

#include <utility>

#include <fmt/format.h>

#include "token/utf8.h"

namespace kvasir {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxArenaBytes = UINT32_MAX;
// Upper bound on the values outside vocabulary and merges. An added token takes 8, so this admits 131 thousand added
// tokens in 100 MB.
constexpr std::size_t kMaxValues = std::size_t{1} << 20;

// nlohmann calls one method per event; returning false stops the parse. Events inside model.vocab and model.merges go
// to the arena; all others go into `rest`, along a stack of open containers.
class Handler {
 public:
  explicit Handler(TokenizerJson& file) : file_(file) {}

  const std::string& error() const { return error_; }

  bool null() { return scalar(nullptr); }
  bool boolean(bool value) { return scalar(value); }
  bool number_integer(json::number_integer_t value) { return number(value); }
  bool number_unsigned(json::number_unsigned_t value) {
    if (section_ == Section::kVocab) return vocab_id(value <= INT64_MAX ? static_cast<std::int64_t>(value) : INT64_MAX);
    return scalar(value);
  }
  bool number_float(json::number_float_t value, const std::string&) { return scalar(value); }
  bool binary(json::binary_t&) { return refuse("a binary value"); }
  bool string(std::string& value) {
    if (section_ == Section::kMerges) return merge_text(value);
    return scalar(std::move(value));
  }

  bool start_object(std::size_t) {
    if (section_ == Section::kRest && at_model_key("vocab")) return enter(Section::kVocab);
    return open(json::object());
  }
  bool start_array(std::size_t) {
    if (section_ == Section::kRest && at_model_key("vocab")) {
      file_.vocab_is_list = true;
      return enter(Section::kSkipped);
    }
    if (section_ == Section::kRest && at_model_key("merges")) {
      file_.has_merges = true;
      return enter(Section::kMerges);
    }
    if (section_ == Section::kMerges && depth_ == section_depth_) return enter_pair();
    return open(json::array());
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& value) {
    if (section_ != Section::kVocab) {
      key_ = std::move(value);
      return true;
    }
    return store(value, piece_.begin, piece_.length);
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    return refuse(
        fmt::format("not valid JSON at byte {}: {}", position, std::string_view(error.what()).substr(0, 200)));
  }

 private:
  enum class Section { kRest, kVocab, kMerges, kSkipped };

  bool refuse(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }

  bool at_model_key(std::string_view key) const {
    return depth_ == 2 && model_is_open_ && open_.back()->is_object() && key_ == key;
  }

  bool deeper() {
    ++depth_;
    return depth_ <= kMaxDepth || refuse(fmt::format("nested over {} deep", kMaxDepth));
  }

  bool enter(Section section) {
    section_ = section;
    section_depth_ = depth_ + 1;
    return deeper();
  }

  bool enter_pair() {
    pair_parts_ = 0;
    file_.merges.push_back({static_cast<std::uint32_t>(file_.arena.size()), 0, 0});
    return deeper();
  }

  bool open(json empty) {
    if (section_ == Section::kVocab) return refuse("a value of model.vocab is not an id");
    if (section_ == Section::kMerges) return refuse(fmt::format("merge {} is not a pair", merge_number()));
    if (section_ == Section::kRest) {
      if (depth_ == 1) model_is_open_ = key_ == "model";
      json* const opened = put(std::move(empty));
      if (opened == nullptr) return false;
      open_.push_back(opened);
    }
    return deeper();
  }

  bool close() {
    if (section_ == Section::kMerges && depth_ == section_depth_ + 1 && pair_parts_ != 2) {
      return refuse(fmt::format("merge {} has {} parts, not 2", file_.merges.size(), pair_parts_));
    }
    if (section_ == Section::kRest) {
      open_.pop_back();
    } else if (depth_ == section_depth_) {
      section_ = Section::kRest;
    }
    --depth_;
    return true;
  }

  // Returns null once there are too many values.
  json* put(json value) {
    if (++values_ > kMaxValues) {
      refuse(fmt::format("over {} values outside the vocabulary (too many added tokens?)", kMaxValues));
      return nullptr;
    }
    if (open_.empty()) return &(file_.rest = std::move(value));
    json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  template <class Value>
  bool scalar(Value&& value) {
    switch (section_) {
      case Section::kRest:
        return put(std::forward<Value>(value)) != nullptr;
      case Section::kVocab:
        return refuse(fmt::format("the id of {} is not an integer", quote(piece_text())));
      case Section::kMerges:
        return refuse(fmt::format("merge {} is not text", merge_number()));
      case Section::kSkipped:
        return true;
    }
    return false;
  }

  bool number(std::int64_t value) { return section_ == Section::kVocab ? vocab_id(value) : scalar(value); }

  bool vocab_id(std::int64_t id) {
    piece_.id = id;
    file_.vocab.push_back(piece_);
    return true;
  }

  // Counted from 1; a pair that is open has been counted already.
  std::size_t merge_number() const { return file_.merges.size() + (depth_ == section_depth_ ? 1 : 0); }

  std::string_view piece_text() const { return file_.text(piece_.begin, piece_.length); }

  bool store(std::string_view text, std::uint32_t& begin, std::uint32_t& length) {
    if (file_.arena.size() + text.size() > kMaxArenaBytes) return refuse("over 4 GiB of vocabulary");
    begin = static_cast<std::uint32_t>(file_.arena.size());
    length = static_cast<std::uint32_t>(text.size());
    file_.arena.append(text);
    return true;
  }

  bool merge_text(std::string_view text) {
    std::uint32_t begin = 0;
    if (depth_ == section_depth_ + 1) {
      auto& merge = file_.merges.back();
      ++pair_parts_;
      return store(text, begin, pair_parts_ == 1 ? merge.left_length : merge.right_length);
    }
    const std::size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos) {
      return refuse(
          fmt::format("merge {} is {}, not two pieces with one space between", file_.merges.size() + 1, quote(text)));
    }
    TokenizerJson::Merge merge{};
    std::uint32_t right_begin = 0;
    const bool stored = store(text.substr(0, space), merge.begin, merge.left_length) &&
                        store(text.substr(space + 1), right_begin, merge.right_length);
    if (stored) file_.merges.push_back(merge);
    return stored;
  }

  TokenizerJson& file_;
  std::string error_;
  std::vector<json*> open_;  // parents stay where they are while a child is open
  std::string key_;
  std::size_t values_ = 0;
  std::size_t depth_ = 0;
  bool model_is_open_ = false;
  Section section_ = Section::kRest;
  std::size_t section_depth_ = 0;
  TokenizerJson::Piece piece_{};
  int pair_parts_ = 0;
};

}  // namespace

Result<TokenizerJson> read_tokenizer_json(std::string_view bytes) {
  TokenizerJson file;
  Handler handler(file);
  const bool read = json::sax_parse(bytes.data(), bytes.data() + bytes.size(), &handler);
  if (!read || !handler.error().empty()) {
    return fail(Error::damaged, handler.error().empty() ? "not valid JSON" : handler.error(), {},
                "fetch the file again");
  }
  if (!file.rest.is_object())
    return fail(Error::damaged, "not a JSON object", {}, "give the tokenizer.json of a model folder");
  return file;
}

}  // namespace kvasir
