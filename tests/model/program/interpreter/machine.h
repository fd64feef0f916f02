// A plain interpreter of programs for tests: one process runs all ranks in turn, in double
// precision. It obeys only the dependencies of the program (model/program/operation.h). With
// another seed, operations that are ready run in another order, and the result must not change.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "executor/holdings.h"
#include "executor/setting.h"
#include "model/program/program.h"

namespace trainyard::interpreter {

// Every element of the weights, or of their gradients, by its row and column in the unsharded
// network.
using Elements = std::map<TensorName, std::map<std::pair<std::int64_t, std::int64_t>, double>>;

// A change of one element of a weight by `by`, for finite differences.
struct Nudge {
  std::string_view weight;
  int layer = -1;
  std::int64_t row = 0, column = 0;
  double by = 0;
};

struct Outcome {
  std::string stuck;  // an operation that waits for ever; empty if the step ended
  double loss = 0;
  // The gradients as the optimizer reads them. Ranks that hold the same element must agree:
  // `disagreement` is the largest difference among them.
  Elements gradients;
  Elements weights;  // after the step
  double disagreement = 0;
};

// Runs one step. With `seed` 0, operations that are ready run in the program's order.
Outcome run(const Setting& setting, const Program& program, std::uint64_t seed = 0,
            const Nudge& nudge = {});

}  // namespace trainyard::interpreter
