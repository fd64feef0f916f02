// The summary of a sweep as text.
#pragma once

#include <string>

#include "cli/text/layout/style.h"
#include "scenarios/sweep/results/summary.h"

namespace trainyard {

std::string sweep_report(const SweepSummary& summary, const Style& style);

// The values that set a point apart from the others: "plan.tensor_parallel 8, cluster.nodes 16".
std::string overrides_in_words(const PointRow& row);

}  // namespace trainyard
