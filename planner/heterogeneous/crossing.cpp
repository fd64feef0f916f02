#include "planner/heterogeneous/crossing.h"

#include <algorithm>

#include "model/plan/process_groups.h"

namespace trainyard {
namespace {

// Time of a message from a stage of `own` to one of `other`.
Seconds send_to(const NamedBoundary& named, const StagesOfGroup& own, const StagesOfGroup& other,
                const Plan& plan) {
  PlanLinks over = own.links;
  over.pipeline = links_over(boundary_of(named, *own.job, *other.job, plan));
  return pipeline_sends(*own.job, plan, over).between;
}

// One side of the boundary between two groups; `between`: the stage that it lies behind.
Crossing::Side side_of(const NamedBoundary& named, const StagesOfGroup& own,
                       const StagesOfGroup& other, int stage, int between, const Plan& plan) {
  const Seconds send = send_to(named, own, other, plan);
  const Seconds inside = own.sends.behind(between);
  return {static_cast<std::size_t>(stage), send, std::max(Seconds(0), send - inside)};
}

// Where sends are not overlapped, stages wait for each other, so all of a group send at the pace of
// its slowest boundary, but on a routed fabric (sends_in_passes()). That to another group counts as
// one to a node of its own kind; over a bandwidth that is named only the two stages beside it wait.
void wait_for_boundary(const NamedBoundary& named, const Plan& plan, StagesOfGroup& own) {
  const bool each_its_own = is_routed(own.job->job.cluster.inter);
  if (plan.overlap.pipeline || named.bandwidth || each_its_own) return;
  own.sends.between = std::max(own.sends.between, send_to(named, own, own, plan));
}

}  // namespace

std::vector<StagesOfGroup> stages_of_groups(const NamedBoundary& named,
                                            std::span<const PreparedJob> own, const Plan& plan,
                                            const std::vector<std::size_t>& order) {
  std::vector<StagesOfGroup> all;
  all.reserve(order.size());
  int first = 0;
  for (const std::size_t group : order) {
    const PreparedJob& job = own[group];
    const int stages = job.job.cluster.devices() * plan.pipeline_parallel / plan.devices();
    PlanLinks links = plan_links(job, plan);
    links.first_stage = first;
    const PipelineSends sends = pipeline_sends(job, plan, links);
    all.push_back({group, &job, first, first + stages, links, sends});
    wait_for_boundary(named, plan, all.back());
    first += stages;
  }
  return all;
}

Boundary boundary_of(const NamedBoundary& named, const PreparedJob& one, const PreparedJob& other,
                     const Plan& plan) {
  Boundary between = named.between(one.job.cluster, other.job.cluster);
  if (named.bandwidth) return between;
  const GroupShape stages = process_groups(plan).pipeline;
  const auto of_a_sender = [&](const DeviceNics& nics) {
    return std::min(nics.alone, members_within(stages, nics.ranks) * nics.way_out);
  };
  between.bandwidth = std::min(of_a_sender(one.tiers.nics), of_a_sender(other.tiers.nics));
  return between;
}

void Crossing::add_to(std::vector<PassTimes>& passes) const {
  if (!overlapped) {
    passes[before.stage].forward += before.more;
    passes[behind.stage].input_gradient += behind.more;
    return;
  }
  for (const Side& side : {before, behind}) {
    passes[side.stage].forward += side.more * slowdown;
    passes[side.stage].input_gradient += side.more * slowdown;
  }
}

Seconds Crossing::added_to(const Side& side) const {
  return overlapped ? 2 * side.more * slowdown : side.more;
}

Seconds Crossing::in_ramps() const {
  if (!overlapped) return Seconds(0);
  return (before.send + behind.send) * std::max(0.0, 1 - 2 * slowdown);
}

std::vector<Crossing> crossings(const NamedBoundary& named, std::span<const StagesOfGroup> groups,
                                const Plan& plan) {
  std::vector<Crossing> all;
  for (std::size_t i = 0; i + 1 < groups.size(); ++i) {
    const StagesOfGroup& before = groups[i];
    const StagesOfGroup& behind = groups[i + 1];
    const int last = before.end - 1;
    all.push_back({side_of(named, before, behind, last, last, plan),
                   side_of(named, behind, before, behind.first, last, plan), plan.overlap.pipeline,
                   before.job->job.training.stack.overlap_slowdown});
  }
  return all;
}

Seconds pace_of(std::span<const PassTimes> passes, std::span<const Crossing> crossed) {
  std::vector<Seconds> sends(passes.size());  // to a stage from the one before, and back
  for (const Crossing& crossing : crossed) {
    sends[crossing.behind.stage] = crossing.before.send + crossing.behind.send;
  }
  Seconds pace;
  for (std::size_t first = 0; first < passes.size(); ++first) {
    Seconds sum = passes[first].total();
    for (std::size_t last = first + 1; last < passes.size(); ++last) {
      sum += passes[last].total() + sends[last];
      pace = std::max(pace, sum / static_cast<double>(last - first + 1));
    }
  }
  return pace;
}

}  // namespace trainyard
