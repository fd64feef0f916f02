// The two laws of every lowering, checked with the interpreter: a sharded program computes what the
// unsharded program computes, and the gradients of the unsharded program are those of its own loss.
#pragma once

#include <cstdint>
#include <string>

#include "tests/model/program/interpreter/machine.h"
#include "tests/model/program/tiny.h"

namespace trainyard {

// A plan on one rank; the batch is cut into micro-batches of `micro_batch` sequences.
PlanRequest unsharded(int micro_batch);

// Lowers the plan, checks its program and interprets it.
interpreter::Outcome run_lowered(const Setting& setting, std::uint64_t seed = 0,
                                 const interpreter::Nudge& nudge = {});

// Expects the plan to give the loss, the gradients and the weights after the step that one rank
// gives, to rounding. A `seed` other than 0 runs the operations in another order that their
// dependencies allow. Some cases are skipped under sanitizers.
void expect_equivalent(const Setting& setting, const std::string& what, std::uint64_t seed = 0);

// Compares gradients with finite differences of the loss, for some elements of every weight.
void expect_gradients_of_loss(const Setting& setting);

}  // namespace trainyard
