// Predicted against measured: one row a scenario that has `measured`, and the errors over a file,
// over all, and over the plans of one job (does the model rank them as the hardware does?).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "model/units.h"
#include "scenarios/scenario.h"

namespace trainyard {

struct ValidationRow {
  std::string file;
  std::string name;
  std::string job;                        // equal for rows that differ by their plan only
  std::optional<Seconds> predicted;       // absent: not priced; `note` says why
  std::optional<Seconds> low, high;       // 10–90 % of the prediction
  std::optional<Seconds> measured;        // absent: the row gives memory only
  std::optional<double> error;            // predicted / measured − 1
  std::optional<Bytes> predicted_memory;  // of the kind that was measured
  std::optional<Bytes> measured_memory;
  std::optional<double> memory_error;
  bool feasible = false;
  std::string note;
};

// A row that was priced, and one whose plan cannot be (the reason becomes its note).
ValidationRow priced_row(const std::string& file, const Scenario& scenario,
                         const Estimate& estimate);
ValidationRow unpriced_row(const std::string& file, const Scenario& scenario,
                           const std::string& reason);

struct FileSummary {
  std::string file;
  int rows = 0;
  int priced = 0;
  std::optional<double> mape, median;  // of |error|; absent without a priced and measured row
};

// The plans of one job: how well their predicted order agrees with the measured one.
struct PlanGroup {
  std::vector<std::string> plans;     // row names
  std::optional<double> kendall_tau;  // model/calibration/accuracy.h; absent: too close to rank
  double regret = 0;                  // likewise
};

struct ValidationReport {
  std::vector<FileSummary> files;
  std::vector<ValidationRow> rows;
  std::vector<PlanGroup> groups;  // of two rows and more that are priced and measured
  std::optional<double> mape, median, memory_mape;
};

ValidationReport summarise(std::vector<ValidationRow> rows);

}  // namespace trainyard
