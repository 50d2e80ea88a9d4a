// Turns the flags of chat templates into ChatOptions.
#include "cli/template_args.h"

#include <charconv>
#include <chrono>

#include "cli/flag_list.h"

namespace kvasir::cli {
namespace {

// "2026-12-31" at midnight, UTC.
Result<double> seconds_of(const std::string& date) {
  const auto number = [&](size_t begin, size_t size) {
    int value = -1;
    const char* const at = date.data() + begin;
    const auto [end, error] = std::from_chars(at, at + size, value);
    return error == std::errc() && end == at + size ? value : -1;
  };
  using std::chrono::year_month_day;
  if (date.size() == 10 && date[4] == '-' && date[7] == '-') {
    const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
    const year_month_day of{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
    if (year >= 0 && of.ok())
      return std::chrono::duration<double>(std::chrono::sys_days(of).time_since_epoch()).count();
  }
  return fail(Error::bad_argument, "\"" + date + "\" is not a date", "--template-date", "2026-12-31");
}

}  // namespace

void TemplateArgs::add(Flags& flags, const char* needs) {
  flags.bind(with_needs(flag::kChatTemplate, needs), &file);
  flags.bind(with_needs(flag::kTemplateDate, needs), &date);
  flags.bind(with_needs(flag::kHfSpecialTokens, needs), &hf_special_tokens);
}

Result<ChatOptions> TemplateArgs::options() const {
  ChatOptions options{.marks_data = !hf_special_tokens};
  if (!date.empty()) {
    KVASIR_TRY(options.now, seconds_of(date));
  }
  return options;
}

}  // namespace kvasir::cli
