// Published runs for validation: read, priced, and predicted once more with parameters that were
// fitted without any run of the same source. A source is a file.
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
  std::optional<MeasuredRun> run;  // absent: not priced, or without a measured step time
};

// Prices the scenario with its plan. If the plan is absent or illegal, the row's note says so.
PricedRun priced_run(const std::string& file, const Scenario& scenario);

// Fills `held_out` of every row that has a run. Returns for each stack the interval that the
// residuals give. `progress` gets the share done. Requires: at least one run.
std::vector<IntervalFit> hold_out_sources(std::vector<PricedRun>& runs,
                                          const std::function<void(double)>& progress = {});

std::vector<ValidationRow> rows_of(std::vector<PricedRun> runs);

}  // namespace trainyard
