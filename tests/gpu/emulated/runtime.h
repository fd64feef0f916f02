// Of the emulated device what tests change.
#pragma once

#include <cstddef>

namespace trainyard {

void set_emulated_memory(std::size_t bytes);

}  // namespace trainyard
