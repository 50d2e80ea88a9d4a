// Typed access to the JSON values of a tokenizer.json; errors name the key.
#pragma once

#include <string>

#include <fmt/format.h>
#include <kvasir/result.h>
#include <nlohmann/json.hpp>

#include "token/utf8.h"

namespace kvasir::json_values {

using nlohmann::json;

inline constexpr const char* kHint = "use another format of the same model: GGUF, tokenizer.model or tokenizer.bin";

/// Returns null if `node` is not an object or has no such key.
inline const json& member(const json& node, const char* key) {
  static const json null;
  const auto it = node.is_object() ? node.find(key) : node.end();
  return node.is_object() && it != node.end() ? *it : null;
}

/// Returns the value of "type"; empty if there is none.
inline std::string type_of(const json& node) {
  const json& type = member(node, "type");
  return type.is_string() ? type.get<std::string>() : std::string();
}

inline Result<bool> flag(const json& node, const char* key, bool absent) {
  const json& value = member(node, key);
  if (value.is_null()) return absent;
  if (!value.is_boolean())
    return fail(Error::damaged, fmt::format("{} is {}, not true or false", key, quote(value.dump())));
  return value.get<bool>();
}

inline Result<std::string> text(const json& node, const char* key) {
  const json& value = member(node, key);
  if (!value.is_string()) return fail(Error::damaged, fmt::format("{} is {}, not text", key, quote(value.dump())));
  return value.get<std::string>();
}

inline Result<const json*> list(const json& node, const char* key) {
  const json& value = member(node, key);
  if (!value.is_array()) return fail(Error::damaged, fmt::format("{} is {}, not a list", key, quote(value.dump())));
  return &value;
}

/// Returns the error for a part that is absent or not supported, with its name.
inline tl::unexpected<Error> unknown(const char* what, const json& node) {
  const std::string type = type_of(node);
  if (node.is_null())
    return fail(Error::damaged, fmt::format("the file has no {}, which this kind of tokenizer needs", what), {}, kHint);
  return fail(Error::unsupported,
              fmt::format("the {} {} is not supported", what, type.empty() ? quote(node.dump()) : quote(type)), {},
              kHint);
}

/// Calls read(node); for a component of type Sequence, calls it for each of its `parts`, recursively.
template <class Read>
Result<void> each_part(const json& node, const char* parts, const Read& read) {
  if (type_of(node) != "Sequence") return read(node);
  KVASIR_TRY(const json* all, list(node, parts));
  for (const json& one : *all) KVASIR_CHECK(each_part(one, parts, read));
  return {};
}

}  // namespace kvasir::json_values
