// Filters that apply another filter, a test or an attribute to each item.
#include "chat/jinja/attributes.h"
#include "chat/jinja/filters.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/repr.h"

namespace kvasir::jinja {
namespace {

// Removes and returns the first argument, the name of a filter or test.
Result<Text> take_name(Render& render, Arguments* arguments) {
  KVASIR_TRY(Text name, str_of(render, arguments->at[0]));
  arguments->at.erase(arguments->at.begin());
  return name;
}

using Change = std::function<Result<Value>(Render&, const Value&)>;

Result<Change> mapping(Render& render, Arguments arguments) {
  if (arguments.at.empty() && !arguments.named.empty()) {
    Value attribute, otherwise;
    for (const auto& [name, value] : arguments.named) {
      if (same(name, "attribute"))
        attribute = value;
      else if (same(name, "default"))
        otherwise = value;
      else
        return failed("Unexpected keyword argument '" + to_utf8(name) + "'");
    }
    if (attribute.is_missing()) return failed("map requires a filter argument");
    KVASIR_TRY(const AttributePath path, AttributePath::of(render, attribute));
    return Change([path, otherwise](Render& r, const Value& item) { return path.get(r, item, false, otherwise); });
  }
  if (arguments.at.empty()) return failed("map requires a filter argument");
  KVASIR_TRY(const Text name, take_name(render, &arguments));
  const FilterEntry* filter = find_filter(name);
  return Change([filter, name, arguments](Render& r, const Value& item) -> Result<Value> {
    if (filter == nullptr) return failed("No filter named '" + to_utf8(name) + "'.");
    return apply_filter(r, *filter, item, arguments);
  });
}

using Choice = std::function<Result<bool>(Render&, const Value&)>;

Result<Choice> choosing(Render& render, Arguments arguments, bool by_attribute) {
  AttributePath path;
  if (by_attribute) {
    if (arguments.at.empty()) return failed("Missing parameter for attribute name");
    KVASIR_TRY(path, AttributePath::of(render, arguments.at[0]));
    arguments.at.erase(arguments.at.begin());
  }
  if (arguments.at.empty())
    return Choice([path](Render& r, const Value& item) -> Result<bool> {
      KVASIR_TRY(const Value value, path.get(r, item));
      return truth(r, value);
    });
  KVASIR_TRY(const Text name, take_name(render, &arguments));
  const TestEntry* test = find_test(name);
  return Choice([path, test, name, arguments](Render& r, const Value& item) -> Result<bool> {
    KVASIR_TRY(const Value value, path.get(r, item));
    if (test == nullptr) return failed("No test named '" + to_utf8(name) + "'.");
    return apply_test(r, *test, value, arguments);
  });
}

// Returns a generator, as Jinja does: arguments are checked when the first item is requested.
Value choose(Render& render, const Value& of, Arguments arguments, bool by_attribute, bool wanted) {
  return generator(render,
                   [of, arguments = std::move(arguments), by_attribute, wanted, choice = Choice(),
                    items = static_cast<Iterator*>(nullptr)](Render& r) mutable -> Result<std::optional<Value>> {
                     if (items == nullptr) {
                       KVASIR_TRY(const bool has_any, truth(r, of));
                       if (!has_any) return std::nullopt;
                       KVASIR_TRY(choice, choosing(r, std::move(arguments), by_attribute));
                       KVASIR_TRY(items, iterate(r, of));
                     }
                     for (;;) {
                       KVASIR_CHECK(r.step());
                       KVASIR_TRY(const std::optional<Value> item, items->next(r));
                       if (!item) return item;
                       KVASIR_TRY(const bool holds, choice(r, *item));
                       if (holds == wanted) return item;
                     }
                   });
}

}  // namespace

Result<Value> filter_map(Render& render, const Value& of, Arguments arguments) {
  return generator(render,
                   [of, arguments = std::move(arguments), change = Change(),
                    items = static_cast<Iterator*>(nullptr)](Render& r) mutable -> Result<std::optional<Value>> {
                     if (items == nullptr) {
                       KVASIR_TRY(const bool has_any, truth(r, of));
                       if (!has_any) return std::nullopt;
                       KVASIR_TRY(change, mapping(r, std::move(arguments)));
                       KVASIR_TRY(items, iterate(r, of));
                     }
                     KVASIR_CHECK(r.step());
                     KVASIR_TRY(const std::optional<Value> item, items->next(r));
                     if (!item) return item;
                     KVASIR_TRY(const Value changed, change(r, *item));
                     return changed;
                   });
}

Result<Value> filter_select(Render& render, const Value& of, Arguments arguments) {
  return choose(render, of, std::move(arguments), false, true);
}
Result<Value> filter_reject(Render& render, const Value& of, Arguments arguments) {
  return choose(render, of, std::move(arguments), false, false);
}
Result<Value> filter_selectattr(Render& render, const Value& of, Arguments arguments) {
  return choose(render, of, std::move(arguments), true, true);
}
Result<Value> filter_rejectattr(Render& render, const Value& of, Arguments arguments) {
  return choose(render, of, std::move(arguments), true, false);
}

Result<Value> filter_default(Render& render, const Value& of, const Given& given) {
  KVASIR_TRY(const bool for_false, flag(render, given[1]));
  const Value otherwise = given[0].is_missing() ? render.heap().text(Text()) : given[0];
  if (of.is_undefined()) return otherwise;
  if (!for_false) return Value(of);
  KVASIR_TRY(const bool holds, truth(render, of));
  return holds ? of : otherwise;
}

Result<Value> filter_attr(Render& render, const Value& of, const Given& given) {
  if (!given[0].is_text()) return failed("attribute name must be string, not '" + type_name(given[0]) + "'");
  if (of.is_undefined()) return undefined_error(of);
  // Ignores an item of that name: for a dict without the attribute, the lookup runs on an empty dict.
  KVASIR_TRY(const Value own, own_attribute(render, of, given[0].text()));
  const Value bare = own.is_missing() && of.kind == Kind::dict ? render.heap().dict({}) : of;
  return get_attribute(render, bare, given[0]);
}

}  // namespace kvasir::jinja
