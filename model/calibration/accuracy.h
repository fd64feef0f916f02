// How well predictions meet measurements: signed error of every run, MAPE and median by file and
// over all, and for groups of runs that differ only in their plan whether the prediction ranks the
// plans as the measurement does (Kendall's τ, regret). Pure statistics; errors are fractions.
//
// Sources: MAPE as in Calculon (Isaev et al. 2023); τ: Kendall 1938, over pairs that the
// measurement can tell apart.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/units.h"

namespace trainyard {

// Pairs of runs whose measured times differ by less than this (of the faster) have no known order:
// it is the repeatability of published measurements, doubled.
inline constexpr double kRankingTolerance = 0.03;

// One run: what was predicted and what was measured. A run whose plan is illegal has no prediction
// and a note that says why.
struct ValidationRow {
  std::string file;  // the document it comes from
  std::string name;
  int group = -1;  // runs of one group differ only in their plan; −1: none
  std::optional<Seconds> predicted, low, high;
  std::optional<Seconds> measured;
  std::optional<Bytes> predicted_memory, measured_memory;  // of the same kind
  std::optional<bool> feasible;
  std::string note;

  // predicted / measured − 1; absent when either is.
  std::optional<double> error() const;
  std::optional<double> memory_error() const;
};

struct FileAccuracy {
  std::string file;
  int rows = 0;
  int priced = 0;                      // rows with an error
  std::optional<double> mape, median;  // of |error|; absent when nothing was priced
};

struct GroupAccuracy {
  int plans = 0;
  std::optional<double> kendall_tau;  // absent when no pair differs enough
  double regret = 0;  // measured time of the plan predicted fastest over the fastest measured, − 1
};

struct ValidationReport {
  std::vector<FileAccuracy> files;  // in order of first appearance
  std::vector<ValidationRow> rows;
  std::vector<GroupAccuracy> groups;  // of at least two priced plans
  std::optional<double> mape, median, memory_mape;
};

ValidationReport assess(std::vector<ValidationRow> rows);

// Mean and median of |error|; absent when there is none.
std::optional<double> mean_absolute(std::span<const double> errors);
std::optional<double> median_absolute(std::span<const double> errors);

// (concordant − discordant) / pairs, over the pairs whose measured values differ by more than
// `tolerance` of the smaller; a pair predicted equal counts as neither. Requires: equal sizes.
std::optional<double> kendall_tau(std::span<const double> predicted,
                                  std::span<const double> measured,
                                  double tolerance = kRankingTolerance);

// measured[argmin predicted] / min measured − 1. Requires: equal sizes, not empty, positive.
double regret(std::span<const double> predicted, std::span<const double> measured);

}  // namespace trainyard
