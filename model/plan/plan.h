// A plan: how one training step is cut over the devices of a cluster. `PlanRequest` is what a user
// asked for, with the names that documents use (design §3). `make_plan` turns it into a legal and
// complete `Plan`, or says which key is wrong and what the nearest legal value is. Functions that
// take a `Plan` made by it are total: they have no error path.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/expected.h"
#include "model/workload/context_algorithm.h"
#include "model/workload/training.h"
#include "model/workload/transformer.h"

namespace trainyard {

struct Schedule;  // both: model/schedule/schedule.h
struct PipelineShape;
struct ListedSchedule;  // model/schedule/listed.h

// Names as documents have them.
enum class RecomputeMode { none, selective, full, automatic };
inline constexpr std::array<std::string_view, 4> kRecomputeModes{"none", "selective", "full",
                                                                 "auto"};
constexpr std::string_view name_of(RecomputeMode mode) {
  return kRecomputeModes[static_cast<std::size_t>(mode)];
}

struct Recompute {
  RecomputeMode mode = RecomputeMode::none;
  int full_layers = 0;  // with `full`: layers recomputed on each stage; 0: all of them
  friend bool operator==(const Recompute&, const Recompute&) = default;
};

enum class OffloadTarget { none, host, nvme };
struct Offload {
  OffloadTarget parameters = OffloadTarget::none;
  OffloadTarget gradients = OffloadTarget::none;
  OffloadTarget optimizer = OffloadTarget::none;
  OffloadTarget activations = OffloadTarget::none;
  int activation_layers = 0;  // with `activations`: the first layers of each stage; 0: all of them
  friend bool operator==(const Offload&, const Offload&) = default;
};

// Whether any tensors are offloaded to `target`.
inline bool uses(const Offload& offload, OffloadTarget target) {
  return offload.parameters == target || offload.gradients == target ||
         offload.optimizer == target || offload.activations == target;
}

// Which communication shall overlap compute. Absent: the stack's default.
struct OverlapRequest {
  std::optional<bool> tensor_parallel, context_parallel, expert_parallel, pipeline, data_parallel;
};

// What a document says. Absent fields take their defaults (design §3).
struct PlanRequest {
  int tensor_parallel = 1;
  std::optional<bool> sequence_parallel;
  int context_parallel = 1;
  ContextAlgorithm context_parallel_algorithm = ContextAlgorithm::ring;
  int pipeline_parallel = 1;
  // Absent: 2 for zb-v, the chunks of `passes`, else 1.
  std::optional<int> virtual_stages;
  std::string schedule;  // empty: 1f1b, or interleaved-1f1b when virtual_stages > 1
  std::shared_ptr<const ListedSchedule> passes;  // a user's pass list; replaces `schedule`
  std::vector<int> layers_per_stage;  // p entries, or p·v in the order of chunks; empty: even
  std::optional<int> data_parallel;   // absent: as many replicas as fill the cluster
  int expert_parallel = 1;
  int expert_tensor_parallel = 1;
  int micro_batch = 1;
  std::optional<int> zero_stage;      // absent: 3 with a sharding_group, else the stack's default
  std::optional<int> sharding_group;  // absent: D·c
  Recompute recompute;
  std::vector<Recompute> recompute_per_stage;  // p entries; empty: `recompute` on every stage
  OverlapRequest overlap;
  Offload offload;
  std::optional<double> capacity_factor;  // absent: dropless
  double load_imbalance = 1;
  std::string rank_order = "tp-cp-ep-dp-pp";
  std::string collective;                 // name of an algorithm; empty: the fastest
  std::optional<bool> optimizer_barrier;  // absent: as stack and schedule have it
};

struct Plan {
  int tensor_parallel = 1;  // t
  bool sequence_parallel = false;
  int context_parallel = 1;  // c
  ContextAlgorithm context_parallel_algorithm = ContextAlgorithm::ring;
  int pipeline_parallel = 1;                     // p
  int virtual_stages = 1;                        // v
  const Schedule* schedule = nullptr;            // never null in a plan that make_plan returned
  std::shared_ptr<const ListedSchedule> passes;  // owns `schedule` if it is a user's pass list
  std::vector<int> layers_per_stage;  // p·v entries, in the order of LayersOfChunks; empty: even
  int data_parallel = 1;              // D
  int expert_parallel = 1;            // e
  int expert_tensor_parallel = 1;     // e_t
  int expert_data_parallel = 1;       // D_e = t·c·D / (e·e_t)
  int micro_batch = 1;                // b, sequences
  int microbatches = 1;               // m = B / (b·D)
  int zero_stage = 0;
  int sharding_group = 1;  // ranks among which dense states are sharded; D·c when not named
  Recompute recompute;     // if stages differ: the entry that recomputes the most
  std::vector<Recompute> recompute_per_stage;  // p entries; empty: every stage as `recompute`
  StackOverlap overlap;
  Offload offload;
  double capacity_factor = 0;  // 0: dropless
  double load_imbalance = 1;
  std::string rank_order = "tp-cp-ep-dp-pp";
  std::string collective;  // empty: the fastest
  bool optimizer_barrier = true;
  bool pipeline_no_sync = false;  // copied from the stack

  // Whether ZeRO 2 and 3 accumulate unsharded gradients over the micro-batches and reduce them only
  // after a chunk's last backward pass. Gathered weights also stay until then.
  bool no_sync() const { return pipeline_no_sync && pipeline_parallel > 1 && zero_stage >= 2; }
  // The ZeRO stage that describes what a rank holds while passes run. With `no_sync` only the
  // optimizer state is sharded then, which is stage 1.
  int held_zero_stage() const { return no_sync() ? 1 : zero_stage; }

  int devices() const {
    return tensor_parallel * context_parallel * pipeline_parallel * data_parallel;
  }
};

// A plan with the degrees and the rank order of a request, which is all that process_groups()
// needs; other fields keep their defaults. Requires: degrees of a legal plan; D is `data_parallel`.
Plan plan_of_degrees(const PlanRequest& request, int data_parallel);

PipelineShape pipeline_shape(const Plan& plan);

// The recomputation of one stage. Requires: 0 ≤ stage < p.
inline Recompute recompute_of(const Plan& plan, int stage) {
  if (plan.recompute_per_stage.empty()) return plan.recompute;
  return plan.recompute_per_stage[static_cast<std::size_t>(stage)];
}
// Whether any stage recomputes in this mode.
bool recomputes(const Plan& plan, RecomputeMode mode);

// An error names the JSON pointer of the offending key ("/plan/tensor_parallel"), what was found
// and the nearest legal value. If `layers_per_stage` has p entries, the layers of each stage are
// spread evenly over its chunks. Requires: model, cluster and training are positive where a
// document must be.
Expected<Plan> make_plan(const PlanRequest& request, const Transformer& model,
                         const Cluster& cluster, const Training& training);

// As make_plan, but without the sentence that says what is wrong: a search refuses most requests.
std::optional<Plan> plan_if_legal(const PlanRequest& request, const Transformer& model,
                                  const Cluster& cluster, const Training& training);

// The number of layers of each chunk; chunks are numbered 0 … p·v − 1 in the order in which a
// micro-batch passes them. Unless layers_per_stage names them (design §3), every chunk has
// ⌊L/(p·v)⌋ layers, and the r = L mod p·v chunks 1 … r have one more. If r = p·v − 2, this counts
// embedding and head as one layer each: 30 layers on 4 chunks are 7, 8, 8 and 7. A chunk may have 0
// layers. Requires: `plan` outlives it.
class LayersOfChunks {
 public:
  LayersOfChunks(const Plan& plan, int layers);
  int operator[](int chunk) const {
    if (!named_.empty()) return named_[static_cast<std::size_t>(chunk)];
    return even_ + (chunk >= 1 && chunk <= longer_ ? 1 : 0);
  }
  int before(int chunk) const;    // layers of all chunks before this one
  int of_stage(int stage) const;  // of all chunks of a stage. Requires: Route::loop
  std::vector<int> all() const;   // [chunk]

 private:
  std::span<const int> named_;  // layers_per_stage
  int stages_, chunks_;
  int even_, longer_;
};

}  // namespace trainyard
