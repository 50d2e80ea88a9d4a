// How a flag is declared, bound to a variable, read and checked, and the command line that holds the commands' flags.
// Which flags there are is in flag_list.h.
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
  memory,     ///< the same, or "auto": three quarters of what this machine, or the container, has available now
  name,       ///< string, one of `choices`
  names,      ///< vector<string>, with commas or semicolons, each one of `choices`
  text,       ///< string
  texts,      ///< vector<string>: the flag may be given more than once
  input,      ///< string, the name of a file that exists
  text_file,  ///< the same, or "-" for stdin
  output,     ///< string, the name of a file to write in a folder that exists
};

/// A flag of one or more commands. The test that walks all flags reads them from here, through `kvasir --flags`.
struct Flag {
  const char* names;  ///< with commas; errors speak of the first. One without a dash is a place on the command line
  const char* help;
  Kind kind = Kind::text;
  double low = 0, high = 0;      ///< of numbers, and of every number of a list; both inclusive
  std::optional<int> also = {};  ///< an integer that is allowed besides
  const char* unit = "";         ///< what an integer counts, "threads"; what a name is one of, "a KV type"
  std::vector<std::string> (*choices)() = nullptr;
  bool (*known)(const std::string&) = nullptr;  ///< other spellings of a choice
  /// Flags, with spaces between, that cannot be given together with this one, and of which one must be, for without it
  /// this one would change nothing. "--x=y" is --x where its value is y, "--x!=y" where it is another. Flags that the
  /// command does not have do not count.
  const char* not_with = "";
  const char* needs = "";
  const char* or_else = "";  ///< this flag or one of these has to be given
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

  /// The variable keeps its value, which the help shows, where the flag is not given. Types: as Kind says, or an
  /// optional of that, or a filesystem path for a string.
  template <class T>
  void bind(const Flag& flag, T* target) {
    add(flag, text_of(*target), [target](Value&& value) { put(std::move(value), target); });
  }
  /// A flag of kind name or text, for more than one variable.
  void bind(const Flag& flag, const std::function<void(const std::string&)>& take) {
    add(flag, {}, [take](Value&& value) { take(std::get<std::string>(value)); });
  }
  /// Text after the flags in the command's help.
  void footer(const std::string& text);

  /// After the command line has been cut into flags and texts: reads the texts into the variables. Errors: a value that
  /// its flag does not take, flags that exclude or need each other, a flag given twice, what no flag takes.
  Result<void> read();
  /// After read().
  bool given(const Flag& flag) const;
  /// The text that was given, or "".
  std::string text(const Flag& flag) const;

  /// The declarations, for programs.
  Json describe() const;
  /// The name that errors speak of, from one that the parser uses.
  std::string shown(const std::string& parser_name) const;
  bool takes_value(const std::string& name) const;
  CLI::App& app() const { return app_; }

 private:
  struct Bound {
    Flag flag;
    std::string fallback;  // the value without the flag, as text
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

  /// Requires: the flags are bound before cut(). The reference is good as long as this is.
  Flags& add_command(const std::string& name, const std::string& summary);
  /// The flags of the i-th command added.
  Flags& flags(size_t i) { return *flags_[i]; }
  /// Cuts the arguments into flags and texts, which Flags::read() reads next. True: help or the version was asked for
  /// and is printed. `asked`: the command among them. Errors: a flag without its value, or with one it does not take.
  Result<bool> cut(const std::vector<std::string>& args, size_t asked);
  /// The declarations of every command, for programs.
  Json describe() const;

 private:
  std::unique_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<Flags>> flags_;
};

/// "512M" to bytes: a number with K, M or G of 1,024. Errors: anything else.
Result<size_t> parse_bytes(const std::string& text, const std::string& flag);
/// "1,2,3" to numbers from `low` to `high`. Errors: what is none, an empty item.
Result<std::vector<int>> parse_integers(const std::string& text, const Flag& flag);
/// Refuses a folder that does not exist before anything is computed.
Result<void> check_output(const std::string& path);

}  // namespace kvasir::cli
