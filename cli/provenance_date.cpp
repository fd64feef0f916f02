#include "cli/provenance_date.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
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

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace trainyard
