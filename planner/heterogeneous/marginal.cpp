#include "planner/heterogeneous/marginal.h"

#include <algorithm>
#include <utility>

#include "model/interrupted.h"
#include "planner/findings/marginal.h"
#include "planner/heterogeneous/request.h"
#include "planner/heterogeneous/team.h"
#include "planner/heterogeneous/value.h"

namespace trainyard {
namespace {

constexpr double kAHundredthMore = 1 + kMarginalShare;

void raise(const HardwareChange& resource, std::size_t group, GroupedJob& job) {
  Cluster& own = job.cluster.groups[group];
  Job richer{job.model, std::move(own), job.training};
  resource.apply(richer, kAHundredthMore);
  own = std::move(richer.cluster);
}

class GroupedMarginals {
 public:
  GroupedMarginals(const GroupedJob& job, GroupSearchOptions options, const GroupedPlan& winner)
      : job_(job),
        options_(std::move(options)),
        winner_(winner),
        resources_(resources_of(winner.plan.offload)),
        searches_((job.cluster.groups.size() + 1) * resources_.size() +
                  (job.cluster.boundary.bandwidth ? 1 : 0)) {
    options_.finds_closest = false;
    options_.second.reset();
    options_.progress = nullptr;
  }

  std::vector<GroupedMarginalValue> find(const std::function<void(double)>& progress) {
    progress_ = progress;
    options_.uses = uses_with_rivals();
    std::vector<GroupedMarginalValue> values;
    for (const HardwareChange& resource : resources_) values.push_back(value_of(resource));
    if (job_.cluster.boundary.bandwidth) values.push_back(value_of_boundary());
    return is_interrupted() ? std::vector<GroupedMarginalValue>() : values;
  }

 private:
  bool is_interrupted() const { return is_set(options_.interrupted); }

  // The ways that may beat the winner. No plan is worse for more of a resource: a way whose best
  // plan with more of every resource does not beat the winner with more of one, has none that beats
  // it with more of that one alone.
  std::vector<GroupUse> uses_with_rivals() {
    GroupedJob all = job_;
    double worst = 0;
    for (std::size_t g = 0; g < job_.cluster.groups.size(); ++g) {
      for (const HardwareChange& resource : resources_) {
        GroupedJob one = job_;
        raise(resource, g, one);
        raise(resource, g, all);
        worst = std::max(worst, value_on(one));
      }
    }
    if (job_.cluster.boundary.bandwidth) *all.cluster.boundary.bandwidth *= kAHundredthMore;
    GroupSearchOptions options = options_;
    options.worth = worst;
    std::vector<GroupUse> uses;
    for (const GroupedPlan& plan : in_order(plan_groups(all, options))) {
      if (plan.value < worst) uses.push_back(plan.use);
    }
    return uses;
  }

  double value_on(const GroupedJob& richer) const {
    const auto same = price_grouped(richer, request_of(winner_), options_);
    return same ? same->value : winner_.value;
  }

  // The winner on the richer groups, or a plan that is better there.
  GroupedPlan best_on(const GroupedJob& richer) {
    if (progress_) progress_(static_cast<double>(done_++) / static_cast<double>(searches_));
    auto same = price_grouped(richer, request_of(winner_), options_);
    if (!same || is_interrupted()) return winner_;
    if (options_.uses.empty()) return *std::move(same);
    GroupSearchOptions options = options_;
    options.worth = same->value;
    std::vector<GroupedPlan> found = in_order(plan_groups(richer, options));
    const bool beaten = !found.empty() && is_better(found.front(), *same);
    return beaten ? std::move(found.front()) : *std::move(same);
  }

  // Never below zero: that a faster network slows the compute beside it more is no loss
  // (planner/findings/marginal.cpp).
  double gain(const GroupedPlan& best) const {
    return std::max(0.0, 1 - best.value / winner_.value);
  }

  GroupedMarginalValue value_of(const HardwareChange& resource) {
    GroupedJob all = job_;
    GroupedMarginalValue value{.resource = resource.name};
    for (std::size_t g = 0; g < job_.cluster.groups.size(); ++g) {
      GroupedJob one = job_;
      raise(resource, g, one);
      raise(resource, g, all);
      value.gained_by_group.push_back(gain(best_on(one)));
    }
    set_best(best_on(all), value);
    return value;
  }

  GroupedMarginalValue value_of_boundary() {
    GroupedJob wider = job_;
    *wider.cluster.boundary.bandwidth *= kAHundredthMore;
    GroupedMarginalValue value{.resource = "bandwidth between groups"};
    set_best(best_on(wider), value);
    return value;
  }

  void set_best(const GroupedPlan& best, GroupedMarginalValue& value) const {
    value.gained = gain(best);
    value.same_plan = same_plan(best, winner_);
  }

  const GroupedJob& job_;
  GroupSearchOptions options_;
  const GroupedPlan& winner_;
  std::span<const HardwareChange> resources_;
  std::size_t searches_;
  std::size_t done_ = 0;
  std::function<void(double)> progress_;
};

}  // namespace

std::vector<GroupedMarginalValue> marginal_values(const GroupedJob& job,
                                                  const GroupSearchOptions& options,
                                                  const GroupedPlan& winner) {
  return GroupedMarginals(job, options, winner).find(options.progress);
}

}  // namespace trainyard
