// Which buffers of a program hold numbers in 8 bits, and in what format: those that a cast writes,
// and those that an all-gather, a copy or a move makes of them.
#pragma once

#include <vector>

#include "model/program/program.h"

namespace trainyard {

// The format of each buffer of the program; none where it holds wider numbers.
std::vector<CastFormat> cast_formats(const Program& program);

}  // namespace trainyard
