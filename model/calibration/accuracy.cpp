#include "model/calibration/accuracy.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

#include "model/median.h"

namespace trainyard {
namespace {

// 1 where both order a pair alike, −1 where they do not, 0 where the prediction has a tie.
int concordance(double predicted_gap, double measured_gap) {
  const double product = predicted_gap * measured_gap;
  return static_cast<int>(product > 0) - static_cast<int>(product < 0);
}

}  // namespace

std::optional<double> mean_absolute(std::span<const double> errors) {
  if (errors.empty()) {
    return std::nullopt;
  }
  double sum = 0;
  for (const double error : errors) {
    sum += std::abs(error);
  }
  return sum / static_cast<double>(errors.size());
}

std::optional<double> median_absolute(std::span<const double> errors) {
  if (errors.empty()) {
    return std::nullopt;
  }
  std::vector<double> magnitudes(errors.size());
  std::ranges::transform(errors, magnitudes.begin(), [](double e) { return std::abs(e); });
  return median(magnitudes);
}

std::optional<double> bias(std::span<const double> errors) {
  if (errors.empty()) {
    return std::nullopt;
  }
  return std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
}

std::optional<double> kendall_tau(std::span<const double> predicted,
                                  std::span<const double> measured, double tolerance) {
  assert(predicted.size() == measured.size() && "a prediction for every measurement");
  int pairs = 0;
  int tied = 0;     // of them, in the prediction
  int balance = 0;  // concordant − discordant
  for (std::size_t i = 0; i < measured.size(); ++i) {
    for (std::size_t j = i + 1; j < measured.size(); ++j) {
      const double gap = measured[i] - measured[j];
      if (std::abs(gap) <= tolerance * std::min(measured[i], measured[j])) {
        continue;
      }
      const int order = concordance(predicted[i] - predicted[j], gap);
      ++pairs;
      tied += order == 0 ? 1 : 0;
      balance += order;
    }
  }
  if (pairs == 0) {
    return std::nullopt;
  }
  return balance == 0 ? 0 : balance / std::sqrt(static_cast<double>(pairs - tied) * pairs);
}

double regret(std::span<const double> predicted, std::span<const double> measured) {
  assert(predicted.size() == measured.size() && !predicted.empty() && "one plan at least");
  const auto chosen = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
  const double best = *std::min_element(measured.begin(), measured.end());
  return measured[static_cast<std::size_t>(chosen)] / best - 1;
}

}  // namespace trainyard
