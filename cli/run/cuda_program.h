// Runs the program that is linked with CUDA's libraries, which lies beside this one.
#pragma once

#include <optional>

#include "model/expected.h"

namespace trainyard {

// Replaces this process by that program, with the same arguments. Returns only where this program
// has CUDA already, or where it fails; the error says why.
std::optional<Error> become_cuda_program();

}  // namespace trainyard
