// The table of tests, such as `x is defined`, and their implementations.
#include <algorithm>

#include "chat/jinja/filters.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

template <Op op>
Result<bool> compares(Render& render, const Value& of, const Given& given) {
  return compare(render, op, of, given[0]);
}

// Whether of % by == is.
Result<bool> leaves(Render& render, const Value& of, const Value& by, int64_t is) {
  KVASIR_TRY(const Value rest, calculate(render, Op::mod, of, by));
  return equals(render, rest, Value::of_int(is));
}

template <Kind... kinds>
Result<bool> is_of(Render&, const Value& of, const Given&) {
  return ((of.kind == kinds) || ...);
}

template <bool wanted>
Result<bool> is_bool(Render&, const Value& of, const Given&) {
  return of.kind == Kind::boolean && of.boolean == wanted;
}

Result<bool> is_defined(Render&, const Value& of, const Given&) { return !of.is_undefined(); }
Result<bool> is_odd(Render& render, const Value& of, const Given&) { return leaves(render, of, Value::of_int(2), 1); }
Result<bool> is_even(Render& render, const Value& of, const Given&) { return leaves(render, of, Value::of_int(2), 0); }
Result<bool> is_divisible(Render& render, const Value& of, const Given& given) {
  return leaves(render, of, given[0], 0);
}
Result<bool> is_in(Render& render, const Value& of, const Given& given) { return contains(render, given[0], of); }
Result<bool> is_same(Render&, const Value& of, const Given& given) { return identical(of, given[0]); }
Result<bool> is_escaped(Render&, const Value& of, const Given&) { return of.is_text() && of.is_safe; }

template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
Result<bool> is_cased(Render& render, const Value& of, const Given&) {
  KVASIR_TRY(const Text text, str_of(render, of));
  return std::any_of(text.begin(), text.end(), wanted) &&
         std::none_of(text.begin(), text.end(), [](char32_t c) { return other(c) || is_title(c); });
}

Result<bool> is_callable(Render&, const Value& of, const Given&) {
  return of.is_undefined() || (of.kind == Kind::object && of.object->can_be_called());
}

Result<bool> is_iterable(Render& render, const Value& of, const Given&) { return iterate(render, of).has_value(); }

Result<bool> is_sequence(Render&, const Value& of, const Given&) {
  if (of.kind != Kind::object) return length_of(of).has_value();
  return dynamic_cast<Range*>(of.object) != nullptr;
}

Result<bool> is_filter(Render&, const Value& of, const Given&) {
  KVASIR_CHECK(check_key(of));
  return of.is_text() && find_filter(of.text()) != nullptr;
}
Result<bool> is_test(Render&, const Value& of, const Given&) {
  KVASIR_CHECK(check_key(of));
  return of.is_text() && find_test(of.text()) != nullptr;
}

const TestEntry kTests[] = {
    {"odd", 0, is_odd},
    {"even", 0, is_even},
    {"divisibleby", 1, is_divisible},
    {"defined", 0, is_defined},
    {"undefined", 0, is_of<Kind::undefined>},
    {"filter", 0, is_filter},
    {"test", 0, is_test},
    {"none", 0, is_of<Kind::none>},
    {"boolean", 0, is_of<Kind::boolean>},
    {"false", 0, is_bool<false>},
    {"true", 0, is_bool<true>},
    {"integer", 0, is_of<Kind::integer>},
    {"float", 0, is_of<Kind::real>},
    {"lower", 0, is_cased<is_lower, is_upper>},
    {"upper", 0, is_cased<is_upper, is_lower>},
    {"string", 0, is_of<Kind::text>},
    {"mapping", 0, is_of<Kind::dict>},
    {"number", 0, is_of<Kind::boolean, Kind::integer, Kind::real>},
    {"sequence", 0, is_sequence},
    {"iterable", 0, is_iterable},
    {"callable", 0, is_callable},
    {"sameas", 1, is_same},
    {"escaped", 0, is_escaped},
    {"in", 1, is_in},
    {"==", 1, compares<Op::eq>},
    {"eq", 1, compares<Op::eq>},
    {"equalto", 1, compares<Op::eq>},
    {"!=", 1, compares<Op::ne>},
    {"ne", 1, compares<Op::ne>},
    {">", 1, compares<Op::gt>},
    {"gt", 1, compares<Op::gt>},
    {"greaterthan", 1, compares<Op::gt>},
    {"ge", 1, compares<Op::ge>},
    {">=", 1, compares<Op::ge>},
    {"<", 1, compares<Op::lt>},
    {"lt", 1, compares<Op::lt>},
    {"lessthan", 1, compares<Op::lt>},
    {"<=", 1, compares<Op::le>},
    {"le", 1, compares<Op::le>},
};

}  // namespace

const TestEntry* find_test(TextView name) {
  for (const TestEntry& test : kTests)
    if (same(name, test.name)) return &test;
  return nullptr;
}

Result<bool> apply_test(Render& render, const TestEntry& test, const Value& of, Arguments arguments) {
  Given given = std::move(arguments.at);
  // Each test has at most one parameter; only these have a name.
  for (const auto& [name, value] : arguments.named) {
    const bool is_known = (std::string_view(test.name) == "divisibleby" && same(name, "num")) ||
                          (std::string_view(test.name) == "sameas" && same(name, "other")) ||
                          (std::string_view(test.name) == "in" && same(name, "seq"));
    if (!is_known) return failed(fmt::format("test '{}' has no parameter '{}'", test.name, to_utf8(name)));
    given.push_back(value);
  }
  if (given.size() != test.parameters)
    return failed(fmt::format("test '{}' takes {} arguments, {} given", test.name, test.parameters, given.size()));
  return test.body(render, of, given);
}

}  // namespace kvasir::jinja
