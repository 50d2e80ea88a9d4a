// Rules for the hub's names, and the choice of one GGUF file among several.
#include "base/hub_names.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include <fmt/format.h>

#include "base/quote.h"

namespace kvasir::hub {
namespace {

constexpr size_t kMostNameBytes = 96, kMostFileBytes = 1024, kMostPartBytes = 240;
constexpr size_t kMostListed = 60;  // files listed in an error

bool is_letter_or_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

char lower_of(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower_of);
  return out;
}

// Refuses "--", which separates owner and name in the cache's folders, and "..", which the hub refuses too.
bool is_repo_word(std::string_view word) {
  if (word.empty() || word.size() > kMostNameBytes || word.find("--") != word.npos || word.find("..") != word.npos)
    return false;
  const auto at_end = [](char c) { return is_letter_or_digit(c) || c == '_'; };
  return at_end(word.front()) && at_end(word.back()) &&
         std::ranges::all_of(word, [](char c) { return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.'; });
}

bool is_safe_part(std::string_view part) {
  return !part.empty() && part.size() <= kMostPartBytes && part.find_first_not_of('.') != part.npos;
}

// ---- GGUF files and their parts -----------------------------------------------------------------------------------

struct GgufParts {
  int all = 1;                       // number of parts according to the file names
  std::map<int, std::string> found;  // by part number, from 1
};

// Returns {2, 3} for a name that ends in "-00002-of-00003.gguf".
std::optional<std::pair<int, int>> part_number(std::string_view name) {
  constexpr std::string_view kShape = "-NNNNN-of-NNNNN.gguf";
  if (name.size() <= kShape.size()) return std::nullopt;
  const std::string_view end = name.substr(name.size() - kShape.size());
  for (size_t i = 0; i < end.size(); ++i)
    if (kShape[i] == 'N' ? end[i] < '0' || end[i] > '9' : end[i] != kShape[i]) return std::nullopt;
  const auto number = [&](size_t at) { return std::stoi(std::string(end.substr(at, 5))); };
  return std::pair{number(1), number(10)};
}

// Groups the parts of split files. The key is the file name with the part numbers replaced by " of N".
std::map<std::string, GgufParts> gguf_groups(std::span<const std::string> files) {
  constexpr size_t kNumbers = 20;
  std::map<std::string, GgufParts> groups;
  for (const std::string& file : files) {
    if (!file.ends_with(".gguf")) continue;
    const auto part = part_number(file);
    GgufParts& group =
        groups[part ? file.substr(0, file.size() - kNumbers) + fmt::format(" of {}", part->second) : file];
    group.all = part ? part->second : 1;
    group.found.emplace(part ? part->first : 1, file);
  }
  return groups;
}

bool is_projector(std::string_view file) { return in_lower_case(file).find("mmproj") != std::string::npos; }

// Matches whole words only: type "Q4_K" does not match a file named Q4_K_M, and "Q4_0" does not match IQ4_0.
bool carries_type(std::string_view file, std::string_view type) {
  const std::string name = in_lower_case(file), wanted = in_lower_case(type);
  for (size_t at = name.find(wanted); at != name.npos; at = name.find(wanted, at + 1)) {
    const size_t end = at + wanted.size();
    const bool begins = at == 0 || !is_letter_or_digit(name[at - 1]);
    const bool ends = end == name.size() || (!is_letter_or_digit(name[end]) && name[end] != '_');
    if (begins && ends) return true;
  }
  return false;
}

std::string listed(const std::vector<const GgufParts*>& groups) {
  std::string text;
  for (size_t i = 0; i < std::min(groups.size(), kMostListed); ++i)
    text += (i == 0 ? "" : ", ") + groups[i]->found.begin()->second;
  return groups.size() > kMostListed ? text + fmt::format(" and {} more", groups.size() - kMostListed) : text;
}

Result<std::vector<std::string>> all_parts(const GgufParts& group, const std::string& where) {
  std::vector<std::string> out;
  for (const auto& [number, file] : group.found) out.push_back(file);
  const bool whole = static_cast<int>(out.size()) == group.all && group.found.begin()->first == 1 &&
                     group.found.rbegin()->first == group.all;
  if (whole) return out;
  return fail(Error::not_found,
              fmt::format("only {} of the {} parts of {} are there", out.size(), group.all, out.front()), where,
              "all parts, or another type");
}

}  // namespace

std::optional<Wanted> parse_wanted(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view repo = text.substr(0, colon);
  const size_t slash = repo.find('/');
  if (slash == repo.npos || !is_repo_word(repo.substr(0, slash)) || !is_repo_word(repo.substr(slash + 1)))
    return std::nullopt;
  Wanted out{{std::string(repo.substr(0, slash)), std::string(repo.substr(slash + 1))}, {}};
  if (colon == text.npos) return out;
  out.what = text.substr(colon + 1);
  if (!is_safe_file(out.what)) return std::nullopt;
  return out;
}

std::optional<RepoName> parse_repo(std::string_view text) {
  const auto wanted = parse_wanted(text);
  if (!wanted || !wanted->what.empty()) return std::nullopt;
  return wanted->repo;
}

bool is_safe_file(std::string_view name) {
  if (name.empty() || name.size() > kMostFileBytes) return false;
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    if (!is_safe_part(name.substr(at, end - at))) return false;
    at = end + 1;
  }
  return true;
}

Result<std::vector<std::string>> choose_gguf(std::span<const std::string> files, const std::string& what,
                                             const std::string& where) {
  std::vector<const GgufParts*> all, fit;
  const auto groups = gguf_groups(files);
  for (const auto& [name, group] : groups) {
    const std::string& first = group.found.begin()->second;
    if (std::ranges::any_of(group.found, [&](const auto& part) { return part.second == what; }))
      return all_parts(group, where);
    if (is_projector(first)) continue;
    all.push_back(&group);
    if (what.empty() || carries_type(first, what)) fit.push_back(&group);
  }
  if (std::ranges::find(files, what) != files.end()) return std::vector<std::string>{what};
  if (fit.size() == 1) return all_parts(*fit.front(), where);
  if (all.empty()) return fail(Error::not_found, "it has no GGUF file", where, "another repository");
  if (fit.empty())
    return fail(Error::not_found,
                fmt::format("no file and no type {} in it; its GGUF files: {}", in_quotes(what), listed(all)), where,
                "one of these after the colon");
  return fail(Error::bad_argument, fmt::format("{} GGUF files fit: {}", fit.size(), listed(fit)), where,
              "OWNER/NAME:TYPE, or OWNER/NAME:FILE");
}

}  // namespace kvasir::hub
