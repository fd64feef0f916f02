// Lowers a plan to the program of its step. Communication is what handbook §4 and §9 list:
// tensor-parallel collectives around each pair of GEMMs, sends in the order of the schedule's pass
// list, and gradient reductions after a chunk's last backward pass, which they overlap if the plan
// overlaps data parallelism.
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
