// Fits a device's expert parameters to measured blocks of routed experts
// (model/cost/kernels/experts.h): robust least squares on log(predicted / measured) from several
// starts, then a smooth residual. Both treat as outliers the rows where a library chose a bad
// kernel (2–4 times slower than neighbouring shapes). Deterministic.
#pragma once

#include <functional>
#include <vector>

#include "model/calibration/kernel_samples.h"
#include "model/cluster/device.h"
#include "model/cost/kernels/experts.h"
#include "model/expected.h"

namespace trainyard {

// The block of routed experts that a row of the tables measured.
ExpertBlock expert_block(const ExpertSample& sample);

// Replaces the device's expert rates. `progress` is called with the fraction that is done.
Expected<void> fit_experts(Device& device, const std::vector<ExpertSample>& samples,
                           const std::function<void(double)>& progress);

}  // namespace trainyard
