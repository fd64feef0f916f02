// What `trainyard calibrate` says of its measurements: how many, how certain, how well the fitted
// device gives them back.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/text/layout/style.h"
#include "executor/measure/calibration.h"
#include "executor/measure/measure_collectives.h"

namespace trainyard {

// Points of all kinds in one list, with what the fitted device makes of those it prices.
struct ScoredPoint {
  MeasuredPoint point;
  double predicted = 0;  // s; 0: not a time that the device has
};
std::vector<ScoredPoint> scored_points(const Device& device, const HostSamples& host,
                                       std::span<const TimedCollective> collectives);

// Those among all ranks of several hosts, with what `host`'s fitted fabric makes of them.
void add_points_across(const Cluster& host, std::span<const TimedCollective> collectives,
                       std::vector<ScoredPoint>& points);

std::string calibration_table(std::span<const ScoredPoint> points, const Style& style);
// A row for each point.
std::string calibration_csv(std::span<const ScoredPoint> points);

}  // namespace trainyard
