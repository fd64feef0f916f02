#include "scenarios/unlike_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "model/cost/estimate.h"
#include "model/cost/interval.h"
#include "model/cost/money.h"
#include "planner/request.h"

namespace trainyard {
namespace {

using Groups = std::vector<bool>;

Groups used_by(const GroupedPlan& plan) {
  Groups used;
  used.reserve(plan.shares.size());
  for (const GroupShare& share : plan.shares) used.push_back(share.stages > 0);
  return used;
}

int used_devices(const UnlikeCluster& cluster, const Groups& used) {
  int devices = 0;
  for (std::size_t g = 0; g < used.size(); ++g)
    devices += used[g] ? cluster.groups[g].devices() : 0;
  return devices;
}

// The group's nodes, as many as the plan uses of all.
Cluster stand_in_cluster(const UnlikeCluster& cluster, const Groups& used, std::size_t group) {
  Cluster whole = cluster.groups[group];
  whole.nodes = used_devices(cluster, used) / whole.devices_per_node;
  return whole;
}

// All replicas, whatever they hold.
Plan whole_plan(const GroupedPlan& found) {
  Plan plan = found.plan;
  if (found.use != GroupUse::replicas) return plan;
  plan.data_parallel = 0;
  for (const GroupShare& share : found.shares) plan.data_parallel += share.replicas;
  return plan;
}

// ---- What is paid for ----------------------------------------------------------------------

// What a device computes of one step. `plan` on `job`: as the group's own stages see it.
Seconds computing(const PreparedJob& job, const Plan& plan, int first_stage, int stages) {
  const Estimate priced = estimate(job, plan);
  Seconds busy;
  for (int stage = first_stage; stage < first_stage + stages; ++stage) {
    const Breakdown& parts = priced.stages[static_cast<std::size_t>(stage)].exposed;
    busy += (parts.compute + parts.embedding_head + parts.recompute) / stages;
  }
  return busy * plan.microbatches + priced.breakdown.optimizer;
}

// The first group's plan for the replicas of `group`. Absent where it is not legal there.
std::optional<Plan> plan_of_replicas(const PreparedJob& job, const GroupedPlan& found,
                                     std::size_t group) {
  const GroupShare& share = found.shares[group];
  PlanRequest request = request_of(found.plan);
  request.data_parallel = share.replicas;
  request.sharding_group.reset();
  Training training = job.job.training;  // any number of micro-batches, as of the other group's
  training.global_batch = std::int64_t{share.replicas} * request.micro_batch;
  auto plan = plan_if_legal(request, job.job.model, job.job.cluster, training);
  if (plan) plan->microbatches = share.microbatches;
  return plan;
}

std::optional<Seconds> busy_of(const GroupedJob& job, const GroupedPlan& found, std::size_t group) {
  const bool pipeline = found.use == GroupUse::pipeline;
  Groups held = used_by(found);
  if (!pipeline) {
    held.assign(held.size(), false);
    held[group] = true;
  }
  const PreparedJob own =
      prepare({job.model, stand_in_cluster(job.cluster, held, group), job.training});
  const int stages = found.shares[group].stages;
  if (pipeline) {
    int first = 0;
    for (auto g = found.order.begin(); *g != group; ++g) first += found.shares[*g].stages;
    return computing(own, found.plan, first, stages);
  }
  if (found.use == GroupUse::alone) return computing(own, found.plan, 0, stages);
  const auto plan = plan_of_replicas(own, found, group);
  return plan ? std::optional(computing(own, *plan, 0, stages)) : std::nullopt;
}

std::optional<Joules> energy_of_groups(const GroupedJob& job, const GroupedPlan& found) {
  const Groups used = used_by(found);
  Joules sum;
  for (std::size_t g = 0; g < used.size(); ++g) {
    if (!used[g]) continue;
    const auto busy = busy_of(job, found, g);
    if (!busy) return std::nullopt;
    const auto energy =
        energy_of(job.cluster.groups[g], found.step_time, std::min(*busy, found.step_time));
    if (!energy) return std::nullopt;
    sum += *energy;
  }
  return sum;
}

// Price and power of the used groups' devices on average; unknown where one of them is.
void average_device(const UnlikeCluster& cluster, const Groups& used, Cluster& stand_in) {
  const double devices = used_devices(cluster, used);
  std::optional<DollarsPerSecond> price = DollarsPerSecond(0);
  Watts power;
  bool powered = true;
  for (std::size_t g = 0; g < used.size(); ++g) {
    if (!used[g]) continue;
    const Device& device = cluster.groups[g].device;
    const double share = cluster.groups[g].devices() / devices;
    price = price && device.price ? std::optional(*price + *device.price * share) : std::nullopt;
    powered = powered && device.power > Watts(0);
    power += device.power * share;
  }
  stand_in.device.price = price;
  stand_in.device.power = powered ? power : Watts(0);
}

// ---- The answer ----------------------------------------------------------------------------

// Model FLOP of a step over what the used devices have at their peak.
double utilisation(const GroupedJob& job, const Groups& used, Flops flop, Seconds step,
                   FlopsPerSecond (*peak_of)(const Device&, const Training&)) {
  FlopsPerSecond peak;
  for (std::size_t g = 0; g < used.size(); ++g) {
    const Cluster& cluster = job.cluster.groups[g];
    if (used[g])
      peak += peak_of(cluster.device, job.training) * static_cast<double>(cluster.devices());
  }
  return flop / step / peak;
}

FlopsPerSecond peak_of_recipe(const Device& device, const Training& training) {
  return device.peak_of(training.precision.layer_gemm);
}

FlopsPerSecond peak_of_half(const Device& device, const Training& /*training*/) {
  return std::max(device.peak_of(Dtype::bf16), device.peak_of(Dtype::fp16));
}

Estimate estimate_of_groups(const GroupedJob& job, const GroupedPlan& found,
                            const PreparedJob& stand_in) {
  const Groups used = used_by(found);
  const double tokens = static_cast<double>(job.training.global_batch) *
                        static_cast<double>(job.training.sequence_length);
  const Interval interval = step_interval(stand_in.job, found.plan);
  Estimate all;
  all.step_time = found.step_time;
  all.step_time_low = found.step_time * interval.low;
  all.step_time_high = found.step_time * interval.high;
  all.tokens_per_second = tokens / found.step_time.value();
  all.model_flops_per_device =
      stand_in.model_flop / found.step_time / static_cast<double>(used_devices(job.cluster, used));
  all.mfu = utilisation(job, used, stand_in.model_flop, found.step_time, peak_of_recipe);
  all.mfu_bf16 = utilisation(job, used, stand_in.model_flop, found.step_time, peak_of_half);
  for (const GroupShare& share : found.shares) {
    all.peak_memory = std::max(all.peak_memory, share.peak_memory);
  }
  all.feasible = found.feasible;
  all.cost_per_step = cost_of(stand_in.job.cluster, found.step_time);
  all.energy_per_step = energy_of_groups(job, found);
  return all;
}

// On the nodes of the group whose checkpoints and restarts leave the job less of its time.
PreparedJob stand_in_of(const GroupedJob& job, const GroupedPlan& found, const Scenario& settings) {
  const Groups used = used_by(found);
  const Plan plan = whole_plan(found);
  std::optional<PreparedJob> worst;
  double least = 0;
  for (std::size_t g = 0; g < used.size(); ++g) {
    if (!used[g]) continue;
    Cluster cluster = stand_in_cluster(job.cluster, used, g);
    average_device(job.cluster, used, cluster);
    PreparedJob one = prepare({job.model, std::move(cluster), job.training});
    const double goodput =
        estimate_goodput(one, plan, settings.reliability, settings.checkpoint).goodput;
    if (worst && goodput >= least) continue;
    worst = std::move(one);
    least = goodput;
  }
  return *std::move(worst);
}

// Without so many nodes of one group; infinite where that is all of them, or nothing fits.
Seconds step_without(GroupedJob job, std::size_t group, int lost) {
  constexpr Seconds kNever(std::numeric_limits<double>::infinity());
  Cluster& cluster = job.cluster.groups[group];
  if (cluster.nodes <= lost) return kNever;
  cluster.nodes -= lost;
  const std::vector<GroupedPlan> plans = in_order(plan_groups(job));
  return plans.empty() ? kNever : plans.front().step_time;
}

}  // namespace

Error not_for_groups(std::string_view where, std::string_view found, std::string_view allowed) {
  return {std::string(where),
          fmt::format("found {} with groups of unlike nodes; allowed: {}", found, allowed)};
}

Error plan_of_groups() { return not_for_groups("/plan", "a plan", "none: the planner finds it"); }

Expected<UnlikeAnswer> answer_of_groups(const GroupedJob& job, const Scenario& settings,
                                        const GroupSearchOptions& options) {
  if (settings.plan) return tl::unexpected(plan_of_groups());
  const std::vector<GroupedPlan> plans = in_order(plan_groups(job, options));
  if (plans.empty()) {
    return failure("/cluster/groups",
                   "found no plan that fits, neither through several groups nor on one of them; "
                   "allowed: devices whose memory holds the job");
  }
  UnlikeAnswer answer{.best = plans.front(), .stand_in = {}, .candidate = {}};
  answer.stand_in = stand_in_of(job, answer.best, settings);
  answer.candidate = {
      whole_plan(answer.best), estimate_of_groups(job, answer.best, answer.stand_in), {}};
  return answer;
}

std::vector<Replan> replans_of_groups(const GroupedJob& job, const UnlikeAnswer& answer,
                                      const std::vector<int>& nodes_left) {
  const Groups used = used_by(answer.best);
  const int nodes = answer.stand_in.job.cluster.nodes;
  std::vector<Replan> replans;
  replans.reserve(nodes_left.size());
  for (const int left : nodes_left) {
    Seconds step;
    for (std::size_t g = 0; g < used.size(); ++g) {
      if (used[g]) step = std::max(step, step_without(job, g, nodes - left));
    }
    replans.push_back({left, std::min(1.0, answer.best.step_time / step)});
  }
  std::erase_if(replans, [](const Replan& replan) { return replan.speed <= 0; });
  return replans;
}

}  // namespace trainyard
