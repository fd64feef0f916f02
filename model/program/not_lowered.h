// Plans that the lowering cannot express yet. Internal to model/program.
#pragma once

#include <optional>

#include "model/expected.h"
#include "model/plan/plan.h"
#include "model/workload/training.h"

namespace trainyard {

// The first thing in the way; nothing: the plan can be lowered.
std::optional<Error> not_lowered(const Training& training, const Plan& plan);

}  // namespace trainyard
