// Converts JSON to values, renders, and converts marked characters to spans of bytes.
#include "chat/jinja/template.h"

#include <algorithm>

#include "chat/jinja/parser.h"
#include "chat/jinja/render.h"
#include "chat/jinja/scope.h"

namespace kvasir::jinja {
namespace {

using Json = nlohmann::ordered_json;

// Some templates write "<|" + role + "|>", which must be read as a special token. Only these roles count as the
// template's text, so that a client cannot name another special token.
constexpr std::string_view kRoles[] = {"system", "developer", "user",    "assistant",    "tool",
                                       "model",  "function",  "ipython", "tool_results", "document"};

bool is_role(const std::string& text) {
  return std::find(std::begin(kRoles), std::end(kRoles), text) != std::end(kRoles);
}

Result<Value> value_of(const Json& json, bool is_data, Heap* heap, int depth = 0) {
  if (depth > 128) return limit_error("data of more than 128 levels");
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::of_bool(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::of_int(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
        return limit_error("an integer of more than 64 bits");
      return Value::of_int(json.get<int64_t>());
    case Json::value_t::number_float:
      return Value::of_real(json.get<double>());
    case Json::value_t::string:
      return heap->text(to_text(json.get_ref<const std::string&>(), is_data));
    case Json::value_t::array: {
      std::vector<Value> items;
      for (const Json& item : json) {
        KVASIR_TRY(items.emplace_back(), value_of(item, is_data, heap, depth + 1));
      }
      return heap->list(std::move(items));
    }
    case Json::value_t::object: {
      std::vector<std::pair<Value, Value>> pairs;
      for (const auto& [key, item] : json.items()) {
        const bool is_template = key == "role" && item.is_string() && is_role(item.get_ref<const std::string&>());
        KVASIR_TRY(const Value value, value_of(item, is_data && !is_template, heap, depth + 1));
        pairs.emplace_back(heap->text(to_text(key, is_data)), value);
      }
      return heap->dict(std::move(pairs));
    }
    default:
      return Value::none();
  }
}

Result<Value> context_of(const Json& context, Heap* heap) {
  std::vector<std::pair<Value, Value>> pairs;
  if (context.is_object())
    for (const auto& [name, json] : context.items()) {
      KVASIR_TRY(const Value value, value_of(json, !name.ends_with("_token"), heap));
      pairs.emplace_back(heap->text(to_text(name)), value);
    }
  return heap->dict(std::move(pairs));
}

Rendered with_spans(const Text& text) {
  Rendered rendered;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const bool is_data = (text[i] & kData) != 0;
    while (i < text.size() && ((text[i] & kData) != 0) == is_data) ++i;
    const size_t at = rendered.text.size();
    rendered.text += to_utf8(TextView(text).substr(begin, i - begin));
    if (is_data) rendered.data.push_back({at, rendered.text.size()});
  }
  return rendered;
}

std::vector<std::pair<size_t, int>> in_bytes(const Text& text, const std::vector<std::pair<size_t, int>>& lines) {
  std::vector<std::pair<size_t, int>> all;
  size_t at = 0, bytes = 0;
  for (const auto& [begin, line] : lines) {
    for (; at < begin; ++at) {
      const char32_t c = text[at] & ~kData;
      bytes += c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    }
    if (!all.empty() && all.back().first == bytes) all.pop_back();  // that line wrote nothing
    all.emplace_back(bytes, line);
  }
  return all;
}

}  // namespace

struct Template::Tree {
  Heap constants;
  Block body;
  Scope scope;
};

Template::Template(std::unique_ptr<const Tree> tree) : tree_(std::move(tree)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view source) {
  auto tree = std::make_unique<Tree>();
  KVASIR_TRY(tree->body, jinja::parse(to_text(source), &tree->constants));
  KVASIR_TRY(tree->scope, resolve_names(&tree->body));
  return Template(std::move(tree));
}

Result<Rendered> Template::render(const Json& context, double now) const {
  Heap heap;
  KVASIR_TRY(const Value values, context_of(context, &heap));
  Render render(&heap, values, now);
  KVASIR_TRY(const Text text, render.run(tree_->body, tree_->scope));
  Rendered rendered = with_spans(text);
  rendered.lines = in_bytes(text, render.lines());
  return rendered;
}

}  // namespace kvasir::jinja
