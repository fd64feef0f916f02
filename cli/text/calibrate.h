// What `trainyard calibrate` prints of its measurements: how many there are, how certain they are,
// and how well the fitted device reproduces them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/text/layout/style.h"
#include "executor/measure/calibration.h"
#include "executor/measure/measure_collectives.h"

namespace trainyard {

// A measured point, with the time that the fitted device predicts.
struct ScoredPoint {
  MeasuredPoint point;
  double predicted = 0;  // s; 0: the device prices no such operation
};
std::vector<ScoredPoint> scored_points(const Device& device, const HostSamples& host,
                                       std::span<const TimedCollective> collectives);

// Adds the points measured among all ranks of several hosts, with the predictions of `host`'s
// fitted fabric.
void add_points_across(const Cluster& host, std::span<const TimedCollective> collectives,
                       std::vector<ScoredPoint>& points);

std::string calibration_table(std::span<const ScoredPoint> points, const Style& style);
// A row for each point.
std::string calibration_csv(std::span<const ScoredPoint> points);

}  // namespace trainyard
