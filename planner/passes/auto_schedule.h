// `"schedule": "auto"`: the pass order of a plan is found by search from what its stages take,
// their sends and their memory (planner/passes/pass_order.h), beside every named schedule that the
// plan can have, with every number of chunks a stage where it names none; the best that fits is
// taken. An improvement, not a proof: it comes with a bound.
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

// The plan of a request under the analytic estimate, with schedule and recompute `auto` decided.
// The errors are make_plan's.
Expected<Plan> complete_plan(const PreparedJob& job, const PlanRequest& request);

// The legal plans of a request under every named schedule that its software runs, with as many
// chunks a stage as the request names; where it names none, with every number that the layers (or
// its `layers_per_stage`) allow. The request's own schedule is left aside.
std::vector<Plan> named_plans(const Job& job, PlanRequest request);

// What a plan's stages, all of their memory and its sends leave to a pass order of one chunk a
// stage. Activations are held until the weight gradient, as the memory model has it. Nothing where
// a stage cannot keep one micro-batch. Requires: one chunk a stage, from the first stage to the
// last.
std::optional<PassOrderProblem> pass_order_problem(const PreparedJob& job, const Plan& plan);

// Whether stages wait for each other before the optimizer under an order that is found, where the
// request says nothing: as the stack has it, unless it checks after the fact.
bool barrier_of_found_order(const Stack& stack, const PlanRequest& request);

// `plan` with the order that the search finds for its stages; nothing where there is none. Without
// a barrier before the optimizer its checks are made after the fact, as zb-h2's are. Once the
// caller has `interrupted` the search: the best order so far.
std::optional<Plan> with_found_order(const PreparedJob& job, const Plan& plan, bool barrier,
                                     const std::atomic<bool>* interrupted = nullptr);

}  // namespace trainyard
