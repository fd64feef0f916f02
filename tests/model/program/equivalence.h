// What every lowering must keep: the sharded program is the unsharded one, and that has the
// gradients of its own loss.
#pragma once

#include <cstdint>
#include <string>

#include "tests/model/program/interpreter/machine.h"
#include "tests/model/program/tiny.h"

namespace trainyard {

// One rank; as many micro-batches as the batch has sequences over `micro_batch`.
PlanRequest unsharded(int micro_batch);

// The plan lowered, checked and run.
interpreter::Outcome run_lowered(const Setting& setting, std::uint64_t seed = 0,
                                 const interpreter::Nudge& nudge = {});

// Same loss, same gradients, same weights after the step, to rounding. With another seed operations
// run in another order that their dependencies allow. Not every case under sanitizers.
void expect_equivalent(const Setting& setting, const std::string& what, std::uint64_t seed = 0);

// Against finite differences, for some elements of every weight.
void expect_gradients_of_loss(const Setting& setting);

}  // namespace trainyard
