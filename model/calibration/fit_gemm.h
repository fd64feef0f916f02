// Fits the GEMM parameters of a device to measured kernels (model/cost/kernels/gemm.h), a dtype at
// a time: robust least squares on log(predicted / measured) from several starts. Rows in fp8 that
// carry the cast of the activation have its cost fitted beside the GEMM's and kept out of it.
// Requires: all rows of a dtype do, or none. Deterministic.
#pragma once

#include <functional>
#include <vector>

#include "model/calibration/kernel_samples.h"
#include "model/cluster/device.h"
#include "model/expected.h"

namespace trainyard {

// What the table's row takes by the device's parameters: the GEMM, in fp8 with the cast.
Seconds gemm_sample_time(const Device& device, const GemmSample& sample);

// Replaces the GEMM rates of every dtype that has samples; fp16 follows bf16. `progress` is called
// with the fraction done.
Expected<void> fit_gemm(Device& device, const std::vector<GemmSample>& samples,
                        const std::function<void(double)>& progress);

}  // namespace trainyard
