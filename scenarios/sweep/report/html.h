// The report of a sweep as one HTML page that needs nothing else: tables that sort by a click on
// their heads, charts as SVG, everything that was assumed. Every text from outside is escaped.
#pragma once

#include <functional>

#include "scenarios/json/output_file.h"
#include "scenarios/sweep/report/report.h"

namespace trainyard {

// The table of points has the best `kPointsOnPage`; matrix and charts are of all.
inline constexpr std::int64_t kPointsOnPage = 1000;

Expected<void> write_report_html(SweepReport& report, OutputFile& out);

}  // namespace trainyard
