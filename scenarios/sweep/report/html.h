// The report of a sweep as one self-contained HTML page: tables that sort by a click on their
// heads, charts as SVG, everything that was assumed. Every text from outside is escaped.
#pragma once

#include <functional>

#include "scenarios/json/output_file.h"
#include "scenarios/sweep/report/report.h"

namespace trainyard {

// The table of points has only the best `kPointsOnPage`; matrix and charts show all.
inline constexpr std::int64_t kPointsOnPage = 1000;

Expected<void> write_report_html(SweepReport& report, OutputFile& out);

}  // namespace trainyard
