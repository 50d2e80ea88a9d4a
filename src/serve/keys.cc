// Reads the file of keys, and compares keys.
#include "serve/keys.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace kvasir::serve {
namespace {

// The time depends only on the length of the key that was sent.
bool equal_in_constant_time(std::string_view sent, std::string_view key) {
  unsigned different = sent.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < sent.size(); ++i)
    different |= static_cast<unsigned char>(sent[i]) ^ static_cast<unsigned char>(key[i % key.size()]);
  return different == 0;
}

Result<std::pair<std::string, std::shared_ptr<Caller>>> read_line(const std::string& line, const std::string& where) {
  std::istringstream in(line);
  auto caller = std::make_shared<Caller>();
  std::string key, rest;
  if (!(in >> caller->name >> key))
    return fail(Error::bad_argument, "a line without a name and a key", where, "name key [weight] [most at a time]");
  in >> std::ws;
  if (!in.eof() && !(in >> caller->weight && caller->weight > 0))
    return fail(Error::bad_argument, "the weight is not a number above 0", where, "name key 2");
  in >> std::ws;
  if (!in.eof() && !(in >> caller->most && caller->most > 0))
    return fail(Error::bad_argument, "the number of requests at a time is not a whole number above 0", where,
                "name key 2 8");
  if (in >> rest) return fail(Error::bad_argument, "more than four words", where, "name key [weight] [most at a time]");
  return std::pair(std::move(key), std::move(caller));
}

}  // namespace

Keys::Keys() : anybody_(std::make_shared<Caller>()) {}

Result<Keys> Keys::read(const std::string& path) {
  std::ifstream in(path);
  if (!in) return fail(Error::not_found, "cannot be read", path, "a file of lines \"name key\"");
  Keys keys;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = fmt::format("{}, line {}", path, number);
    KVASIR_TRY(auto entry, read_line(line, where));
    for (const auto& [key, caller] : keys.keys_)
      if (key == entry.first || caller->name == entry.second->name)
        return fail(Error::bad_argument, "an earlier line has the same name or key", where, "another");
    keys.keys_.push_back(std::move(entry));
  }
  if (keys.keys_.empty()) return fail(Error::bad_argument, "it has no key", path, "a line \"name key\"");
  return keys;
}

std::shared_ptr<Caller> Keys::find(std::string_view key) const {
  if (keys_.empty()) return anybody_;
  std::shared_ptr<Caller> found;
  for (const auto& [known, caller] : keys_)
    if (equal_in_constant_time(key, known)) found = caller;
  return found;
}

}  // namespace kvasir::serve
