// One row of a table of kernels, read by column. Getters never fail; the first cell that is not
// allowed is remembered and becomes the row's error.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"
#include "model/workload/precision.h"

namespace trainyard {

inline constexpr double kLargestWhole = 1e15;  // whole numbers up to this are exact

// A dtype as tables write it: "bfloat16", …
std::string_view table_name(Dtype dtype);
// The dtypes that tables have.
std::span<const Dtype> table_dtypes();

class KernelRow {
 public:
  // Requires: as many cells as columns.
  KernelRow(std::span<const std::string_view> columns, std::vector<std::string_view> cells)
      : columns_(columns), cells_(std::move(cells)) {}

  // A whole number from `least` to `most`.
  double whole(std::string_view column, double least = 1, double most = kLargestWhole);
  Seconds latency();  // column latency_us
  Dtype dtype();
  // The index of the cell in `names`; if it is not there, the error lists them.
  std::size_t choice(std::string_view column, std::span<const std::string_view> names);
  std::string_view text(std::string_view column) const;
  // Remembers an error at a column, for rules of the reader's own.
  void refuse(std::string_view column, std::string_view allowed);

  const std::optional<std::string>& error() const { return error_; }

 private:
  std::span<const std::string_view> columns_;
  std::vector<std::string_view> cells_;
  std::optional<std::string> error_;
};

}  // namespace trainyard
