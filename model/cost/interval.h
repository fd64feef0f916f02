// How far a real step and its peak of memory may lie from their estimates: the 10–90 % intervals of
// measured over predicted.
//
// That of the time starts from the residuals of published runs like those of the stack (catalog,
// with provenance), and widens, in logarithm, for each way in which a prediction leaves those runs:
// another device generation (or a device of none that has a name here), more devices, longer
// sequences, a kind of parallelism or of network none of them had; and on a device whose kernels
// nobody measured (Device::interval_widening). That of memory does not: published peaks are too few
// to say what widens it.
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

// One factor for each kind of step beyond the evidence; kPerDoubling is added for each doubling of
// the devices beyond the largest run, and of the sequence beyond the longest.
inline constexpr double kUnseenGeneration = 1.5;
inline constexpr double kUnseenParallelism = 1.25;  // tensor, pipeline or context parallel
inline constexpr double kPerDoubling = 0.1;

// How many times wider, in logarithm, than the interval of the stack's dense runs.
double interval_widening(const Job& job, const Plan& plan);

Interval step_interval(const Job& job, const Plan& plan);

// Of the peak of memory.
Interval memory_interval(const Stack& stack);

// Why it is wider than that of the stack's runs: "no published run of megatron-core had tensor
// parallelism", "no kernel of b200 was measured". Empty where it is not, and for a stack whose
// interval is a point.
std::vector<std::string> widening_reasons(const Job& job, const Plan& plan);

}  // namespace trainyard
