// How well predictions meet measurements: mean and median of the error, and whether predictions
// rank the plans of one job as the measurements do (Kendall's τ, regret). Pure statistics; errors
// are signed fractions (predicted / measured − 1).
//
// Sources: MAPE as in Calculon (Isaev et al. 2023); τ-b: Kendall 1945, over the pairs that the
// measurement can tell apart.
#pragma once

#include <optional>
#include <span>

namespace trainyard {

// Pairs of runs whose measured times differ by less than this share of the faster one have no known
// order: twice the repeatability of published measurements (1.6 % on dgxc, median).
inline constexpr double kRankingTolerance = 0.03;

// Mean and median of |error|; absent when there is none.
std::optional<double> mean_absolute(std::span<const double> errors);
std::optional<double> median_absolute(std::span<const double> errors);

// Mean of the signed errors: positive where predictions are too slow.
std::optional<double> bias(std::span<const double> errors);

// τ-b = (C − D) / √((C + D)(C + D + T)) over the pairs whose measured values differ by more than
// `tolerance` of the smaller: C ordered alike, D the other way, T predicted equal. Absent without
// such a pair; 0 where all of them are predicted equal: that is no order.
// Requires: equal sizes, positive measurements.
std::optional<double> kendall_tau(std::span<const double> predicted,
                                  std::span<const double> measured,
                                  double tolerance = kRankingTolerance);

// What following the prediction costs: measured[argmin predicted] / min measured − 1.
// Requires: equal sizes, not empty, positive measurements.
double regret(std::span<const double> predicted, std::span<const double> measured);

}  // namespace trainyard
