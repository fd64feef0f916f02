#include "model/calibration/accuracy.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <utility>

namespace trainyard {
namespace {

template <typename T>
std::optional<double> relative_error(std::optional<T> predicted, std::optional<T> measured) {
  if (!predicted || !measured || measured->value() <= 0) {
    return std::nullopt;
  }
  return *predicted / *measured - 1;
}

FileAccuracy& accuracy_of(std::vector<FileAccuracy>& files, const std::string& file) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const FileAccuracy& entry) { return entry.file == file; });
  if (found != files.end()) {
    return *found;
  }
  files.push_back({.file = file});
  return files.back();
}

std::vector<FileAccuracy> by_file(std::span<const ValidationRow> rows) {
  std::vector<FileAccuracy> files;
  std::map<std::string, std::vector<double>> errors;
  for (const ValidationRow& row : rows) {
    FileAccuracy& file = accuracy_of(files, row.file);
    ++file.rows;
    if (const auto error = row.error()) {
      ++file.priced;
      errors[row.file].push_back(*error);
    }
  }
  for (FileAccuracy& file : files) {
    file.mape = mean_absolute(errors[file.file]);
    file.median = median_absolute(errors[file.file]);
  }
  return files;
}

std::vector<GroupAccuracy> by_group(std::span<const ValidationRow> rows) {
  struct Times {
    std::vector<double> predicted, measured;
  };
  std::map<int, Times> times;
  for (const ValidationRow& row : rows) {
    if (row.group >= 0 && row.error()) {
      times[row.group].predicted.push_back(row.predicted->value());
      times[row.group].measured.push_back(row.measured->value());
    }
  }
  std::vector<GroupAccuracy> groups;
  for (const auto& [group, t] : times) {
    if (t.predicted.size() >= 2) {
      groups.push_back({.plans = static_cast<int>(t.predicted.size()),
                        .kendall_tau = kendall_tau(t.predicted, t.measured),
                        .regret = regret(t.predicted, t.measured)});
    }
  }
  return groups;
}

std::vector<double> present(std::span<const ValidationRow> rows,
                            std::optional<double> (ValidationRow::*error)() const) {
  std::vector<double> errors;
  for (const ValidationRow& row : rows) {
    if (const auto value = (row.*error)()) {
      errors.push_back(*value);
    }
  }
  return errors;
}

// 1 where both order a pair alike, −1 where they do not, 0 where the prediction has a tie.
int concordance(double predicted_gap, double measured_gap) {
  const double product = predicted_gap * measured_gap;
  return static_cast<int>(product > 0) - static_cast<int>(product < 0);
}

}  // namespace

std::optional<double> ValidationRow::error() const { return relative_error(predicted, measured); }

std::optional<double> ValidationRow::memory_error() const {
  return relative_error(predicted_memory, measured_memory);
}

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
  std::vector<double> sorted(errors.size());
  std::transform(errors.begin(), errors.end(), sorted.begin(),
                 [](double e) { return std::abs(e); });
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

std::optional<double> kendall_tau(std::span<const double> predicted,
                                  std::span<const double> measured, double tolerance) {
  assert(predicted.size() == measured.size() && "a prediction for every measurement");
  int pairs = 0;
  int balance = 0;  // concordant − discordant
  for (std::size_t i = 0; i < measured.size(); ++i) {
    for (std::size_t j = i + 1; j < measured.size(); ++j) {
      const double gap = measured[i] - measured[j];
      if (std::abs(gap) <= tolerance * std::min(measured[i], measured[j])) {
        continue;
      }
      ++pairs;
      balance += concordance(predicted[i] - predicted[j], gap);
    }
  }
  return pairs == 0 ? std::nullopt : std::optional(static_cast<double>(balance) / pairs);
}

double regret(std::span<const double> predicted, std::span<const double> measured) {
  assert(predicted.size() == measured.size() && !predicted.empty() && "one plan at least");
  const auto chosen = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
  const double best = *std::min_element(measured.begin(), measured.end());
  return measured[static_cast<std::size_t>(chosen)] / best - 1;
}

ValidationReport assess(std::vector<ValidationRow> rows) {
  ValidationReport report;
  report.files = by_file(rows);
  report.groups = by_group(rows);
  const std::vector<double> errors = present(rows, &ValidationRow::error);
  report.mape = mean_absolute(errors);
  report.median = median_absolute(errors);
  report.memory_mape = mean_absolute(present(rows, &ValidationRow::memory_error));
  report.rows = std::move(rows);
  return report;
}

}  // namespace trainyard
