#include "scenarios/kernel_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>

#include "scenarios/json_document.h"

namespace trainyard {
namespace {

constexpr double kLargestWhole = 1e15;  // whole numbers up to it are exact
// Microseconds. One load from memory alone takes a third of one: what is shorter is no kernel.
constexpr double kShortestKernel = 0.1, kLongestKernel = 1e12;

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole_text = failed == std::errc() && end == text.data() + text.size();
  return whole_text && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string_view KernelRow::text(std::string_view column) const {
  const auto found = std::ranges::find(columns_, column);
  assert(found != columns_.end() && "readers ask for columns of their family");
  return cells_[static_cast<std::size_t>(found - columns_.begin())];
}

void KernelRow::refuse(std::string_view column, std::string_view allowed) {
  if (error_) return;
  error_ = fmt::format("column {}: found {}; allowed: {}", column, shown(text(column)), allowed);
}

double KernelRow::whole(std::string_view column, double least) {
  const auto value = number_of(text(column));
  if (value && *value >= least && *value <= kLargestWhole && *value == std::floor(*value))
    return *value;
  refuse(column, fmt::format("a whole number from {} to {}", least, kLargestWhole));
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

Dtype KernelRow::dtype() {
  static constexpr std::array<std::string_view, 4> kNames = {"bfloat16", "float16", "float32",
                                                             "fp8"};
  static constexpr std::array<Dtype, 4> kDtypesOfNames = {Dtype::bf16, Dtype::fp16, Dtype::fp32,
                                                          Dtype::fp8};
  return kDtypesOfNames[choice("dtype", kNames)];
}

std::size_t KernelRow::choice(std::string_view column, std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text(column));
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  refuse(column, fmt::format("{}", fmt::join(names, ", ")));
  return 0;
}

}  // namespace trainyard
