// Fits a device's GEMM parameters to measured kernels (model/cost/kernels/gemm.h), one dtype at a
// time: robust least squares on log(predicted / measured) from several starts. If fp8 rows include
// the cast of the activation, its cost is fitted as a term of its own beside the GEMM's.
// Deterministic. Requires: all rows of a dtype include the cast, or none does.
#pragma once

#include <functional>
#include <vector>

#include "model/calibration/kernel_samples.h"
#include "model/cluster/device.h"
#include "model/expected.h"

namespace trainyard {

// Predicted time of a sample by the device's parameters: the GEMM, and the cast if the row has it.
Seconds gemm_sample_time(const Device& device, const GemmSample& sample);

// Replaces the GEMM rates of every dtype that has samples; fp16 follows bf16. `progress` is called
// with the fraction done.
Expected<void> fit_gemm(Device& device, const std::vector<GemmSample>& samples,
                        const std::function<void(double)>& progress);

}  // namespace trainyard
