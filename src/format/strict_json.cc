// Building a JSON tree from SAX events, with the checks that the JSON library leaves out.
#include "format/strict_json.h"

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/quote.h"

namespace kvasir {
namespace {

using Json = nlohmann::json;

class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t&) override { return refuse("binary values are not JSON"); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if (open_.back()->contains(name)) return refuse(fmt::format("key {} is there twice", in_quotes(name)));
    key_ = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return refuse(fmt::format("not valid JSON at byte {}", position));
  }

  Json root;
  std::string error;

 private:
  bool refuse(std::string why) {
    error = std::move(why);
    return false;
  }

  Json* place(Json value) {
    if (open_.empty()) return &(root = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_array()) return &parent.emplace_back(std::move(value));
    return &(parent[key_] = std::move(value));
  }

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json container) {
    if (open_.size() == kMaxJsonDepth) return refuse(fmt::format("nested deeper than {} levels", kMaxJsonDepth));
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<Json*> open_;  // only the last one grows, so the pointers before it stay valid
  std::string key_;
};

}  // namespace

bool feed_strict_json(std::string_view text, nlohmann::json_sax<Json>& handler) {
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    return handler.parse_error(nul + 1, {}, Json::parse_error::create(101, nul + 1, "NUL byte", nullptr));
  return Json::sax_parse(text.begin(), text.end(), &handler);
}

Result<Json> parse_strict_json(std::string_view text, const std::string& where) {
  try {
    TreeBuilder builder;
    if (!feed_strict_json(text, builder)) return fail(Error::damaged, builder.error, where);
    return std::move(builder.root);
  } catch (const std::exception& e) {  // out of memory
    return fail(Error::no_room, fmt::format("cannot read the JSON: {}", e.what()), where);
  }
}

}  // namespace kvasir
