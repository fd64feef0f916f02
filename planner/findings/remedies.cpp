#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/findings/explain.h"
#include "planner/findings/hardware.h"
#include "planner/offered.h"
#include "planner/passes/auto_schedule.h"
#include "planner/request.h"
#include "planner/search_space.h"

namespace trainyard {
namespace {

constexpr double kMore = 1.1;

void lower_latency(Job& job, double factor) {
  job.cluster.intra.latency /= factor;
  job.cluster.inter.latency /= factor;
  job.cluster.inter.small_latency /= factor;
  for (CollectiveCurve& curve : job.cluster.device.collectives) {
    curve.latency /= factor;
  }
}

void lower_host_time(Job& job, double factor) {
  Stack& stack = job.training.stack;
  job.cluster.device.rates.launch /= factor;
  stack.host_layer_forward /= factor;
  stack.host_moe_layer_forward /= factor;
  stack.host_microbatch /= factor;
  stack.step_overhead /= factor;
}

constexpr std::array kHardwareChanges = {
    HardwareChange{"10 % more FLOP/s", raise_flops},
    HardwareChange{"10 % more memory bandwidth", raise_memory_bandwidth},
    HardwareChange{"10 % more bandwidth inside the node", raise_link_bandwidth, true},
    HardwareChange{"10 % more network bandwidth", raise_network_bandwidth, true},
    HardwareChange{"10 % more bandwidth to the hosts", raise_host_bandwidth},
    HardwareChange{"10 % more host memory bandwidth", raise_host_memory_bandwidth},
    HardwareChange{"10 % more NVMe bandwidth", raise_nvme_bandwidth},
    HardwareChange{"10 % less network latency", lower_latency, true},
    HardwareChange{"10 % less host time", lower_host_time},
};

// Access to one number of a plan's request.
using NumberOf = int& (*)(PlanRequest& request);
template <int PlanRequest::*member>
int& number(PlanRequest& request) {
  return request.*member;
}
int& named_chunks(PlanRequest& request) {
  return *request.virtual_stages;
}  // request_of names them

// One step away from a plan.
struct Move {
  std::string_view key;  // printed with its new value
  NumberOf up;           // doubled or halved
  bool doubles;
  NumberOf down;  // the degree that makes room; nullptr: data parallelism does
};

constexpr std::array kMoves = {
    Move{"micro_batch", number<&PlanRequest::micro_batch>, true, nullptr},
    Move{"micro_batch", number<&PlanRequest::micro_batch>, false, nullptr},
    Move{"virtual_stages", named_chunks, true, nullptr},
    Move{"virtual_stages", named_chunks, false, nullptr},
    Move{"tensor_parallel", number<&PlanRequest::tensor_parallel>, true, nullptr},
    Move{"tensor_parallel", number<&PlanRequest::tensor_parallel>, false, nullptr},
    Move{"tensor_parallel", number<&PlanRequest::tensor_parallel>, true,
         number<&PlanRequest::pipeline_parallel>},
    Move{"tensor_parallel", number<&PlanRequest::tensor_parallel>, true,
         number<&PlanRequest::context_parallel>},
    Move{"context_parallel", number<&PlanRequest::context_parallel>, true, nullptr},
    Move{"context_parallel", number<&PlanRequest::context_parallel>, false, nullptr},
    Move{"pipeline_parallel", number<&PlanRequest::pipeline_parallel>, true, nullptr},
    Move{"pipeline_parallel", number<&PlanRequest::pipeline_parallel>, false, nullptr},
    Move{"pipeline_parallel", number<&PlanRequest::pipeline_parallel>, true,
         number<&PlanRequest::tensor_parallel>},
    Move{"expert_parallel", number<&PlanRequest::expert_parallel>, true, nullptr},
    Move{"expert_parallel", number<&PlanRequest::expert_parallel>, false, nullptr},
    Move{"expert_tensor_parallel", number<&PlanRequest::expert_tensor_parallel>, true, nullptr},
    Move{"expert_tensor_parallel", number<&PlanRequest::expert_tensor_parallel>, false, nullptr},
};

struct Neighbour {
  std::string change;
  PlanRequest request;
};

// Where the number of stages changes, their list of recomputations is dropped: all stages then have
// `recompute`, that of the stage that recomputes the most.
void drop_stages(Neighbour& next) {
  PlanRequest& request = next.request;
  if (request.recompute_per_stage.empty()) return;
  request.recompute_per_stage.clear();
  next.change += fmt::format(", recompute {}", name_of(request.recompute.mode));
}

bool halve(int& value) {
  const bool even = value % 2 == 0;
  value = even ? value / 2 : value;
  return even;
}

std::optional<Neighbour> moved(const Move& move, const PlanRequest& from) {
  Neighbour next{"", from};
  int& value = move.up(next.request);
  if (!move.doubles && !halve(value)) {
    return std::nullopt;
  }
  value = move.doubles ? 2 * value : value;
  next.change = fmt::format("{} {}", move.key, value);
  if (move.down != nullptr) {
    if (!halve(move.down(next.request))) {
      return std::nullopt;
    }
    const std::string_view other =
        move.down == number<&PlanRequest::pipeline_parallel> ? "pipeline_parallel"
        : move.down == number<&PlanRequest::tensor_parallel> ? "tensor_parallel"
                                                             : "context_parallel";
    next.change += fmt::format(" with {} {}", other, move.down(next.request));
  }
  // Data parallelism fills the cluster; the schedule follows the virtual stages.
  next.request.data_parallel.reset();
  next.request.sharding_group.reset();
  next.request.layers_per_stage.clear();
  if (move.up == named_chunks) {
    next.request.schedule.clear();
  }
  if (move.up == number<&PlanRequest::pipeline_parallel> ||
      move.down == number<&PlanRequest::pipeline_parallel>) {
    drop_stages(next);
  }
  return next;
}

// What the stack moves to the hosts under the plan's ZeRO stage, where all is on the device; else
// everything back.
void add_offloads(const Stack& stack, const Plan& plan, const PlanRequest& from,
                  std::vector<Neighbour>& result) {
  if (plan.offload != Offload{}) {
    result.push_back({"everything on the device", from});
    result.back().request.offload = {};
    return;
  }
  for (const OffloadChoice& choice : kOffloads) {
    if (choice.zero_stages == nullptr) continue;
    if (std::ranges::count(stack.offload.*choice.zero_stages, plan.zero_stage) == 0) continue;
    result.push_back({fmt::format("offload {}", choice.name), from});
    result.back().request.offload = choice.offload;
  }
}

// The request that neighbours are made from. Recomputation that was left to the program is chosen
// again for each of them: what fits this plan's memory is not what fits theirs.
PlanRequest start_of(const Plan& plan, const std::optional<PlanRequest>& asked) {
  PlanRequest from = request_of(plan);
  if (asked && asked->recompute.mode == RecomputeMode::automatic) {
    from.recompute = asked->recompute;
    from.recompute_per_stage.clear();
  }
  return from;
}

std::vector<Neighbour> neighbours(const Stack& stack, const Plan& plan, const PlanRequest& from) {
  std::vector<Neighbour> result;
  for (const Move& move : kMoves) {
    if (auto next = moved(move, from)) {
      result.push_back(*std::move(next));
    }
  }
  for (const int stage : {0, 1, 2, 3}) {
    if (stage != plan.zero_stage) {
      result.push_back({fmt::format("zero_stage {}", stage), from});
      result.back().request.zero_stage = stage;
    }
  }
  add_offloads(stack, plan, from, result);
  for (const RecomputeMode mode :
       {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
    if (mode != plan.recompute.mode || !plan.recompute_per_stage.empty()) {
      result.push_back({fmt::format("recompute {}", name_of(mode)), from});
      result.back().request.recompute = {.mode = mode};
      result.back().request.recompute_per_stage.clear();
    }
  }
  return result;
}

bool more_helpful(const Remedy& a, const Remedy& b) {
  if (a.fits != b.fits) {
    return a.fits;
  }
  return a.fits ? a.saved > b.saved : a.fullness < b.fullness;
}

Remedy remedy(std::string change, const Estimate& before, const Estimate& after) {
  return {.change = std::move(change),
          .saved = before.step_time - after.step_time,
          .fits = after.feasible,
          .peak_memory = after.peak_memory,
          .host_memory = after.host_memory,
          .fullness = after.fullness};
}

}  // namespace

std::vector<Remedy> hardware_remedies(const PreparedJob& job, const Candidate& candidate,
                                      const JobEvaluator& evaluate, const IsOver& is_over) {
  std::vector<Remedy> remedies;
  Estimate estimate;
  for (const HardwareChange& change : kHardwareChanges) {
    const auto done = static_cast<double>(remedies.size());
    if (is_over && is_over(done / std::size(kHardwareChanges))) return {};
    const PreparedJob with_more = changed(job, change, kMore);
    evaluate(with_more)(candidate.plan, estimate);
    remedies.push_back(remedy(std::string(change.name), candidate.estimate, estimate));
  }
  std::stable_sort(remedies.begin(), remedies.end(),
                   [](const Remedy& a, const Remedy& b) { return a.saved > b.saved; });
  return remedies;
}

std::vector<Remedy> plan_remedies(const PreparedJob& job, const Candidate& candidate,
                                  const Evaluator& evaluate, const IsOver& is_over,
                                  const std::optional<PlanRequest>& asked) {
  const Job& j = job.job;
  std::vector<Remedy> remedies;
  Estimate estimate;
  std::vector<Neighbour> all =
      neighbours(j.training.stack, candidate.plan, start_of(candidate.plan, asked));
  for (std::size_t i = 0; i < all.size(); ++i) {
    Neighbour& neighbour = all[i];
    const auto plan = complete_plan(job, neighbour.request);
    if (is_over && is_over(static_cast<double>(i) / static_cast<double>(all.size()))) return {};
    // Recomputation that the plan itself has was asked for by the scenario.
    const bool offered = plan && (offers_recompute(j.training.stack, *plan) ||
                                  !offers_recompute(j.training.stack, candidate.plan));
    if (offered) {
      evaluate(*plan, estimate);
      remedies.push_back(remedy(std::move(neighbour.change), candidate.estimate, estimate));
      remedies.back().request = std::move(neighbour.request);
    }
  }
  std::stable_sort(remedies.begin(), remedies.end(), more_helpful);
  return remedies;
}

}  // namespace trainyard
