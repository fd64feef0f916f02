#include "scenarios/kernel_limits.h"

#include <fmt/format.h>

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

}  // namespace

Expected<void> check_speeds(const Device& device, const std::vector<KernelTable>& tables) {
  for (const KernelTable& table : tables) {
    const std::vector<Seconds> measured = measured_times(table.samples);
    const std::vector<Seconds> least = table.family->least_times(device, table.samples);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const Seconds allowed = least[i] / kAboveDatasheet;
      if (measured[i] >= allowed) continue;
      return failure(
          fmt::format("{}: row {}", table.file, i + kFirstRow),
          fmt::format("column latency_us: found {:.6g}; allowed: from {:.4g}, {} times as fast as "
                      "the datasheet of {}",
                      measured[i].value() / kMicrosecond, allowed.value() / kMicrosecond,
                      kAboveDatasheet, device.name));
    }
  }
  return {};
}

}  // namespace trainyard
