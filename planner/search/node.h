// A node of the search: all plans of the same degrees and micro-batch, whatever their schedule,
// chunks, recomputation and sharding. Two lower bounds exist of its step: a cheap floor from the
// communication of its layers (NodeFloors), and a tighter bound that prices each kind of layer once
// (NodeBounds). Nodes whose layers cost the same share that price.
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
  std::uint32_t range = 0;    // index into Enumeration::ranges of these degrees
  Values bound;               // lower bounds of the objectives
};

// Set one choice of the search in a request; its other keys stay as they are.
void set_degrees(const Enumeration& space, const Degrees& degrees, PlanRequest& request);
void set_placement(const Placement& placement, PlanRequest& request);
void set_shape(const StepShape& shape, PlanRequest& request);
void set_recompute(const RecomputeChoice& choice, PlanRequest& request);
// The same in a plan, for its bounds. Where stages differ, `Plan::recompute` becomes none.
void set_recompute(const RecomputeChoice& choice, Plan& plan);
void set_sharding(const Sharding& sharding, PlanRequest& request);
void set_sharding(const Sharding& sharding, const Degrees& degrees, Plan& plan);

// The process groups that a layer communicates in: tensor, context, expert, expert tensor.
using LayerGroups = std::array<GroupShape, 4>;
LayerGroups layer_groups(const Plan& plan);

// One legal plan of the node, with ZeRO-0; nothing where none is legal.
std::optional<Plan> plan_of_node(const PreparedJob& job, const Enumeration& space,
                                 const Degrees& degrees, const ShapeRange& range,
                                 const PlanRequest& base);
// A schedule of these degrees that runs forward passes beside backward passes; nullptr: none does.
const Schedule* paired_schedule(const Enumeration& space, const Degrees& degrees);

// Lower bounds of the steps of nodes from the communication of their layers alone; no kernel is
// priced. Fast where degrees come in the order of Enumeration::degrees: communication is then
// priced again only where its groups lie elsewhere.
class NodeFloors {
 public:
  // Requires: all arguments are of the same job and outlive this.
  NodeFloors(const Estimator& estimator, const PreparedJob& job, const Enumeration& space,
             const PlanRequest& base)
      : estimator_(estimator), job_(job), space_(space), base_(base) {}

  // Begins with the nodes of these degrees. Requires: called before floors of other degrees.
  void start(const Degrees& degrees);
  // Whether any plan of these degrees is legal.
  bool legal() const { return plan_.has_value(); }
  // Floors of a node: one that holds for all degrees of expert parallelism, and one for its own.
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

// Lower bounds of nodes from one price of each kind of layer. Degrees with the same layers come one
// after the other: a layer is priced again only where its groups lie elsewhere.
class NodeBounds {
 public:
  // Requires: all arguments are of the same job and outlive this.
  NodeBounds(const Estimator& estimator, const PreparedJob& job, const Enumeration& space,
             const ParameterShares& shares)
      : estimator_(estimator), job_(job), space_(space), shares_(shares) {}

  // Forgets the layers that were priced. Requires: called where `same_layers` is false.
  void start();
  // What look() finds of a node; it returns nothing where no plan of the node is legal.
  struct Found {
    Plan plan;  // a legal one
    PassSums sums;
  };
  std::optional<Found> look(const Degrees& degrees, const ShapeRange& range,
                            const PlanRequest& base);
  // The least bound of all plans of the node, whatever their schedule, sharding and recomputation.
  // Of times, the least of the shardings that may fit.
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
