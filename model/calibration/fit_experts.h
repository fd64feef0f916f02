// Fits the expert parameters of a device to measured blocks of routed experts
// (model/cost/kernels/experts.h): robust least squares on log(predicted / measured) from several
// starts, then a smooth residual. Rows where a library chose a bad kernel (2–4 times slower than
// the same shape beside it) are outliers to both. Deterministic.
#pragma once

#include <functional>
#include <vector>

#include "model/calibration/kernel_samples.h"
#include "model/cluster/device.h"
#include "model/cost/kernels/experts.h"
#include "model/expected.h"

namespace trainyard {

// The block that a row of the tables is.
ExpertBlock expert_block(const ExpertSample& sample);

// Replaces the device's expert rates. `progress` is called with the fraction done.
Expected<void> fit_experts(Device& device, const std::vector<ExpertSample>& samples,
                           const std::function<void(double)>& progress);

}  // namespace trainyard
