// Fits a device's attention parameters to measured context-phase kernels
// (model/cost/kernels/attention.h). Each head dimension, with and without a window, has a fit of
// its own: robust least squares on log(predicted / measured) from several starts and tile heights,
// then a smooth residual. Deterministic.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "model/calibration/kernel_samples.h"
#include "model/cluster/device.h"
#include "model/expected.h"

namespace trainyard {

// The fewest rows for which a head dimension is fitted.
inline constexpr std::size_t kLeastAttentionSamples = 20;

// Replaces the device's attention rates. `progress` is called with the fraction done.
Expected<void> fit_attention(Device& device, const std::vector<AttentionSample>& samples,
                             const std::function<void(double)>& progress);

}  // namespace trainyard
