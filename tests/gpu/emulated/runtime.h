// Of the emulated device what tests change.
#pragma once

#include <cstddef>

namespace trainyard {

void set_emulated_memory(std::size_t bytes);
void set_emulated_capability(int major);  // 10 at the start
// Matrix products in 8 bits since the start.
int emulated_narrow_products();

}  // namespace trainyard
