// Flags over CLI11, which splits the command line into flags and texts. The texts are parsed here; no other file
// compiles CLI11.
#include "cli/flags.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "base/files.h"
#include "base/system.h"

namespace kvasir::cli {
namespace {

constexpr const char* kTypeNames[] = {"",     "INT",      "INT,...", "FLOAT", "UINT", "BYTES", "BYTES",
                                      "NAME", "NAME,...", "TEXT",    "TEXT",  "FILE", "FILE",  "FILE"};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0;; begin = text.find(at, begin) + 1) {
    const size_t end = text.find(at, begin);
    parts.emplace_back(text.substr(begin, end == text.npos ? end : end - begin));
    if (end == text.npos) return parts;
  }
}

std::vector<std::string> words(const char* list) {
  std::vector<std::string> parts = split(list, ' ');
  std::erase(parts, "");
  return parts;
}

// ---- values -------------------------------------------------------------------------------------------------------

// 4 instead of 4.0, 0.01 instead of 0.010000.
std::string number(double value) { return fmt::format("{:.16g}", value); }

std::string range_of(const Flag& f) {
  std::string text = f.high >= 2147483647.0 ? fmt::format("{} or more", number(f.low))
                                            : fmt::format("{}..{}", number(f.low), number(f.high));
  if (f.also) text += fmt::format(", or {}", *f.also);
  return text;
}

Result<int> parse_integer(const std::string& text, const Flag& f) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = !text.empty() && end == text.data() + text.size();
  if (error == std::errc::invalid_argument || !whole)
    return fail(Error::bad_argument, fmt::format("\"{}\" is not a whole number", text), shown_name(f), range_of(f));
  const auto x = static_cast<double>(value);
  if (error == std::errc::result_out_of_range || x > 2147483647.0 || x < -2147483648.0)
    return fail(Error::bad_argument, fmt::format("{} is out of range", text), shown_name(f), range_of(f));
  if ((x < f.low || x > f.high) && value != f.also)
    return fail(Error::bad_argument, fmt::format("{} {}", value, f.unit), shown_name(f), range_of(f));
  return static_cast<int>(value);
}

Result<double> parse_real(const std::string& text, const Flag& f) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = !text.empty() && end == text.data() + text.size();
  if (error == std::errc::invalid_argument || !whole || (error == std::errc() && !std::isfinite(value)))
    return fail(Error::bad_argument, fmt::format("\"{}\" is not a number", text), shown_name(f), range_of(f));
  if (error == std::errc::result_out_of_range || value < f.low || value > f.high)
    return fail(Error::bad_argument, fmt::format("{} is out of range", text), shown_name(f), range_of(f));
  return value;
}

Result<uint64_t> parse_seed(const std::string& text, const Flag& f) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string range = fmt::format("0..{}", UINT64_MAX);
  if (error == std::errc::result_out_of_range)
    return fail(Error::bad_argument, fmt::format("{} is out of range", text), shown_name(f), range);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(Error::bad_argument, fmt::format("\"{}\" is not a whole number from 0 on", text), shown_name(f), range);
  return value;
}

Result<void> check_choice(const std::string& text, const Flag& f) {
  const std::vector<std::string> choices = f.choices();
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
  if (f.known != nullptr && f.known(text)) return {};
  return fail(Error::bad_argument, fmt::format("\"{}\" is not {}", text, f.unit), shown_name(f),
              fmt::format("{}", fmt::join(choices, ", ")));
}

Result<std::vector<std::string>> parse_names(const std::string& text, const Flag& f) {
  std::string commas = text;
  std::replace(commas.begin(), commas.end(), ';', ',');
  std::vector<std::string> names = split(commas, ',');
  for (const std::string& name : names) KVASIR_CHECK(check_choice(name, f));
  return names;
}

Result<void> check_input(const std::string& path, const Flag& f) {
  std::error_code ec;
  if (f.kind == Kind::text_file && path == "-") return {};
  if (std::filesystem::is_directory(path, ec))
    return fail(Error::bad_argument, fmt::format("{} is a folder", path), shown_name(f), "the name of a file");
  if (::access(path.c_str(), R_OK) != 0)
    return fail(kind_of_errno(errno), fmt::format("{} cannot be read: {}", path, std::strerror(errno)), shown_name(f),
                "an existing file");
  return {};
}

template <class T>
Result<Flags::Value> wrapped(Result<T> value) {
  if (!value) return tl::unexpected<Error>(std::move(value).error());
  return Flags::Value(std::move(*value));
}

Result<Flags::Value> checked(Result<void> check, const std::string& text) {
  if (!check) return tl::unexpected<Error>(std::move(check).error());
  return Flags::Value(text);
}

Result<Flags::Value> parse(const Flag& f, const std::string& text) {
  switch (f.kind) {
    case Kind::toggle:
      return Flags::Value(true);
    case Kind::integer:
      return wrapped(parse_integer(text, f));
    case Kind::integers:
      return wrapped(parse_integers(text, f));
    case Kind::real:
      return wrapped(parse_real(text, f));
    case Kind::seed:
      return wrapped(parse_seed(text, f));
    case Kind::memory:
      if (text == "auto") return Flags::Value(uint64_t{available_memory_bytes() / 4 * 3});
      [[fallthrough]];
    case Kind::size:
      return wrapped(parse_bytes(text, shown_name(f)));
    case Kind::name:
      return checked(check_choice(text, f), text);
    case Kind::names:
      return wrapped(parse_names(text, f));
    case Kind::text:
    case Kind::texts:
      return Flags::Value(text);
    case Kind::input:
    case Kind::text_file:
      return checked(check_input(text, f), text);
    case Kind::output:
      return checked(check_output(text).map_error([&f](const Error& e) {
        return Error{e.kind, e.where + " " + e.what, shown_name(f), e.hint};
      }),
                     text);
  }
  return Flags::Value(text);
}

// Parses all texts given for one flag.
Result<Flags::Value> parse_all(const Flag& f, const std::vector<std::string>& texts) {
  if (f.kind == Kind::toggle) return Flags::Value(true);
  if (texts.size() > 1 && f.kind != Kind::texts)
    return fail(Error::bad_argument, fmt::format("it is given {} times: {}", texts.size(), fmt::join(texts, ", ")),
                shown_name(f),
                f.kind == Kind::integers || f.kind == Kind::names ? "one list with commas" : "one of them");
  for (const std::string& text : texts)
    if (text.empty() && !f.may_be_empty)
      return fail(Error::bad_argument,
                  f.kind == Kind::size || f.kind == Kind::memory ? "\"\" is not a size" : "it is empty", shown_name(f),
                  f.kind == Kind::size || f.kind == Kind::memory ? "a number with K, M or G: 512M"
                                                                 : "a value, or none of this flag");
  if (f.kind == Kind::texts) return Flags::Value(texts);
  return parse(f, texts.front());
}

}  // namespace

std::string shown_name(const Flag& flag) { return split(flag.names, ',').front(); }

Result<std::vector<int>> parse_integers(const std::string& text, const Flag& f) {
  std::vector<int> values;
  for (const std::string& part : split(text, ',')) {
    if (part.empty())
      return fail(Error::bad_argument, fmt::format("\"{}\" has an empty item", text), shown_name(f),
                  shown_name(f) + " 1,2,3");
    KVASIR_TRY(values.emplace_back(), parse_integer(part, f));
  }
  return values;
}

Result<size_t> parse_bytes(const std::string& text, const std::string& flag) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string unit(end, text.data() + text.size());
  double scale = 0;
  if (unit.empty() || unit == "B")
    scale = 1;
  else if (unit == "K" || unit == "KiB")
    scale = 1024;
  else if (unit == "M" || unit == "MiB")
    scale = 1024.0 * 1024.0;
  else if (unit == "G" || unit == "GiB")
    scale = 1024.0 * 1024.0 * 1024.0;
  const double bytes = number * scale;
  if (error != std::errc() || !(bytes >= 1) || bytes > 1e18)
    return fail(Error::bad_argument, fmt::format("\"{}\" is not a size", text), flag, "a number with K, M or G: 512M");
  return static_cast<size_t>(bytes);
}

Result<void> check_output(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ec;
  if (fs::is_directory(path, ec)) return fail(Error::bad_argument, "is a folder", path, "the name of a file");
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ec))
    return fail(Error::not_found, "cannot be created, its folder does not exist", path,
                "an output in a folder that exists");
  return {};
}

// ---- the flags of a command ---------------------------------------------------------------------------------------

std::string Flags::joined(const std::vector<int>& values) { return fmt::format("{}", fmt::join(values, ",")); }
std::string Flags::joined(const std::vector<std::string>& values) { return fmt::format("{}", fmt::join(values, ",")); }

namespace {

bool is_place(const Flag& flag) { return *flag.names != '-'; }

}  // namespace

void Flags::add(const Flag& flag, std::string fallback, std::function<void(Value&&)> put) {
  if (flag.kind == Kind::size || flag.kind == Kind::memory)
    fallback.clear();  // 0 means no limit, and is not shown as a size
  std::string help = flag.help;
  if (flag.choices != nullptr) help += fmt::format(". One of {}", fmt::join(flag.choices(), ", "));
  CLI::Option* option = flag.kind == Kind::toggle ? app_.add_flag(flag.names) : app_.add_option(flag.names);
  option->description(help)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->required(flag.required);
  if (flag.kind == Kind::toggle)
    option->disable_flag_override();
  else
    option->allow_extra_args(flag.kind == Kind::texts && is_place(flag))
        ->type_name(kTypeNames[static_cast<size_t>(flag.kind)])
        ->default_str(fallback);
  bound_.push_back({flag, std::move(fallback), option, std::move(put), {}});
}

void Flags::footer(const std::string& text) { app_.footer(text); }

const Flags::Bound* Flags::find(std::string_view name) const {
  for (const Bound& bound : bound_)
    for (const std::string& known : split(bound.flag.names, ','))
      if (known == name) return &bound;
  return nullptr;
}

// "--x", "--x=y", "--x!=y".
bool Flags::holds(std::string_view condition) const {
  const size_t equals = condition.find('=');
  const bool other = equals != condition.npos && condition[equals - 1] == '!';
  const Bound* bound = find(condition.substr(0, equals - (other ? 1 : 0)));
  if (bound == nullptr || !bound->value) return false;
  if (equals == condition.npos) return true;
  const std::string wanted(condition.substr(equals + 1));
  bool same = bound->option->results().front() == wanted;
  if (const auto* real = std::get_if<double>(&*bound->value)) same = *real == std::strtod(wanted.c_str(), nullptr);
  if (const auto* integer = std::get_if<int>(&*bound->value)) same = std::to_string(*integer) == wanted;
  return same != other;
}

std::vector<std::string> Flags::known_conditions(const char* list) const {
  std::vector<std::string> conditions = words(list);
  std::erase_if(conditions,
                [this](const std::string& c) { return find(c.substr(0, c.find_first_of("!="))) == nullptr; });
  return conditions;
}

namespace {

// "--window!=0" to "--window", "--on-full=slide" to "--on-full slide", "--file" to "-f".
std::string spelled(const std::string& condition, const std::string& name) {
  const size_t equals = condition.find('=');
  if (equals == condition.npos || condition[equals - 1] == '!') return name;
  return name + " " + condition.substr(equals + 1);
}

}  // namespace

Result<void> Flags::check_company(const Bound& b) const {
  const auto name = [this](const std::string& c) {
    return spelled(c, shown_name(find(c.substr(0, c.find_first_of("!=")))->flag));
  };
  const auto names = [&](const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& c : all) text += (text.empty() ? "" : " or ") + name(c);
    return text;
  };
  const auto met = [this](const std::vector<std::string>& all) {
    return std::any_of(all.begin(), all.end(), [this](const std::string& c) { return holds(c); });
  };
  if (const auto others = known_conditions(b.flag.or_else); *b.flag.or_else != '\0' && !b.value && !met(others))
    return fail(Error::bad_argument, "nothing is given", shown_name(b.flag),
                fmt::format("{} or {}", shown_name(b.flag), names(others)));
  if (!b.value) return {};
  for (const std::string& other : known_conditions(b.flag.not_with))
    if (holds(other))
      return fail(Error::bad_argument, fmt::format("{} is given too", name(other)), shown_name(b.flag),
                  "one of the two");
  if (const auto needed = known_conditions(b.flag.needs); *b.flag.needs != '\0' && !met(needed))
    return fail(Error::bad_argument, fmt::format("it changes nothing without {}", names(needed)), shown_name(b.flag),
                fmt::format("{} too", names(needed)));
  return {};
}

Result<void> Flags::check_extras() const {
  const std::vector<std::string> extras = app_.remaining();
  if (extras.empty()) return {};
  const std::string& first = extras.front();
  if (first.starts_with('-') && first.size() > 1)
    return fail(Error::bad_argument, fmt::format("{} has no such flag", app_.get_name()),
                first.substr(0, first.find('=')), fmt::format("kvasir {} --help", app_.get_name()));
  return fail(Error::bad_argument, fmt::format("{} takes nothing more here", app_.get_name()),
              fmt::format("\"{}\"", first), fmt::format("kvasir {} --help", app_.get_name()));
}

Result<void> Flags::read() {
  KVASIR_CHECK(check_extras());
  for (Bound& b : bound_)
    if (b.option->count() > 0) {
      KVASIR_TRY(b.value, parse_all(b.flag, b.option->results()));
    }
  for (const Bound& b : bound_) KVASIR_CHECK(check_company(b));
  for (Bound& b : bound_)
    if (b.value) b.put(Value(*b.value));
  return {};
}

bool Flags::given(const Flag& flag) const { return find(shown_name(flag))->option->count() > 0; }

std::string Flags::text(const Flag& flag) const {
  const Bound* bound = find(shown_name(flag));
  return bound->option->count() > 0 ? bound->option->results().front() : std::string();
}

std::string Flags::shown(const std::string& parser_name) const {
  const Bound* bound = find(parser_name);
  return bound == nullptr ? parser_name : shown_name(bound->flag);
}

bool Flags::takes_value(const std::string& name) const {
  const Bound* bound = find(name);
  return bound != nullptr && bound->flag.kind != Kind::toggle;
}

// ---- for programs -------------------------------------------------------------------------------------------------

namespace {

constexpr const char* kKindNames[] = {"toggle", "integer", "integers", "real",  "seed",  "size",      "memory",
                                      "name",   "names",   "text",     "texts", "input", "text_file", "output"};

Json flag_json(const Flag& f, const std::string& fallback) {
  Json json{
      {"names", split(f.names, ',')},  {"help", f.help},          {"kind", kKindNames[static_cast<size_t>(f.kind)]},
      {"default", fallback},           {"required", f.required},  {"may_be_empty", f.may_be_empty},
      {"not_with", words(f.not_with)}, {"needs", words(f.needs)}, {"or_else", words(f.or_else)}};
  if (f.kind == Kind::integer || f.kind == Kind::integers || f.kind == Kind::real) {
    json.set("low", f.low);
    json.set("high", f.high);
  }
  if (f.also) json.set("also", *f.also);
  if (f.choices != nullptr) json.set("choices", f.choices());
  return json;
}

}  // namespace

Json Flags::describe() const {
  Json flags = Json::array();
  for (const Bound& b : bound_) flags.push_back(flag_json(b.flag, b.fallback));
  return {{"name", app_.get_name()}, {"flags", flags}};
}

// ---- the command line ---------------------------------------------------------------------------------------------

namespace {

// CLI11 takes the word after "--flag=" as the value; here "--flag=" means an empty value.
std::vector<std::string> with_empty_values(const std::vector<std::string>& args, const Flags& flags) {
  std::vector<std::string> out;
  for (const std::string& arg : args) {
    const bool empty = arg.ends_with('=') && flags.takes_value(arg.substr(0, arg.size() - 1));
    out.push_back(empty ? arg.substr(0, arg.size() - 1) : arg);
    if (empty) out.emplace_back();
  }
  return out;
}

// CLI11's error in our words. CLI11's text begins with the name of the flag.
Error in_our_words(const CLI::ParseError& e, const Flags& flags) {
  const std::string help = fmt::format("kvasir {} --help", flags.app().get_name());
  const std::string text = e.what();
  std::string name = text.substr(0, text.find_first_of(": "));
  if (dynamic_cast<const CLI::RequiredError*>(&e) != nullptr)
    return {Error::bad_argument, "nothing is given", name, help};
  if (!name.starts_with('-'))
    name = (name.size() > 1 ? "--" : "-") + name;  // CLI11 gives a toggle's name without dashes
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) == nullptr) return {Error::bad_argument, text, "arguments", help};
  const bool value = flags.takes_value(name);
  return {Error::bad_argument, value ? "a value is missing" : "it takes no value", flags.shown(name), help};
}

}  // namespace

CommandLine::CommandLine(const std::string& name, const std::string& summary, const std::string& version,
                         const std::string& footer)
    : app_(std::make_unique<CLI::App>(summary, name)) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", version);
  app_->footer(footer);
}

CommandLine::~CommandLine() = default;

Flags& CommandLine::add_command(const std::string& name, const std::string& summary) {
  flags_.push_back(std::make_unique<Flags>(*app_->add_subcommand(name, summary)->allow_extras()));
  return *flags_.back();
}

Result<bool> CommandLine::cut(const std::vector<std::string>& args, size_t asked) {
  std::vector<std::string> last_first = with_empty_values(args, flags(asked));
  std::reverse(last_first.begin(), last_first.end());
  try {
    app_->parse(last_first);
    return false;
  } catch (const CLI::CallForHelp& e) {
    app_->exit(e);
    return true;
  } catch (const CLI::CallForVersion& e) {
    app_->exit(e);
    return true;
  } catch (const CLI::ParseError& e) {
    return tl::unexpected<Error>(in_our_words(e, flags(asked)));
  }
}

Json CommandLine::describe() const {
  Json list = Json::array();
  for (const auto& one : flags_) list.push_back(one->describe());
  return {{"commands", list}};
}

}  // namespace kvasir::cli
