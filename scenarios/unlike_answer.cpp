#include "scenarios/unlike_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "model/cost/estimate.h"
#include "model/cost/interval.h"
#include "planner/heterogeneous/value.h"
#include "scenarios/question.h"

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

// A cluster of the group's nodes with as many devices as the plan uses in all groups.
Cluster stand_in_cluster(const UnlikeCluster& cluster, const Groups& used, std::size_t group) {
  const Cluster& own = cluster.groups[group];
  return with_nodes(own, used_devices(cluster, used) / own.devices_per_node);
}

// Sets the mean price and power of the used groups' devices; unknown if one of them is unknown.
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

// MFU: model FLOP of a step over the peak of all used devices.
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
  Estimate all;
  all.step_time = found.step_time;
  all.step_time_low = found.step_time_low;
  all.step_time_high = found.step_time_high;
  all.tokens_per_second = tokens / found.step_time.value();
  all.model_flops_per_device =
      stand_in.model_flop / found.step_time / static_cast<double>(used_devices(job.cluster, used));
  all.mfu = utilisation(job, used, stand_in.model_flop, found.step_time, peak_of_recipe);
  all.mfu_bf16 = utilisation(job, used, stand_in.model_flop, found.step_time, peak_of_half);
  for (const GroupShare& share : found.shares) {
    all.peak_memory = std::max(all.peak_memory, share.peak_memory);
  }
  const Interval memory = memory_interval(job.training.stack);
  all.peak_memory_low = all.peak_memory * memory.low;
  all.peak_memory_high = all.peak_memory * memory.high;
  all.feasible = found.feasible;
  all.cost_per_step = found.cost_per_step;
  all.energy_per_step = found.energy_per_step;
  return all;
}

// The stand-in on the nodes of the group whose checkpoints and restarts cost the job most time.
PreparedJob stand_in_of(const GroupedJob& job, const GroupedPlan& found, const Scenario& settings) {
  const Groups used = used_by(found);
  std::vector<PreparedJob> all;
  for (std::size_t g = 0; g < used.size(); ++g) {
    if (!used[g]) continue;
    Cluster cluster = stand_in_cluster(job.cluster, used, g);
    average_device(job.cluster, used, cluster);
    all.push_back(prepare({job.model, std::move(cluster), job.training}));
  }
  const LeastGoodput least =
      least_goodput(all, plan_of_all(found), found.step_time, group_options(settings).valuation);
  return std::move(all[least.cluster]);
}

// The best step time without `lost` nodes of one group; infinite if the group has no more, or
// nothing fits.
Seconds step_without(GroupedJob job, const GroupSearchOptions& options, std::size_t group,
                     int lost) {
  constexpr Seconds kNever(std::numeric_limits<double>::infinity());
  Cluster& cluster = job.cluster.groups[group];
  if (cluster.nodes <= lost) return kNever;
  cluster.nodes -= lost;
  const std::vector<GroupedPlan> plans = in_order(plan_groups(job, options));
  return plans.empty() ? kNever : plans.front().step_time;
}

std::string why_nothing(const GroupedPlans& found) {
  if (found.left_out.empty()) {
    return "found no plan that fits, neither through several groups nor on one of them; allowed: "
           "devices whose memory holds the job";
  }
  return "found no plan that fits and is legal, neither through several groups nor on one of them; "
         "allowed: more in the planner section, or devices whose memory holds the job";
}

}  // namespace

Error not_for_groups(std::string_view where, std::string_view found, std::string_view allowed) {
  return {std::string(where),
          fmt::format("found {} with groups of unlike nodes; allowed: {}", found, allowed)};
}

Error plan_of_groups() {
  return not_for_groups("/plan", "a plan",
                        "with use_of_groups by estimate, simulate, compare, program, goodput and "
                        "diff, or none: the planner finds it");
}

namespace {

// The plan of the scenario, or else the best that is found.
Expected<GroupedPlan> best_of_groups(const GroupedJob& job, const Scenario& settings,
                                     const GroupSearchOptions& options) {
  if (settings.plan && !settings.use_of_groups) return tl::unexpected(plan_of_groups());
  if (settings.plan) {
    GroupedRequest named = *settings.use_of_groups;
    named.plan = *settings.plan;
    return price_grouped(job, named, options);
  }
  const GroupedPlans found = plan_groups(job, options);
  const std::vector<GroupedPlan> plans = in_order(found);
  if (plans.empty()) return failure("/cluster/groups", why_nothing(found));
  return plans.front();
}

}  // namespace

Expected<UnlikeAnswer> answer_of_groups(const GroupedJob& job, const Scenario& settings,
                                        const GroupSearchOptions& options) {
  auto best = best_of_groups(job, settings, options);
  if (!best) return tl::unexpected(best.error());
  UnlikeAnswer answer{.best = *std::move(best), .stand_in = {}, .candidate = {}};
  answer.stand_in = stand_in_of(job, answer.best, settings);
  answer.candidate = {
      plan_of_all(answer.best), estimate_of_groups(job, answer.best, answer.stand_in), {}};
  return answer;
}

void value_again(const GroupedJob& job, const Scenario& settings, UnlikeAnswer& answer) {
  std::vector<PreparedJob> at_work;
  for (const std::size_t g : answer.best.order) {
    at_work.push_back(prepare({job.model, job.cluster.groups[g], job.training}));
  }
  set_value(job.cluster, at_work, group_options(settings), answer.best);
  answer.candidate.estimate = estimate_of_groups(job, answer.best, answer.stand_in);
}

std::vector<Replan> replans_of_groups(const GroupedJob& job, const Scenario& settings,
                                      const UnlikeAnswer& answer,
                                      const std::vector<int>& nodes_left) {
  const Groups used = used_by(answer.best);
  const GroupSearchOptions options = group_options(settings);
  const int nodes = answer.stand_in.job.cluster.nodes;
  std::vector<Replan> replans;
  replans.reserve(nodes_left.size());
  for (const int left : nodes_left) {
    Seconds step;
    for (std::size_t g = 0; g < used.size(); ++g) {
      if (used[g]) step = std::max(step, step_without(job, options, g, nodes - left));
    }
    replans.push_back({left, std::min(1.0, answer.best.step_time / step)});
  }
  std::erase_if(replans, [](const Replan& replan) { return replan.speed <= 0; });
  return replans;
}

}  // namespace trainyard
