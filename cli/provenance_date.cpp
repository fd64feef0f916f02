#include "cli/provenance_date.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace trainyard {

std::string provenance_date(const std::string& named) {
  if (!named.empty()) return named;
  std::time_t time = std::time(nullptr);
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr) {
    const std::string_view text = epoch;
    std::from_chars(text.data(), text.data() + text.size(), time);
  }
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(time));
}

std::string names_a_day(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0;
  int end = 0;
  const bool written = text.size() == 10 &&
                       std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &end) == 3 &&
                       end == 10;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  return written && date.ok() ? "" : "found \"" + text + "\"; allowed: a day, YYYY-MM-DD";
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace trainyard
