// CUDA's libraries are linked into a program of their own, beside this one.
#pragma once

#include <optional>

#include "model/expected.h"

namespace trainyard {

// Where this program is not linked with CUDA, it becomes the one that is, with the same arguments;
// returns only where it need not or cannot. The error says why not.
std::optional<Error> become_cuda_program();

}  // namespace trainyard
