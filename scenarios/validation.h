// Predicted against measured: one row a scenario that has `measured`, and the errors over a file,
// over all, over what the runs have in common (device, size of the network, parallelism), and over
// the plans of one job (does the model rank them as the hardware does?).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/calibration/interval_fit.h"
#include "model/cost/estimate.h"
#include "model/units.h"
#include "scenarios/scenario.h"

namespace trainyard {

// Predicted by parameters that were fitted without any run of the row's source.
struct HeldOut {
  Seconds predicted;
  Seconds low, high;  // 10–90 %, from the residuals of the other sources
  double error = 0;   // predicted / measured − 1
};

struct ValidationRow {
  std::string file;
  std::string name;
  std::string job;              // equal for rows that differ by their plan only
  std::string source, release;  // of the measurement
  std::string device;
  std::string stack;
  std::string size;         // class of the network, by parameters: "1–10 B"
  std::string parallelism;  // degrees above one: "tp+pp"; "dp only"
  int devices = 0;
  bool experts = false;  // a mixture of experts

  std::optional<Seconds> predicted;       // absent: not priced; `note` says why
  std::optional<Seconds> low, high;       // 10–90 % of the prediction
  std::optional<Seconds> measured;        // absent: the row gives memory only
  std::optional<double> error;            // predicted / measured − 1
  std::optional<Bytes> predicted_memory;  // of the kind that was measured, else the device's
  std::optional<Bytes> measured_memory;
  std::optional<double> memory_error;
  std::optional<HeldOut> held_out;  // absent: sources were not left out
  bool feasible = false;
  std::string note;  // why it was not priced, or what its price leaves to be known
};

// A row that was priced, and one whose plan cannot be (the reason becomes its note).
ValidationRow priced_row(const std::string& file, const Scenario& scenario,
                         const Estimate& estimate);
ValidationRow unpriced_row(const std::string& file, const Scenario& scenario,
                           const std::string& reason);

// Errors of some rows. Those of the step time are of |error|; absent without a priced and measured
// row.
struct ErrorSummary {
  int rows = 0;
  int priced = 0;
  std::optional<double> mape, median;
  std::optional<double> bias;  // mean of the signed error: positive is predicted too slow
  std::optional<double> memory_mape;
  std::optional<double> coverage;  // share of measured times inside the interval
  std::optional<double> held_out_mape, held_out_median, held_out_coverage;
};
ErrorSummary summary_of(std::span<const ValidationRow* const> rows);

struct FileSummary : ErrorSummary {
  std::string file;
};

struct SliceSummary : ErrorSummary {
  std::string name;  // of the device, the size, the parallelism
};

// The plans of one job: how well their predicted order agrees with the measured one.
struct PlanGroup {
  std::vector<std::string> plans;     // row names
  std::optional<double> kendall_tau;  // model/calibration/accuracy.h; absent: too close to rank
  double regret = 0;                  // likewise
  std::optional<double> held_out_kendall_tau, held_out_regret;  // absent: nothing was held out
  bool one_release = true;  // measured with one release of one software
};

struct ValidationReport {
  std::vector<FileSummary> files;
  std::vector<ValidationRow> rows;
  std::vector<PlanGroup> groups;  // of two rows and more that are priced and measured
  std::vector<SliceSummary> by_device, by_size, by_parallelism;
  ErrorSummary all;
  std::vector<IntervalFit> intervals;  // of stacks, where sources were left out
};

ValidationReport summarise(std::vector<ValidationRow> rows);

// What results have of a row, by key and in their order; monostate: unknown. SI numbers.
struct ValidationField {
  std::string_view key;
  std::variant<std::monostate, bool, int, double, std::string> value;
  bool of_held_out = false;
};
std::vector<ValidationField> fields_of(const ValidationRow& row);

}  // namespace trainyard
