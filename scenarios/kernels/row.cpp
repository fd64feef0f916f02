#include "scenarios/kernels/row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>

#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

// In microseconds. A single load from memory takes a third of one, so anything shorter is no
// kernel.
constexpr double kShortestKernel = 0.1, kLongestKernel = 1e12;

constexpr std::array<std::string_view, 4> kTableNames = {"bfloat16", "float16", "float32", "fp8"};
constexpr std::array<Dtype, 4> kTableDtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32, Dtype::fp8};

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole_text = failed == std::errc() && end == text.data() + text.size();
  return whole_text && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string_view table_name(Dtype dtype) {
  const auto found = std::ranges::find(kTableDtypes, dtype);
  assert(found != kTableDtypes.end() && "tables have no other");
  return kTableNames[static_cast<std::size_t>(found - kTableDtypes.begin())];
}

std::span<const Dtype> table_dtypes() { return kTableDtypes; }

std::string_view KernelRow::text(std::string_view column) const {
  const auto found = std::ranges::find(columns_, column);
  assert(found != columns_.end() && "readers ask for columns of their family");
  return cells_[static_cast<std::size_t>(found - columns_.begin())];
}

void KernelRow::refuse(std::string_view column, std::string_view allowed) {
  if (error_) return;
  error_ = fmt::format("column {}: found {}; allowed: {}", column, shown(text(column)), allowed);
}

double KernelRow::whole(std::string_view column, double least, double most) {
  const auto value = number_of(text(column));
  if (value && *value >= least && *value <= most && *value == std::floor(*value)) return *value;
  refuse(column, fmt::format("a whole number from {} to {}", least, most));
  return least;
}

Seconds KernelRow::latency() {
  const auto value = number_of(text("latency_us"));
  if (value && *value >= kShortestKernel && *value <= kLongestKernel) {
    return Seconds(*value * 1e-6);
  }
  refuse("latency_us", fmt::format("microseconds from {} to {}", kShortestKernel, kLongestKernel));
  return Seconds(1);
}

Dtype KernelRow::dtype() { return kTableDtypes[choice("dtype", kTableNames)]; }

std::size_t KernelRow::choice(std::string_view column, std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text(column));
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  refuse(column, fmt::format("{}", fmt::join(names, ", ")));
  return 0;
}

}  // namespace trainyard
