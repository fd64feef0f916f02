// One row of a table of kernels, by column. Readers take what they need and never fail; the first
// cell that cannot be is remembered and becomes the row's error.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"
#include "model/workload/precision.h"

namespace trainyard {

inline constexpr double kLargestWhole = 1e15;  // whole numbers up to it are exact

// A dtype as tables write it: bfloat16, …
std::string_view table_name(Dtype dtype);
// Those that tables have.
std::span<const Dtype> table_dtypes();

class KernelRow {
 public:
  // Requires: as many cells as columns.
  KernelRow(std::span<const std::string_view> columns, std::vector<std::string_view> cells)
      : columns_(columns), cells_(std::move(cells)) {}

  // A whole number.
  double whole(std::string_view column, double least = 1, double most = kLargestWhole);
  Seconds latency();  // column latency_us
  Dtype dtype();
  // The position of the cell among `names`; `allowed` says them in words when there are none alike.
  std::size_t choice(std::string_view column, std::span<const std::string_view> names);
  std::string_view text(std::string_view column) const;
  // For a reader's own rule.
  void refuse(std::string_view column, std::string_view allowed);

  const std::optional<std::string>& error() const { return error_; }

 private:
  std::span<const std::string_view> columns_;
  std::vector<std::string_view> cells_;
  std::optional<std::string> error_;
};

}  // namespace trainyard
