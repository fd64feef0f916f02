// From a plan to the program of its step. Communication is what the handbook lists (§4, §9):
// tensor-parallel collectives around each pair of GEMMs, sends as the schedule's pass list has
// them, gradient reduction after a chunk's last backward pass (beside it where the plan overlaps).
#pragma once

#include "model/expected.h"
#include "model/plan/plan.h"
#include "model/program/program.h"
#include "model/workload/training.h"
#include "model/workload/transformer.h"

namespace trainyard {

// Requires: `plan` comes from make_plan for this network and training, recompute `auto` decided.
Expected<Program> lower(const Transformer& model, const Training& training, const Plan& plan);

}  // namespace trainyard
