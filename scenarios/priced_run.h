// Published runs as validation takes them: read, priced, and predicted once more by parameters that
// were fitted without their source. A source is a file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/calibration/interval_fit.h"
#include "scenarios/scenario.h"
#include "scenarios/validation.h"

namespace trainyard {

struct PricedRun {
  ValidationRow row;
  std::optional<MeasuredRun> run;  // absent: not priced, or no step time was measured
};

// With the plan of the scenario; one that is absent or illegal leaves the reason in the row's note.
PricedRun priced_run(const std::string& file, const Scenario& scenario);

// Fills `held_out` of every row that has a run; returns the intervals that the residuals give each
// stack. `progress` is told the share that is done. Requires: one run at least.
std::vector<IntervalFit> hold_out_sources(std::vector<PricedRun>& runs,
                                          const std::function<void(double)>& progress = {});

std::vector<ValidationRow> rows_of(std::vector<PricedRun> runs);

}  // namespace trainyard
