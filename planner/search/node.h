// A node of the search: all plans of the same degrees and micro-batch. Its bound needs one look at
// a layer, shared with every other node whose layers cost the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/cluster/group.h"
#include "planner/bound/step_bound.h"
#include "planner/objective.h"
#include "planner/search/enumeration.h"

namespace trainyard {

struct SearchNode {
  std::uint32_t degrees = 0;  // index into Enumeration::degrees
  std::uint32_t range = 0;    // index into the list of its ShapeRanges
  Values bound;               // of the objectives
};

// Requests of these degrees; everything that the search does not choose is left as it is.
void set_degrees(const Enumeration& space, const Degrees& degrees, PlanRequest& request);
void set_placement(const Placement& placement, PlanRequest& request);
void set_shape(const StepShape& shape, PlanRequest& request);
void set_recompute(const RecomputeChoice& choice, PlanRequest& request);
// The same of a plan, for its bounds: where stages differ, its own is none.
void set_recompute(const RecomputeChoice& choice, Plan& plan);
void set_sharding(const Sharding& sharding, PlanRequest& request);
void set_sharding(const Sharding& sharding, const Degrees& degrees, Plan& plan);

// The ranks that a layer of these degrees talks to.
using LayerGroups = std::array<GroupShape, 4>;
LayerGroups layer_groups(const Plan& plan);

// Some legal plan of a node; nothing: none of its plans is.
std::optional<Plan> plan_of_node(const PreparedJob& job, const Enumeration& space,
                                 const Degrees& degrees, const ShapeRange& range,
                                 const PlanRequest& base);
// Whether a schedule of these degrees runs forward passes beside backward passes; it is returned.
const Schedule* paired_schedule(const Enumeration& space, const Degrees& degrees);

// What the steps of nodes take for their communication alone: bounds for those that need no look at
// a layer's kernels. Asked of the degrees in their order, it prices an exchange again only where
// its groups lie otherwise.
class NodeFloors {
 public:
  // All of the same job; they outlive this.
  NodeFloors(const Estimator& estimator, const PreparedJob& job, const Enumeration& space,
             const PlanRequest& base)
      : estimator_(estimator), job_(job), space_(space), base_(base) {}

  // Call before the nodes of other degrees.
  void start(const Degrees& degrees);
  // Whether any plan of these degrees is.
  bool legal() const { return plan_.has_value(); }
  // Of every sharding of the experts; then of this one.
  Seconds without_experts(const ShapeRange& range) { return floor(range, false); }
  Seconds with_experts(const ShapeRange& range) { return floor(range, true); }

 private:
  struct Priced {
    int micro_batch;
    LayerGroups groups;
    ExchangeFloor floor;
  };
  Seconds floor(const ShapeRange& range, bool experts);
  const ExchangeFloor& priced(bool experts);

  const Estimator& estimator_;
  const PreparedJob& job_;
  const Enumeration& space_;
  const PlanRequest& base_;
  const Degrees* degrees_ = nullptr;
  std::optional<Plan> plan_;  // of the degrees, with the micro-batch in question
  LayerGroups groups_;
  bool paired_ = false;
  std::vector<Priced> attention_, layers_;
};

// Bounds of the nodes of degrees whose layers cost the same, one after the other: a layer is priced
// again only where its groups lie otherwise.
class NodeBounds {
 public:
  // All of the same job; they outlive this.
  NodeBounds(const Estimator& estimator, const PreparedJob& job, const Enumeration& space,
             const ParameterShares& shares)
      : estimator_(estimator), job_(job), space_(space), shares_(shares) {}

  // Forgets the layers of the degrees before. Call where `same_layers` is false.
  void start();
  // Nothing: none of the node's plans is legal.
  struct Found {
    Plan plan;  // one of them
    PassSums sums;
  };
  std::optional<Found> look(const Degrees& degrees, const ShapeRange& range,
                            const PlanRequest& base);
  // The least of all plans of the node, whatever their schedule, sharding and recomputation: of the
  // time, of those whose states may fit the device.
  PlanBound bound(const Degrees& degrees, const ShapeRange& range, Found found) const;

 private:
  struct Priced {
    int micro_batch;
    LayerGroups groups;
    PassSums sums;
  };
  const PassSums& sums_of(const Degrees& degrees, const Plan& plan);
  SpanFloor span_of(const Degrees& degrees, const ShapeRange& range, const PassSums& sums,
                    Plan plan) const;

  const Estimator& estimator_;
  const PreparedJob& job_;
  const Enumeration& space_;
  const ParameterShares& shares_;
  std::vector<Priced> priced_;
  const Degrees* groups_of_ = nullptr;
  LayerGroups groups_;
};

}  // namespace trainyard
