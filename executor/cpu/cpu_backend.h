// The host as a device. Every buffer is a matrix of floats, and every operation runs when it is
// launched, one after the other, so streams have nothing to wait for. What the program stores in
// bf16 or fp16 is rounded to it (to nearest even) after each operation; messages carry floats.
#pragma once

#include <memory>

#include "executor/backend.h"
#include "executor/setting.h"
#include "executor/transport/transport.h"

namespace trainyard {

// The backend of one rank, that of `transport`. Requires: all arguments outlive it.
std::unique_ptr<Backend> make_cpu_backend(const Setting& setting, const Program& program,
                                          const RankLayout& layout, Transport& transport);

}  // namespace trainyard
