// Jinja's global functions, and raise_exception and strftime_now, which chat templates have in addition.
#include "chat/jinja/globals.h"

#include <cmath>
#include <ctime>

#include "chat/jinja/methods.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

constexpr int64_t kMostInRange = 100'000;  // as in Jinja's sandbox

Result<Value> make_range(Render& render, Arguments arguments) {
  if (!arguments.named.empty()) return failed("range() takes no keyword arguments");
  KVASIR_TRY(const auto given, bind("range", {"start", "stop", "step"}, 1, std::move(arguments)));
  for (const Value& bound : given)
    if (!bound.is_missing() && !bound.is_int())
      return failed("'" + type_name(bound) + "' object cannot be interpreted as an integer");
  const bool has_stop = !given[1].is_missing();
  const int64_t start = has_stop ? given[0].to_int() : 0, stop = (has_stop ? given[1] : given[0]).to_int();
  const int64_t step = given[2].is_missing() ? 1 : given[2].to_int();
  if (step == 0) return failed("range() arg 3 must not be zero");
  constexpr int64_t kLarge = int64_t{1} << 61;
  if (std::abs(start) > kLarge || std::abs(stop) > kLarge || std::abs(step) > kLarge)
    return limit_error("a range over integers of more than 61 bits");
  auto* range = render.heap().make<Range>(start, stop, step);
  if (*range->length() > kMostInRange)
    return failed(fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMostInRange));
  return Value::of_object(range);
}

// Evaluates the arguments of dict(...) and namespace(...): a dict or pairs, and named values.
Result<std::vector<std::pair<Value, Value>>> pairs_of(Render& render, const char* function, Arguments arguments) {
  std::vector<std::pair<Value, Value>> pairs;
  if (arguments.at.size() > 1)
    return failed(fmt::format("{} expected at most 1 argument, got {}", function, arguments.at.size()));
  if (!arguments.at.empty() && arguments.at[0].is_undefined()) return undefined_error(arguments.at[0]);
  if (!arguments.at.empty() && arguments.at[0].kind == Kind::dict) {
    pairs = arguments.at[0].pairs();
  } else if (!arguments.at.empty()) {
    KVASIR_TRY(const std::vector<Value> items, collect(render, arguments.at[0]));
    for (const Value& item : items) {
      KVASIR_TRY(const std::vector<Value> pair, collect(render, item));
      if (pair.size() != 2) return failed("dictionary update sequence element has not length 2");
      KVASIR_CHECK(set_key(render, &pairs, pair[0], pair[1]));
    }
  }
  for (const auto& [name, value] : arguments.named)
    KVASIR_CHECK(set_key(render, &pairs, render.heap().text(name), value));
  return pairs;
}

Result<Value> make_dict(Render& render, Arguments arguments) {
  KVASIR_TRY(auto pairs, pairs_of(render, "dict", std::move(arguments)));
  return render.heap().dict(std::move(pairs));
}

Result<Value> make_namespace(Render& render, Arguments arguments) {
  KVASIR_TRY(auto pairs, pairs_of(render, "namespace", std::move(arguments)));
  auto* space = render.heap().make<Namespace>();
  space->values = std::move(pairs);
  return Value::of_object(space);
}

Result<Value> make_cycler(Render& render, Arguments arguments) {
  if (!arguments.named.empty()) return failed("cycler() takes no keyword arguments");
  if (arguments.at.empty()) return failed("at least one item has to be provided");
  auto* cycler = render.heap().make<Cycler>();
  cycler->items = std::move(arguments.at);
  return Value::of_object(cycler);
}

Result<Value> make_joiner(Render& render, Arguments arguments) {
  KVASIR_TRY(const auto given, bind("joiner", {"sep"}, 0, std::move(arguments)));
  auto* joiner = render.heap().make<Joiner>();
  joiner->separator = given[0].is_missing() ? render.heap().text(", ") : given[0];
  return Value::of_object(joiner);
}

Result<Value> raise_exception(Render& render, Arguments arguments) {
  KVASIR_TRY(const auto given, bind("raise_exception", {"message"}, 1, std::move(arguments)));
  KVASIR_TRY(const Text message, str_of(render, given[0]));
  return fail(Error::bad_argument, to_utf8(message), "raise_exception");
}

Result<Value> strftime_now(Render& render, Arguments arguments) {
  KVASIR_TRY(const auto given, bind("strftime_now", {"format"}, 1, std::move(arguments)));
  if (!given[0].is_text()) return failed("strftime() argument 1 must be str, not " + type_name(given[0]));
  const double whole = std::floor(render.now());
  const auto seconds = static_cast<std::time_t>(whole);
  std::tm time{};
  gmtime_r(&seconds, &time);
  std::string format;
  const std::string wanted = to_utf8(given[0].text());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const char next = wanted[i] == '%' && i + 1 < wanted.size() ? wanted[i + 1] : '\0';
    if (next == 'f')
      format += fmt::format("{:06}", static_cast<int>((render.now() - whole) * 1e6));
    else if (next != 'z' && next != 'Z')
      format += std::string(1, wanted[i]) + (next == '%' ? "%" : "");
    i += next == 'f' || next == 'z' || next == 'Z' || next == '%' ? 1 : 0;  // %z and %Z print nothing: no time zone
  }
  format.resize(std::min(format.find('\0'), format.size()));
  if (format.empty()) return render.heap().text(Text());
  format += ' ';  // strftime returns 0 for an empty result as for a failure; the space is removed below
  std::string text(format.size() * 64 + 256, '\0');
  KVASIR_CHECK(render.room(text.size(), 1));
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &time));
  if (!text.empty()) text.pop_back();
  return render.heap().text(to_text(text));
}

}  // namespace

Value find_global(Render& render, TextView name) {
  if (same(name, "range")) return function(render, make_range);
  if (same(name, "dict")) return function(render, make_dict);
  if (same(name, "namespace")) return function(render, make_namespace);
  if (same(name, "cycler")) return function(render, make_cycler);
  if (same(name, "joiner")) return function(render, make_joiner);
  if (same(name, "raise_exception")) return function(render, raise_exception);
  if (same(name, "strftime_now")) return function(render, strftime_now);
  return {};
}

}  // namespace kvasir::jinja
