// Resolves `"schedule": "auto"`. Candidates are a pass order found by search from the times of the
// plan's stages, their sends and their memory (planner/passes/pass_order.h), and every named
// schedule that the plan can have, with every number of chunks a stage where it names none. The
// fastest that fits is taken; that no better order exists is not proved.
#pragma once

#include <atomic>
#include <optional>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "planner/passes/pass_order.h"

namespace trainyard {

constexpr std::string_view kAutoSchedule = "auto";

// The plan of a request, with schedule and recompute `auto` decided by the analytic estimate.
// Errors are make_plan's.
Expected<Plan> complete_plan(const PreparedJob& job, const PlanRequest& request);

// The legal plans of a request under every named schedule that its software runs, with as many
// chunks a stage as the request names; where it names none, with every number that the layers (or
// its `layers_per_stage`) allow. The request's own schedule is ignored.
std::vector<Plan> named_plans(const Job& job, PlanRequest request);

// The problem of finding a pass order with one chunk a stage: from the plan's pass times, its sends
// and the memory of its stages. Activations are held until the weight gradient, as the memory model
// has it. Nothing where a stage cannot keep one micro-batch. Requires: one chunk a stage, from the
// first stage to the last.
std::optional<PassOrderProblem> pass_order_problem(const PreparedJob& job, const Plan& plan);

// Whether all stages wait for each other before the optimizer under a found order: as the request
// says, else as the stack does, unless that checks after the fact.
bool barrier_of_found_order(const Stack& stack, const PlanRequest& request);

// `plan` with the order that the search finds for its stages; nothing where there is none. Without
// a barrier the optimizer's checks are made after the fact, as zb-h2's are. Once `interrupted` is
// set, the search ends with the best order so far.
std::optional<Plan> with_found_order(const PreparedJob& job, const Plan& plan, bool barrier,
                                     const std::atomic<bool>* interrupted = nullptr);

}  // namespace trainyard
