#include "scenarios/kernel_limits.h"

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

std::string wrong_dtype(const Device& device, Dtype dtype) {
  std::string allowed;
  for (const Dtype other : table_dtypes()) {
    if (device.peak_of(other) > FlopsPerSecond(0)) {
      allowed += fmt::format("{}, ", table_name(other));
    }
  }
  return fmt::format("column dtype: found \"{}\"; allowed: {}the dtypes of {}", table_name(dtype),
                     allowed, device.name);
}

// What a row cannot be; nothing: it can.
std::optional<std::string> impossible(const Device& device, const KernelRoofs& roofs,
                                      Seconds measured) {
  if (roofs.dtype && device.peak_of(*roofs.dtype) <= FlopsPerSecond(0)) {
    return wrong_dtype(device, *roofs.dtype);
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
    if (const auto found = impossible(device, roofs[i], measured[i])) {
      return failure(fmt::format("{}: row {}", table.file, i + kFirstRow), *found);
    }
  }
  return {};
}

}  // namespace trainyard
