// Fits the attention parameters of a device to measured context-phase kernels
// (model/cost/kernels/attention.h): for each head dimension, with and without a window, robust
// least squares on log(predicted / measured) from several starts and tile heights, then a smooth
// residual. Deterministic.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "model/calibration/kernel_samples.h"
#include "model/cluster/device.h"
#include "model/expected.h"

namespace trainyard {

// Of a head dimension; with fewer rows it is not fitted.
inline constexpr std::size_t kLeastAttentionSamples = 20;

// Replaces the device's attention rates. `progress` is called with the fraction done.
Expected<void> fit_attention(Device& device, const std::vector<AttentionSample>& samples,
                             const std::function<void(double)>& progress);

}  // namespace trainyard
