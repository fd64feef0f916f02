// The date and the host that measured documents carry.
#pragma once

#include <string>

namespace trainyard {

// `named` ("2026-01-31"), else SOURCE_DATE_EPOCH (reproducible-builds.org), else today.
std::string provenance_date(const std::string& named);
// A check of an option: a day of the calendar, "2026-01-31".
std::string names_a_day(const std::string& text);
std::string host_name();  // "unknown" where the system does not say

}  // namespace trainyard
