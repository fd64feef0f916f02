// A plain interpreter of programs: one process, all ranks in turn, double precision. It obeys
// nothing but the program's own dependencies (model/program/operation.h), in any order that they
// allow: with another seed ready operations run in another order, and the result may not change.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "executor/holdings.h"
#include "executor/setting.h"
#include "model/program/program.h"

namespace trainyard::interpreter {

// The numbers of all weights, or of their gradients, in the unsharded network, by row and column.
using Elements = std::map<TensorName, std::map<std::pair<std::int64_t, std::int64_t>, double>>;

// One element of a weight that is looked at more closely: moved by `by`.
struct Nudge {
  std::string_view weight;
  int layer = -1;
  std::int64_t row = 0, column = 0;
  double by = 0;
};

struct Outcome {
  std::string stuck;  // what waits for ever; empty: the step ended
  double loss = 0;
  // As the optimizer finds them. Ranks that hold the same element must agree: `disagreement` is
  // the largest difference among them.
  Elements gradients;
  Elements weights;  // after the step
  double disagreement = 0;
};

// `seed` 0: in the order of the program.
Outcome run(const Setting& setting, const Program& program, std::uint64_t seed = 0,
            const Nudge& nudge = {});

}  // namespace trainyard::interpreter
