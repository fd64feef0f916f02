// Which buffers of a program hold numbers in 8 bits, and in what format: what a cast writes, and
// what becomes of that where ranks gather it or copies take it somewhere else.
#pragma once

#include <vector>

#include "model/program/program.h"

namespace trainyard {

// By buffer.
std::vector<CastFormat> cast_formats(const Program& program);

}  // namespace trainyard
