// The date and the host name that go into measured documents.
#pragma once

#include <string>

namespace trainyard {

// The date `named` ("2026-01-31"); if empty, SOURCE_DATE_EPOCH (reproducible-builds.org), else
// today.
std::string provenance_date(const std::string& named);
// Checks an option's text: a day of the calendar such as "2026-01-31"; empty: it is right.
std::string names_a_day(const std::string& text);
std::string host_name();  // "unknown" where the system does not say

}  // namespace trainyard
