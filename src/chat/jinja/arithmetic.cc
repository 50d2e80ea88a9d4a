// Python's arithmetic on 64-bit integers and doubles: overflow is an error, division rounds down. Also + and * on texts
// and lists.
#include <cmath>

#include "chat/jinja/format.h"
#include "chat/jinja/objects.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

const char* symbol(Op op) {
  switch (op) {
    case Op::add:
      return "+";
    case Op::sub:
      return "-";
    case Op::mul:
      return "*";
    case Op::div:
      return "/";
    case Op::floordiv:
      return "//";
    case Op::mod:
      return "%";
    default:
      return "** or pow()";
  }
}

tl::unexpected<Error> no_operator(Op op, const Value& a, const Value& b) {
  return failed(
      fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b)));
}

tl::unexpected<Error> too_large() { return limit_error("an integer of more than 64 bits"); }

Result<Value> integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return failed("0.0 cannot be raised to a negative power");
    return Value::of_real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return too_large();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return too_large();
  }
  return Value::of_int(result);
}

Result<Value> integers(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Op::add:
      if (__builtin_add_overflow(a, b, &result)) return too_large();
      return Value::of_int(result);
    case Op::sub:
      if (__builtin_sub_overflow(a, b, &result)) return too_large();
      return Value::of_int(result);
    case Op::mul:
      if (__builtin_mul_overflow(a, b, &result)) return too_large();
      return Value::of_int(result);
    case Op::pow:
      return integer_power(a, b);
    default:
      break;
  }
  if (b == 0) return failed(op == Op::div ? "division by zero" : "integer division or modulo by zero");
  if (op == Op::div)
    return Value::of_real(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
  if (b == -1) {
    if (op == Op::mod) return Value::of_int(0);
    if (__builtin_sub_overflow(int64_t{0}, a, &result)) return too_large();
    return Value::of_int(result);
  }
  const bool rounds_down = a % b != 0 && (a % b < 0) != (b < 0);
  if (op == Op::floordiv) return Value::of_int(a / b - (rounds_down ? 1 : 0));
  return Value::of_int(a % b + (rounds_down ? b : 0));
}

double floor_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return rest == 0 ? std::copysign(0.0, b) : rest;
}

double floor_quotient(double a, double b) {
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double down = std::floor(quotient);
  return quotient - down > 0.5 ? down + 1 : down;
}

Result<Value> reals(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return Value::of_real(a + b);
    case Op::sub:
      return Value::of_real(a - b);
    case Op::mul:
      return Value::of_real(a * b);
    case Op::pow: {
      if (a == 0 && b < 0) return failed("0.0 cannot be raised to a negative power");
      if (a < 0 && std::floor(b) != b && std::isfinite(a) && std::isfinite(b))
        return fail(Error::unsupported, "complex numbers are not supported in a chat template");
      const double power = std::pow(a, b);
      if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) return failed("Numerical result out of range");
      return Value::of_real(power);
    }
    default:
      break;
  }
  if (b == 0) return failed("float division by zero");
  if (op == Op::div) return Value::of_real(a / b);
  return Value::of_real(op == Op::mod ? floor_modulo(a, b) : floor_quotient(a, b));
}

Result<Value> repeated(Render& render, const Value& what, int64_t times) {
  const auto size = static_cast<size_t>(*length_of(what));
  if (times <= 0 || size == 0) times = 0;
  if (times > 0 && static_cast<size_t>(times) > Heap::kMostBytes / size)
    return limit_error("the template makes more than 64 MiB of values");
  const size_t count = static_cast<size_t>(times) * size;
  KVASIR_CHECK(render.room(count, what.is_text() ? sizeof(char32_t) : sizeof(Value)));
  if (what.is_text()) {
    Text text;
    text.reserve(count);
    for (int64_t i = 0; i < times; ++i) text += what.text();
    return render.heap().text(std::move(text), what.is_safe);
  }
  std::vector<Value> items;
  items.reserve(count);
  for (int64_t i = 0; i < times; ++i) items.insert(items.end(), what.items().begin(), what.items().end());
  return what.kind == Kind::list ? render.heap().list(std::move(items)) : render.heap().tuple(std::move(items));
}

Result<Value> joined(Render& render, const Value& a, const Value& b) {
  if (a.is_text()) {
    Text text;
    KVASIR_CHECK(render.room(a.text().size() + b.text().size()));
    const bool is_safe = a.is_safe || b.is_safe;
    text += is_safe && !a.is_safe ? escaped(a.text()) : Text(a.text());
    text += is_safe && !b.is_safe ? escaped(b.text()) : Text(b.text());
    return render.heap().text(std::move(text), is_safe);
  }
  KVASIR_CHECK(render.room(a.items().size() + b.items().size(), sizeof(Value)));
  std::vector<Value> items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.kind == Kind::list ? render.heap().list(std::move(items)) : render.heap().tuple(std::move(items));
}

}  // namespace

Result<Value> calculate(Render& render, Op op, const Value& a, const Value& b) {
  if (op == Op::mod && a.is_text()) {
    KVASIR_TRY(Text text, percent_format(render, a, b));
    return render.heap().text(std::move(text), a.is_safe);
  }
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  if (a.is_int() && b.is_int()) return integers(op, a.to_int(), b.to_int());
  if (a.is_number() && b.is_number()) return reals(op, a.to_real(), b.to_real());
  const auto is_text_or_sequence = [](const Value& v) { return v.is_text() || v.is_sequence(); };
  if (op == Op::mul && is_text_or_sequence(a) && b.is_int()) return repeated(render, a, b.to_int());
  if (op == Op::mul && is_text_or_sequence(b) && a.is_int()) return repeated(render, b, a.to_int());
  if (op == Op::add && a.kind == b.kind && is_text_or_sequence(a)) return joined(render, a, b);
  return no_operator(op, a, b);
}

Result<Value> negative(const Value& value) {
  if (value.is_undefined()) return undefined_error(value);
  if (value.is_int()) return integers(Op::sub, 0, value.to_int());
  if (value.kind == Kind::real) return Value::of_real(-value.real);
  return failed("bad operand type for unary -: '" + type_name(value) + "'");
}

Result<Value> positive(const Value& value) {
  if (value.is_undefined()) return undefined_error(value);
  if (value.is_int()) return Value::of_int(value.to_int());
  if (value.kind == Kind::real) return value;
  return failed("bad operand type for unary +: '" + type_name(value) + "'");
}

}  // namespace kvasir::jinja
