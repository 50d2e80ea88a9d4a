// json.dumps, with the options that templates use.
#include <algorithm>
#include <cmath>

#include "chat/jinja/format.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

class Writer {
 public:
  Writer(Render& render, const JsonOptions& options) : render_(render), options_(options) {}

  Result<void> write(const Value& value, size_t level) {
    KVASIR_CHECK(render_.step());
    KVASIR_TRY(const Render::Level deeper, render_.enter());
    switch (value.kind) {
      case Kind::none:
        out_ += U"null";
        return {};
      case Kind::boolean:
        out_ += value.boolean ? U"true" : U"false";
        return {};
      case Kind::integer:
        out_ += to_text(std::to_string(value.integer));
        return {};
      case Kind::real:
        out_ += real(value.real);
        return {};
      case Kind::text:
        write_text(value.text());
        return render_.grow(out_.size(), &charged_);
      case Kind::list:
      case Kind::tuple:
        return write_list(value.items(), level);
      case Kind::dict:
        return write_dict(value.pairs(), level);
      default:
        return failed("Object of type " + type_name(value) + " is not JSON serializable");
    }
  }

  Text take() { return std::move(out_); }

 private:
  static Text real(double value) {
    if (std::isnan(value)) return U"NaN";
    if (std::isinf(value)) return value < 0 ? U"-Infinity" : U"Infinity";
    return to_text(real_text(value));
  }

  void line(size_t level) {
    if (!options_.has_indent) return;
    out_ += U'\n';
    for (size_t i = 0; i < level; ++i) out_ += options_.indent;
  }

  Result<void> write_list(const std::vector<Value>& items, size_t level) {
    out_ += U'[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += options_.between_items;
      line(level + 1);
      KVASIR_CHECK(write(items[i], level + 1));
    }
    if (!items.empty()) line(level);
    out_ += U']';
    return {};
  }

  Result<Text> key_text(const Value& key) {
    if (key.is_text()) return Text(key.text());
    if (key.kind == Kind::boolean) return Text(key.boolean ? U"true" : U"false");
    if (key.is_none()) return Text(U"null");
    if (key.kind == Kind::integer) return to_text(std::to_string(key.integer));
    if (key.kind == Kind::real) return real(key.real);
    return failed("keys must be str, int, float, bool or None, not " + type_name(key));
  }

  Result<void> write_dict(std::vector<std::pair<Value, Value>> pairs, size_t level) {
    if (options_.sort_keys) KVASIR_CHECK(sort(&pairs));
    out_ += U'{';
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (i > 0) out_ += options_.between_items;
      line(level + 1);
      KVASIR_TRY(const Text key, key_text(pairs[i].first));
      write_text(key);
      out_ += options_.after_key;
      KVASIR_CHECK(write(pairs[i].second, level + 1));
    }
    if (!pairs.empty()) line(level);
    out_ += U'}';
    return {};
  }

  Result<void> sort(std::vector<std::pair<Value, Value>>* pairs) {
    Result<void> done;
    std::stable_sort(pairs->begin(), pairs->end(), [&](const auto& a, const auto& b) {
      auto is_less = less(render_, a.first, b.first);
      if (!is_less && done) done = tl::unexpected<Error>(is_less.error());
      return is_less.value_or(false);
    });
    return done;
  }

  void escape(char32_t of, std::string_view ascii) {
    for (const char c : ascii) out_ += marked_as(of, static_cast<unsigned char>(c));
  }

  void write_text(TextView text) {
    out_ += U'"';
    for (const char32_t marked : text) {
      const auto c = static_cast<uint32_t>(code(marked));
      switch (c) {
        case '"':
          escape(marked, "\\\"");
          break;
        case '\\':
          escape(marked, "\\\\");
          break;
        case '\n':
          escape(marked, "\\n");
          break;
        case '\r':
          escape(marked, "\\r");
          break;
        case '\t':
          escape(marked, "\\t");
          break;
        case '\f':
          escape(marked, "\\f");
          break;
        case '\b':
          escape(marked, "\\b");
          break;
        default:
          if (c < 0x20 || (options_.ensure_ascii && c >= 0x7F && c < 0x10000)) {
            escape(marked, fmt::format("\\u{:04x}", c));
          } else if (options_.ensure_ascii && c >= 0x10000) {
            escape(marked, fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF)));
          } else {
            out_ += marked;
          }
      }
    }
    out_ += U'"';
  }

  Render& render_;
  const JsonOptions& options_;
  Text out_;
  size_t charged_ = 0;
};

}  // namespace

Result<Text> json_text(Render& render, const Value& value, const JsonOptions& options) {
  Writer writer(render, options);
  KVASIR_CHECK(writer.write(value, 0));
  return writer.take();
}

}  // namespace kvasir::jinja
