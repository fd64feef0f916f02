// Two devices with the figures of their catalog documents, typed out so that the cost model's tests
// stand on their own: parameters of the GEMM and attention forms were fitted to the operator tables
// published with aiconfigurator.
#pragma once

#include "model/cluster/device.h"

namespace trainyard {

Device example_a100();
Device example_h100();

// A device on which every time can be worked out by hand: 100 TFLOP/s for every GEMM and attention
// tile, 1 TB/s, one multiprocessor's worth of rounding switched off, no launch times.
Device ideal_device();

}  // namespace trainyard
