// Predictions against measurements: one row for each scenario that has `measured`, and summaries of
// the errors by file, over all rows, by device, network size and parallelism, and over the plans of
// one job (does the cost model rank them as the hardware does?).
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

// The prediction with parameters that were fitted without any run of the row's source.
struct HeldOut {
  Seconds predicted;
  Seconds low, high;  // 10–90 %, from the residuals of the other sources
  double error = 0;   // predicted / measured − 1
};

struct ValidationRow {
  std::string file;
  std::string name;
  std::string job;              // equal for rows that differ only in their plan
  std::string source, release;  // of the measurement
  std::string device;
  std::string stack;
  std::string size;         // class of the network, by parameters: "1–10 B"
  std::string parallelism;  // kinds with a degree above 1: "tp+pp"; "dp only"
  int devices = 0;
  bool experts = false;  // a mixture of experts

  std::optional<Seconds> predicted;       // absent: not priced; `note` says why
  std::optional<Seconds> low, high;       // 10–90 % of the prediction
  std::optional<Seconds> measured;        // absent: the row gives memory only
  std::optional<double> error;            // predicted / measured − 1
  std::optional<Bytes> predicted_memory;  // of the measured kind, else of the device
  std::optional<Bytes> measured_memory;
  std::optional<double> memory_error;
  std::optional<HeldOut> held_out;  // absent: no sources were held out
  bool feasible = false;
  std::string note;  // why it was not priced, or what to know of its price
};

// The row of a scenario that was priced, and of one that could not be, whose note is the reason.
ValidationRow priced_row(const std::string& file, const Scenario& scenario,
                         const Estimate& estimate);
ValidationRow unpriced_row(const std::string& file, const Scenario& scenario,
                           const std::string& reason);

// Errors over some rows. Those of the step time are of |error|; absent if no row has one.
struct ErrorSummary {
  int rows = 0;
  int priced = 0;
  std::optional<double> mape, median;
  std::optional<double> bias;  // mean signed error; positive: predicted too slow
  std::optional<double> memory_mape;
  std::optional<double> coverage;  // share of measured times inside 10–90 %
  std::optional<double> held_out_mape, held_out_median, held_out_coverage;
};
ErrorSummary summary_of(std::span<const ValidationRow* const> rows);

struct FileSummary : ErrorSummary {
  std::string file;
};

struct SliceSummary : ErrorSummary {
  std::string name;  // a device, a class of size or a parallelism
};

// The plans of one job: how well their predicted order agrees with the measured one
// (model/calibration/accuracy.h).
struct PlanGroup {
  std::vector<std::string> plans;                               // row names
  std::optional<double> kendall_tau;                            // absent: too close to rank
  double regret = 0;                                            // by following the predicted order
  std::optional<double> held_out_kendall_tau, held_out_regret;  // absent: no sources held out
  bool one_release = true;  // measured with one release of one software
};

struct ValidationReport {
  std::vector<FileSummary> files;
  std::vector<ValidationRow> rows;
  std::vector<PlanGroup> groups;  // jobs with at least two rows that are priced and measured
  std::vector<SliceSummary> by_device, by_size, by_parallelism;
  ErrorSummary all;
  std::vector<IntervalFit> intervals;  // of stacks, where sources were held out
};

ValidationReport summarise(std::vector<ValidationRow> rows);

// The fields of a row as results show them, in order; monostate: unknown. Numbers are in SI units.
struct ValidationField {
  std::string_view key;
  std::variant<std::monostate, bool, int, double, std::string> value;
  bool of_held_out = false;
};
std::vector<ValidationField> fields_of(const ValidationRow& row);

}  // namespace trainyard
