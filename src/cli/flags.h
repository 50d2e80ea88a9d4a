// How a flag is declared, bound to a variable, read and checked, and the command line of all commands' flags. The flags
// themselves are in flag_list.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <kvasir/result.h>

#include "cli/json.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kvasir::cli {

/// How the text after a flag is read.
enum class Kind {
  toggle,     ///< no text
  integer,    ///< int
  integers,   ///< vector<int>, with commas
  real,       ///< double
  seed,       ///< uint64_t
  size,       ///< size_t: bytes, with K, M or G of 1,024
  memory,     ///< the same, or "auto": three quarters of the memory now available to this machine or container
  name,       ///< string, one of `choices`
  names,      ///< vector<string>, with commas or semicolons, each one of `choices`
  text,       ///< string
  texts,      ///< vector<string>: the flag may be given more than once
  input,      ///< string: the name of an existing file
  text_file,  ///< the same, or "-" for stdin
  output,     ///< string: the name of a file to write, in an existing folder
};

/// A flag of one or more commands. The test of all flags reads the declarations through `kvasir --flags`.
struct Flag {
  const char* names;  ///< with commas; errors use the first. A name without a dash is a positional argument
  const char* help;
  Kind kind = Kind::text;
  double low = 0, high = 0;      ///< range of a number, or of every number in a list; both ends inclusive
  std::optional<int> also = {};  ///< an integer outside the range that is allowed too
  const char* unit = "";         ///< what an integer counts: "threads"; what a name is: "a KV type"
  std::vector<std::string> (*choices)() = nullptr;
  bool (*known)(const std::string&) = nullptr;  ///< other spellings of a choice
  /// Lists of flags separated by spaces. `not_with`: none of these may be given together with this one. `needs`: one of
  /// these must be given, since this one has no effect without it. "--x=y" means --x with value y, "--x!=y" with any
  /// other value. Flags that the command does not have are ignored.
  const char* not_with = "";
  const char* needs = "";
  const char* or_else = "";  ///< this flag or one of these must be given
  bool required = false, may_be_empty = false;
};

inline Flag with_help(Flag flag, const char* help) {
  flag.help = help;
  return flag;
}
inline Flag with_needs(Flag flag, const char* needs) {
  flag.needs = needs;
  return flag;
}
inline Flag with_choices(Flag flag, std::vector<std::string> (*choices)()) {
  flag.choices = choices;
  return flag;
}
/// The first of the names.
std::string shown_name(const Flag& flag);

/// The flags of one command, bound to its variables.
class Flags {
 public:
  using Value = std::variant<bool, int, double, uint64_t, std::string, std::vector<int>, std::vector<std::string>>;

  /// Requires: `app` outlives this.
  explicit Flags(CLI::App& app) : app_(app) {}

  /// Binds a flag to a variable. Without the flag the variable keeps its value, which the help shows as the default.
  /// Types: as listed at Kind, or an optional of that, or a filesystem path for a string.
  template <class T>
  void bind(const Flag& flag, T* target) {
    add(flag, text_of(*target), [target](Value&& value) { put(std::move(value), target); });
  }
  /// Binds a flag of kind name or text to a function that takes its value.
  void bind(const Flag& flag, const std::function<void(const std::string&)>& take) {
    add(flag, {}, [take](Value&& value) { take(std::get<std::string>(value)); });
  }
  /// Text after the flags in the command's help.
  void footer(const std::string& text);

  /// Parses the texts that CommandLine::cut() assigned to the flags and sets the variables. Errors: a value that its
  /// flag does not accept, flags that exclude or need each other, a flag given twice, an argument that belongs to no
  /// flag.
  Result<void> read();
  /// Whether the flag was given. Requires: read() was called.
  bool given(const Flag& flag) const;
  /// The text that was given, or "".
  std::string text(const Flag& flag) const;

  /// The declarations as JSON, for programs.
  Json describe() const;
  /// The name that errors use, from one that the parser uses.
  std::string shown(const std::string& parser_name) const;
  bool takes_value(const std::string& name) const;
  CLI::App& app() const { return app_; }

 private:
  struct Bound {
    Flag flag;
    std::string fallback;  // the default value, as text
    CLI::Option* option;
    std::function<void(Value&&)> put;
    std::optional<Value> value;
  };

  template <class T>
  struct Inner {
    using type = T;
    static const T* of(const T& value) { return &value; }
  };
  template <class T>
  struct Inner<std::optional<T>> {
    using type = T;
    static const T* of(const std::optional<T>& value) { return value ? &*value : nullptr; }
  };

  template <class T>
  static void put(Value&& value, T* target) {
    using Plain = typename Inner<T>::type;
    if constexpr (std::is_same_v<Plain, std::filesystem::path>)
      *target = std::get<std::string>(std::move(value));
    else
      *target = std::get<Plain>(std::move(value));
  }

  template <class T>
  static std::string text_of(const T& value) {
    const auto* plain = Inner<T>::of(value);
    if (plain == nullptr) return {};
    using Plain = typename Inner<T>::type;
    if constexpr (std::is_same_v<Plain, bool>)
      return {};
    else if constexpr (std::is_same_v<Plain, std::vector<int>> || std::is_same_v<Plain, std::vector<std::string>>)
      return joined(*plain);
    else if constexpr (std::is_arithmetic_v<Plain>)
      return Json(*plain).text();
    else if constexpr (std::is_same_v<Plain, std::filesystem::path>)
      return plain->string();
    else
      return *plain;
  }
  static std::string joined(const std::vector<int>& values);
  static std::string joined(const std::vector<std::string>& values);

  void add(const Flag& flag, std::string fallback, std::function<void(Value&&)> put);
  const Bound* find(std::string_view name) const;
  bool holds(std::string_view condition) const;
  std::vector<std::string> known_conditions(const char* list) const;
  Result<void> check_company(const Bound& bound) const;
  Result<void> check_extras() const;

  CLI::App& app_;
  std::vector<Bound> bound_;
};

/// The command line of a program of commands.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& summary, const std::string& version,
              const std::string& footer);
  ~CommandLine();

  /// Requires: the flags are bound before cut(). The reference is valid as long as this object.
  Flags& add_command(const std::string& name, const std::string& summary);
  /// The flags of the i-th command added.
  Flags& flags(size_t i) { return *flags_[i]; }
  /// Splits the arguments into flags and their texts, which Flags::read() parses next. `asked`: index of the command.
  /// Returns true if help or the version was requested and printed. Errors: a flag without its value, or a toggle with
  /// one.
  Result<bool> cut(const std::vector<std::string>& args, size_t asked);
  /// The declarations of every command as JSON, for programs.
  Json describe() const;

 private:
  std::unique_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<Flags>> flags_;
};

/// "512M" to bytes: a number with K, M or G of 1,024. Errors: anything else.
Result<size_t> parse_bytes(const std::string& text, const std::string& flag);
/// "1,2,3" to numbers within the flag's range. Errors: not a number, out of range, an empty item.
Result<std::vector<int>> parse_integers(const std::string& text, const Flag& flag);
/// Checks, before anything is computed, that `path` can be an output file. Errors: it is a folder, its folder does not
/// exist.
Result<void> check_output(const std::string& path);

}  // namespace kvasir::cli
