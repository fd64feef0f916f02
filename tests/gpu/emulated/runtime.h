// Of the emulated device what tests change.
#pragma once

#include <cstddef>

namespace trainyard {

void set_emulated_memory(std::size_t bytes);
void set_emulated_capability(int major);  // 10 at the start
// Matrix products in 8 bits since the start; `fast`: with CUBLASLT_MATMUL_DESC_FAST_ACCUM.
struct NarrowProducts {
  int all = 0, fast = 0;
  int of_e4m3 = 0;  // both operands
  int fast_of_e5m2 = 0;
};
NarrowProducts emulated_narrow_products();

}  // namespace trainyard
