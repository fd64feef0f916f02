// Prices pipelines through all groups of unlike nodes of a job, and deals layers to their stages.
// Assumes (planner/heterogeneous/groups.h): a stage costs what it costs in a cluster of its group's
// nodes, and sends between groups take the boundary's bandwidth and latency.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "model/cost/estimate.h"
#include "model/schedule/schedule.h"
#include "planner/heterogeneous/crossing.h"
#include "planner/heterogeneous/groups.h"
#include "planner/layers/allocation.h"

namespace trainyard {

// A prepared job for each group of `job`, on nodes[group] of that group's nodes.
std::vector<PreparedJob> prepared_groups(const GroupedJob& job, const std::vector<int>& nodes);

class PipelinePricer {
 public:
  using Order = std::vector<std::size_t>;

  // Requires: both arguments outlive the pricer.
  PipelinePricer(const GroupedJob& job, const GroupSearchOptions& options);

  // The plan of a request that is legal on the nodes of every group and shards as the space allows.
  std::optional<Plan> legal(const PlanRequest& request) const;
  // The same, with the reason for a refusal, and whatever the space allows.
  Expected<Plan> plan_of(const PlanRequest& request) const;
  const GroupSearchOptions& options() const { return options_; }
  bool has_named_layers() const { return !options_.layers_per_stage.empty(); }

  // For a plan's degrees, the allocation problem that each group would have with all stages.
  struct Degrees {
    Plan plan;
    std::vector<AllocationProblem> of_groups;  // [group]; empty: layers are not dealt
  };
  Degrees degrees_of(const Plan& plan) const;

  // Plans of these degrees with the best deal of layers, or the layers that are named, for every
  // recomputation of the space. No device takes more than the share `most` of its memory; where
  // memory is the only objective, devices take as little as possible.
  std::vector<Plan> dealt(const Degrees& degrees, const Order& order, double most) const;
  // Lower bound of the step of these degrees in this order, however layers are dealt.
  Seconds least_step(const Degrees& degrees, const Order& order) const;
  GroupedPlan price(const Plan& plan, const Order& order) const;

 private:
  int stages_of(const Plan& plan, std::size_t group) const;

  std::vector<StagesOfGroup> stages_in(const Order& order, const Plan& plan) const;
  void add_times(const Estimate& priced, std::span<const StagesOfGroup> groups,
                 GroupedPlan& result) const;
  // `stage`: the one with the most to do.
  void set_breakdown(const Estimate& priced, std::size_t stage, GroupedPlan& result) const;

  AllocationProblem problem_of(const Degrees& degrees, const Order& order) const;
  std::optional<Allocation> allocate_within(double most, AllocationProblem problem,
                                            const Plan& plan, const Order& order) const;
  std::optional<Allocation> allocate(const AllocationProblem& problem, const Plan& plan,
                                     const Order& order, double most) const;

  const GroupedJob& job_;
  const GroupSearchOptions& options_;
  std::vector<PreparedJob> whole_;    // [group]: as many of its nodes as all groups have
  std::vector<PreparedJob> own_;      // [group]: its own nodes
  std::deque<Estimator> estimators_;  // of each of these
  int devices_;
};

}  // namespace trainyard
