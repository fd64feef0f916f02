// An A100 and an H100 with the figures of their catalog documents. They are typed out here, so that
// the tests of the cost model do not depend on the catalog. The parameters of the GEMM and
// attention forms were fitted to the operator tables published with aiconfigurator.
#pragma once

#include "model/cluster/device.h"

namespace trainyard {

Device example_a100();
Device example_h100();

// A device on which every time can be computed by hand: 100 TFLOP/s for every GEMM and for
// attention, memory of 1 TB/s, no rounding up to waves of tiles, no launch times.
Device ideal_device();

}  // namespace trainyard
