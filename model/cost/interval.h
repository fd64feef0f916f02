// How far a real step and its peak of memory may lie from their estimates: the 10–90 % intervals of
// measured over predicted.
//
// The interval of the time starts from the residuals of the stack's published runs (catalog, with
// provenance). Its logarithm is multiplied by a factor for each way in which a prediction leaves
// those runs: another device generation (or a device of no generation named here), more devices,
// longer sequences, a kind of parallelism or of network that none of them had, and a device whose
// kernels nobody measured (Device::interval_widening). Example: 0.9 … 1.1 becomes 0.85 … 1.15 on a
// generation that no run had (kUnseenGeneration). The interval of memory does not widen: published
// peaks are too few to say what would widen it.
//
// Calibrated leave-one-source-out (model/calibration/interval_fit.h, docs/accuracy.md).
#pragma once

#include <string>
#include <vector>

#include "model/cluster/device.h"
#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// Factors on what is estimated. low ≤ 1 ≤ high.
struct Interval {
  double low = 1;
  double high = 1;
};

// Factors on the logarithm of the interval, one for each way beyond the stack's runs. Devices
// beyond the largest run and a sequence beyond the longest give 1 + kPerDoubling·log₂(ratio) each.
inline constexpr double kUnseenGeneration = 1.5;
inline constexpr double kUnseenParallelism = 1.25;  // tensor, pipeline or context parallel
// Assumed: between nodes, where no run of its stack was. ZeRO-3 by DeepSpeed of 2021 took 1.5 to 4
// times its estimate on 384 to 2,240 A100 (Narayanan et al. 2021, table 2), and this covers those
// of 384 and 640.
inline constexpr double kUnseenNetwork = 3;
inline constexpr double kPerDoubling = 0.1;

// Product of these factors: how many times wider, in logarithm, the interval is than that of the
// stack's dense runs.
double interval_widening(const Job& job, const Plan& plan);

Interval step_interval(const Job& job, const Plan& plan);

// Interval of the peak of memory.
Interval memory_interval(const Stack& stack);

// Why step_interval() is wider than that of the stack's runs: "no published run of megatron-core
// had tensor parallelism", "no kernel of b200 was measured". Empty where it is not wider, and for a
// stack whose interval is a point.
std::vector<std::string> widening_reasons(const Job& job, const Plan& plan);

}  // namespace trainyard
