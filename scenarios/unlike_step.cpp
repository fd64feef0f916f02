#include "scenarios/unlike_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "scenarios/question.h"

namespace trainyard {
namespace {

std::string_view words_of(GroupUse use) {
  return use == GroupUse::replicas ? "replicas on several groups" : "several groups as one cluster";
}

// The group of each stage of a pipeline.
std::vector<std::size_t> groups_of_stages(const GroupedPlan& plan) {
  std::vector<std::size_t> groups;
  for (const std::size_t g : plan.order) {
    groups.insert(groups.end(), static_cast<std::size_t>(plan.shares[g].stages), g);
  }
  return groups;
}

// The stages as the estimates of their own groups have them, with what they hold in the simulation.
void set_stages(const StepSite& site, const StepSimulation& simulation, const Plan& plan,
                Estimate& out) {
  std::size_t stage = 0;
  for (const StageGroup& group : site.groups) {
    const Estimate own = estimate(*group.whole, plan);
    for (int i = 0; i < group.stages; ++i, ++stage) {
      out.stages.push_back(own.stages[stage]);
      out.held.push_back(own.held[stage]);
    }
  }
  const auto memory = simulated_memory(simulation, site.any().job.training.stack, out.stages);
  for (std::size_t i = 0; i < memory.size(); ++i) out.stages[i].memory.at_peak = memory[i];
}

// Sets what each group's fullest device takes, and whether that fits.
void set_peaks(const UnlikeCluster& cluster, const std::vector<StageEstimate>& stages,
               GroupedPlan& plan) {
  const std::vector<std::size_t> groups = groups_of_stages(plan);
  for (GroupShare& share : plan.shares) share.peak_memory = Bytes(0);
  plan.feasible = true;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    GroupShare& share = plan.shares[groups[stage]];
    const Bytes peak = stages[stage].memory.at_peak.device();
    if (peak > share.peak_memory) share.fullest_stage = static_cast<int>(stage);
    share.peak_memory = std::max(share.peak_memory, peak);
    const bool fits = peak <= cluster.groups[groups[stage]].usable_memory();
    plan.feasible = plan.feasible && fits;
  }
}

int fullest_stage(const UnlikeCluster& cluster, const GroupedPlan& plan) {
  const auto share_taken = [&](std::size_t g) {
    return plan.shares[g].peak_memory / cluster.groups[g].usable_memory();
  };
  const std::size_t fullest = *std::ranges::max_element(plan.order, {}, share_taken);
  return plan.shares[fullest].fullest_stage;
}

}  // namespace

Expected<UnlikeStep> simulate_groups(const GroupedJob& job, const Scenario& settings,
                                     UnlikeAnswer answer, const StepOptions& options) {
  GroupedPlan& best = answer.best;
  if (best.use != GroupUse::pipeline) {
    return failure(settings.use_of_groups ? "/use_of_groups/use" : "/cluster/groups",
                   fmt::format("found {}, which the simulator does not play; allowed: a pipeline "
                               "(use_of_groups), or one group alone",
                               words_of(best.use)));
  }
  const UnlikePipeline pipeline(job.model, job.training, job.cluster, best.order, best.plan);
  auto simulation = simulate(pipeline, best.plan, options);
  if (!simulation) return tl::unexpected(simulation.error());
  const Seconds estimated = best.step_time;
  best.step_time = simulation->step_time;
  best.breakdown = simulation->breakdown;
  best.boundary.reset();
  for (GroupShare& share : best.shares) share.busy = share.busy * simulation->step.flop;
  Estimate stages;
  set_stages(pipeline.site(), *simulation, best.plan, stages);
  set_peaks(job.cluster, stages.stages, best);
  value_again(job, settings, answer);
  Estimate& all = answer.candidate.estimate;
  all.stages = std::move(stages.stages);
  all.held = std::move(stages.held);
  all.breakdown = best.breakdown;
  all.fullest_stage = fullest_stage(job.cluster, best);
  all.tokens_per_second *= simulation->step.tokens;
  all.model_flops_per_device = all.model_flops_per_device * simulation->step.flop;
  for (double* rate : {&all.mfu, &all.mfu_bf16}) *rate *= simulation->step.flop;
  return UnlikeStep{*std::move(simulation), std::move(answer), estimated};
}

const Device& fullest_device(const UnlikeCluster& cluster, const UnlikeStep& step) {
  const auto stage = static_cast<std::size_t>(step.answer.candidate.estimate.fullest_stage);
  return cluster.groups[groups_of_stages(step.answer.best)[stage]].device;
}

}  // namespace trainyard
