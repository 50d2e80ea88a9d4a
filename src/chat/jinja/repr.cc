// str() and repr() as in Python.
#include "chat/jinja/repr.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat/jinja/objects.h"

namespace kvasir::jinja {
namespace {

void add_escape(char32_t marked, Text* out) {
  const auto c = static_cast<uint32_t>(code(marked));
  const std::string text = c < 0x100     ? fmt::format("\\x{:02x}", c)
                           : c < 0x10000 ? fmt::format("\\u{:04x}", c)
                                         : fmt::format("\\U{:08x}", c);
  for (const char letter : text) *out += marked_as(marked, static_cast<unsigned char>(letter));
}

Text quoted(TextView text) {
  const bool has_single = text.find(U'\'') != TextView::npos || text.find(U'\'' | kData) != TextView::npos;
  const bool has_double = text.find(U'"') != TextView::npos || text.find(U'"' | kData) != TextView::npos;
  const char32_t quote = has_single && !has_double ? '"' : '\'';
  Text out(1, quote);
  const auto add = [&](char32_t of, std::string_view ascii) {
    for (const char c : ascii) out += marked_as(of, static_cast<unsigned char>(c));
  };
  for (const char32_t marked : text) {
    const char32_t c = code(marked);
    if (c == quote || c == '\\') add(marked, "\\");
    if (c == '\n')
      add(marked, "\\n");
    else if (c == '\r')
      add(marked, "\\r");
    else if (c == '\t')
      add(marked, "\\t");
    else if (is_printable(c))
      out += marked;
    else
      add_escape(marked, &out);
  }
  return out + quote;
}

// Writes one value with the values in it. A container inside itself, which a namespace makes possible, is "...".
class ReprWriter {
 public:
  explicit ReprWriter(Render& render) : render_(render) {}

  Result<Text> write(const Value& value) {
    KVASIR_CHECK(render_.step());
    KVASIR_TRY(const Render::Level level, render_.enter());
    switch (value.kind) {
      case Kind::missing:
      case Kind::undefined:
        return Text(U"Undefined");
      case Kind::none:
        return Text(U"None");
      case Kind::boolean:
        return Text(value.boolean ? U"True" : U"False");
      case Kind::integer:
        return to_text(std::to_string(value.integer));
      case Kind::real:
        return to_text(real_text(value.real));
      case Kind::text:
        return value.is_safe ? U"Markup(" + quoted(value.text()) + U')' : quoted(value.text());
      case Kind::list:
        return items(value.list_cell, value.items(), U"[", U"]");
      case Kind::tuple:
        return items(value.list_cell, value.items(), U"(", value.items().size() == 1 ? U",)" : U")");
      case Kind::dict:
        return pairs(value.dict_cell, value.pairs());
      case Kind::object:
        return object(*value.object);
    }
    return Text();
  }

 private:
  bool is_open(const Cell* cell) const { return std::find(open_.begin(), open_.end(), cell) != open_.end(); }

  Result<Text> items(const Cell* cell, const std::vector<Value>& items, TextView before, TextView after) {
    if (is_open(cell)) return Text(before) + U"..." + after.back();
    open_.push_back(cell);
    Text out(before);
    size_t charged = 0;
    for (const Value& one : items) {
      if (out.size() > before.size()) out += U", ";
      KVASIR_TRY(const Text item, write(one));
      out += item;
      KVASIR_CHECK(render_.grow(out.size(), &charged));
    }
    open_.pop_back();
    return out + Text(after);
  }

  Result<Text> pairs(const Cell* cell, const std::vector<std::pair<Value, Value>>& pairs) {
    if (is_open(cell)) return Text(U"{...}");
    open_.push_back(cell);
    Text out = U"{";
    size_t charged = 0;
    for (const auto& [key, value] : pairs) {
      if (out.size() > 1) out += U", ";
      KVASIR_TRY(const Text left, write(key));
      KVASIR_TRY(const Text right, write(value));
      out += left + U": " + right;
      KVASIR_CHECK(render_.grow(out.size(), &charged));
    }
    open_.pop_back();
    return out + U'}';
  }

  Result<Text> object(Object& object) {
    if (auto* space = dynamic_cast<Namespace*>(&object)) {
      KVASIR_TRY(const Text values, pairs(space, space->values));
      return U"<Namespace " + values + U'>';
    }
    if (auto* loop = dynamic_cast<Loop*>(&object)) {
      KVASIR_TRY(const int64_t count, loop->count(render_));
      return to_text(fmt::format("<LoopContext {}/{}>", loop->index0() + 1, count));
    }
    if (auto* view = dynamic_cast<DictView*>(&object)) {
      if (is_open(view)) return Text(U"...");
      KVASIR_TRY(const std::vector<Value> all, collect(render_, Value::of_object(view)));
      return items(view, all, to_text(view->type_name()) + U"([", U"])");
    }
    return to_text(object.shown());
  }

  Render& render_;
  std::vector<const Cell*> open_;
};

}  // namespace

Text ascii_of(TextView repr) {
  Text out;
  for (const char32_t c : repr) {
    if (code(c) < 0x80)
      out += c;
    else
      add_escape(c, &out);
  }
  return out;
}

Result<Text> repr_of(Render& render, const Value& value) { return ReprWriter(render).write(value); }

Result<Text> str_of(Render& render, const Value& value) {
  if (value.is_text()) return Text(value.text());
  if (value.is_undefined()) return Text();
  return repr_of(render, value);
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return std::string(value < 0 ? "-" : "") + "inf";
  char buffer[64];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), value, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<size_t>(end - buffer));
  const size_t e = shortest.find('e');
  const int exponent = std::stoi(std::string(shortest.substr(e + 1)));
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  std::string digits(shortest.substr(0, e));
  const std::string sign = digits[0] == '-' ? "-" : "";
  std::erase_if(digits, [](char c) { return c == '-' || c == '.'; });
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

Text escaped(TextView text) {
  Text out;
  for (const char32_t c : text) {
    std::string_view as;
    switch (code(c)) {
      case '&':
        as = "&amp;";
        break;
      case '<':
        as = "&lt;";
        break;
      case '>':
        as = "&gt;";
        break;
      case '\'':
        as = "&#39;";
        break;
      case '"':
        as = "&#34;";
        break;
      default:
        out += c;
    }
    for (const char letter : as) out += marked_as(c, static_cast<unsigned char>(letter));
  }
  return out;
}

}  // namespace kvasir::jinja
