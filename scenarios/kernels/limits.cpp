#include "scenarios/kernels/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace trainyard {
namespace {

constexpr std::size_t kFirstRow = 2;  // of a table; the header is row 1
constexpr double kMicrosecond = 1e-6;

std::vector<Seconds> measured_times(const KernelSamples& samples) {
  return std::visit(
      [](const auto& rows) {
        std::vector<Seconds> times;
        times.reserve(rows.size());
        for (const auto& row : rows) times.push_back(row.time);
        return times;
      },
      samples);
}

bool has_peak(const Device& device, Dtype dtype) {
  return device.peak_of(dtype) > FlopsPerSecond(0);
}

bool is_half(Dtype dtype) { return dtype == Dtype::fp16 || dtype == Dtype::bf16; }

// Whether a family's tables may be in this dtype. A family with one rate for all dtypes has the
// rate of 16-bit kernels (Device::rate_over_measured), or of fp32 on a device without these.
bool may_be_fitted(const Device& device, const KernelFamily& family, Dtype dtype) {
  if (!has_peak(device, dtype)) return false;
  if (!family.one_rate || is_half(dtype)) return true;
  return dtype == Dtype::fp32 && !has_peak(device, Dtype::fp16) && !has_peak(device, Dtype::bf16);
}

std::string wrong_dtype(const Device& device, const KernelFamily& family, Dtype dtype) {
  std::string allowed;
  for (const Dtype other : table_dtypes()) {
    if (may_be_fitted(device, family, other)) allowed += fmt::format("{}, ", table_name(other));
  }
  const std::string_view whose =
      family.one_rate ? "of whose times those of other dtypes are made, on" : "the dtypes of";
  return fmt::format("column dtype: found \"{}\"; allowed: {}{} {}", table_name(dtype), allowed,
                     whose, device.name);
}

// Why a row is impossible; none: it is possible.
std::optional<std::string> impossible(const Device& device, const KernelFamily& family,
                                      const KernelRoofs& roofs, Seconds measured) {
  if (roofs.dtype && !may_be_fitted(device, family, *roofs.dtype)) {
    return wrong_dtype(device, family, *roofs.dtype);
  }
  if (roofs.least <= Seconds(0)) return std::nullopt;
  const Seconds least = roofs.least / kAboveDatasheet;
  if (measured < least) {
    return fmt::format(
        "column latency_us: found {:.10g}; allowed: from {:.4g}, {} times as fast as the datasheet "
        "of {}",
        measured.value() / kMicrosecond, least.value() / kMicrosecond, kAboveDatasheet,
        device.name);
  }
  const Seconds most = kAboveRoofs * (std::max(roofs.least, roofs.memory) + kRoofLaunch);
  if (measured <= most) return std::nullopt;
  return fmt::format(
      "column latency_us: found {:.10g}; allowed: to {:.0f}, {} times what a launch of {:.4g} us "
      "and "
      "the datasheet of {} come to",
      measured.value() / kMicrosecond, most.value() / kMicrosecond, kAboveRoofs,
      kRoofLaunch.value() / kMicrosecond, device.name);
}

}  // namespace

Expected<void> check_rows(const Device& device, const KernelTable& table) {
  const std::vector<Seconds> measured = measured_times(table.samples);
  const std::vector<KernelRoofs> roofs = table.family->roofs(device, table.samples);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (const auto found = impossible(device, *table.family, roofs[i], measured[i])) {
      return failure(fmt::format("{}: row {}", table.file, i + kFirstRow), *found);
    }
  }
  return {};
}

}  // namespace trainyard
