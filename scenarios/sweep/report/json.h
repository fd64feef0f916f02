// The report of a sweep as JSON (`report/1`): what it was computed from, and every point beside its
// baselines.
#pragma once

#include "scenarios/json/output_file.h"
#include "scenarios/sweep/report/report.h"

namespace trainyard {

Expected<void> write_report_json(SweepReport& report, OutputFile& out);

}  // namespace trainyard
