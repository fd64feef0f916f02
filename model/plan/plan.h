// A plan: how the step of one training is cut over the devices of one cluster. Plain fields with
// the document's names (design §3); `make_plan` turns what a user asked for into a legal, complete
// plan or says why it cannot be and what the nearest legal value is. After that every function is
// total.
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
  int full_layers = 0;  // with `full`: layers of each stage; 0: all of them
  friend bool operator==(const Recompute&, const Recompute&) = default;
};

enum class OffloadTarget { none, host, nvme };
struct Offload {
  OffloadTarget parameters = OffloadTarget::none;
  OffloadTarget gradients = OffloadTarget::none;
  OffloadTarget optimizer = OffloadTarget::none;
  OffloadTarget activations = OffloadTarget::none;
  int activation_layers = 0;  // with `activations`: layers of each stage; 0: all of them
  friend bool operator==(const Offload&, const Offload&) = default;
};

// Whether anything lies there.
inline bool uses(const Offload& offload, OffloadTarget target) {
  return offload.parameters == target || offload.gradients == target ||
         offload.optimizer == target || offload.activations == target;
}

// Which communication runs beside compute; absent: as the stack has it.
struct OverlapRequest {
  std::optional<bool> tensor_parallel, context_parallel, expert_parallel, pipeline, data_parallel;
};

// What a document says; everything else takes its default (design §3).
struct PlanRequest {
  int tensor_parallel = 1;
  std::optional<bool> sequence_parallel;
  int context_parallel = 1;
  ContextAlgorithm context_parallel_algorithm = ContextAlgorithm::ring;
  int pipeline_parallel = 1;
  // Absent: as many as the schedule has, 1 where it says nothing.
  std::optional<int> virtual_stages;
  std::string schedule;  // empty: 1f1b, or interleaved-1f1b when virtual_stages > 1
  std::shared_ptr<const ListedSchedule> passes;  // a user's own schedule instead
  std::vector<int> layers_per_stage;  // p entries, or p·v in the order of chunks; empty: even
  std::optional<int> data_parallel;
  int expert_parallel = 1;
  int expert_tensor_parallel = 1;
  int micro_batch = 1;
  std::optional<int> zero_stage;
  std::optional<int> sharding_group;
  Recompute recompute;
  std::vector<Recompute> recompute_per_stage;  // p entries; empty: `recompute` on every stage
  OverlapRequest overlap;
  Offload offload;
  std::optional<double> capacity_factor;  // absent: dropless
  double load_imbalance = 1;
  std::string rank_order = "tp-cp-ep-dp-pp";
  std::string collective;  // name of an algorithm; empty: the fastest
  std::optional<bool> optimizer_barrier;
};

struct Plan {
  int tensor_parallel = 1;  // t
  bool sequence_parallel = false;
  int context_parallel = 1;  // c
  ContextAlgorithm context_parallel_algorithm = ContextAlgorithm::ring;
  int pipeline_parallel = 1;                     // p
  int virtual_stages = 1;                        // v
  const Schedule* schedule = nullptr;            // never null in a plan that make_plan returned
  std::shared_ptr<const ListedSchedule> passes;  // keeps `schedule` alive where it is a user's own
  std::vector<int> layers_per_stage;  // p·v entries, in the order of LayersOfChunks; empty: even
  int data_parallel = 1;              // D
  int expert_parallel = 1;            // e
  int expert_tensor_parallel = 1;     // e_t
  int expert_data_parallel = 1;       // D_e = t·c·D / (e·e_t)
  int micro_batch = 1;                // b, sequences
  int microbatches = 1;               // m = B / (b·D)
  int zero_stage = 0;
  int sharding_group = 1;  // ranks among which dense states are sharded; D·c when not named
  Recompute recompute;     // where stages differ: the one that repeats the most
  std::vector<Recompute> recompute_per_stage;  // p entries; empty: all as `recompute`
  StackOverlap overlap;
  Offload offload;
  double capacity_factor = 0;  // 0: dropless
  double load_imbalance = 1;
  std::string rank_order = "tp-cp-ep-dp-pp";
  std::string collective;  // empty: the fastest
  bool optimizer_barrier = true;
  bool pipeline_no_sync = false;  // the stack's

  // Whether every micro-batch adds to whole gradients, which are reduced behind a chunk's last
  // backward pass, and gathered weights stay until then.
  bool no_sync() const { return pipeline_no_sync && pipeline_parallel > 1 && zero_stage >= 2; }
  // The ZeRO stage of what a rank holds while passes run: with `no_sync` the optimizer's states
  // alone are sharded then.
  int held_zero_stage() const { return no_sync() ? 1 : zero_stage; }

  int devices() const {
    return tensor_parallel * context_parallel * pipeline_parallel * data_parallel;
  }
};

// The degrees of a request and its order of ranks as a plan: what decides where its groups lie, and
// nothing else. Requires: they are a legal plan's, D is `data_parallel`.
Plan plan_of_degrees(const PlanRequest& request, int data_parallel);

PipelineShape pipeline_shape(const Plan& plan);

// What stage `stage` computes again. Requires: 0 ≤ stage < p.
inline Recompute recompute_of(const Plan& plan, int stage) {
  if (plan.recompute_per_stage.empty()) return plan.recompute;
  return plan.recompute_per_stage[static_cast<std::size_t>(stage)];
}
// Whether any stage computes again in this way.
bool recomputes(const Plan& plan, RecomputeMode mode);

// Errors carry the pointer of the offending key ("/plan/tensor_parallel"), what was found and the
// nearest legal value. `layers_per_stage` with p entries spreads each stage's layers evenly over
// its chunks. Requires: model, cluster and training are positive where a document must be.
Expected<Plan> make_plan(const PlanRequest& request, const Transformer& model,
                         const Cluster& cluster, const Training& training);

// The same plan, without the reason when there is none: for a search, which refuses more than it
// makes.
std::optional<Plan> plan_if_legal(const PlanRequest& request, const Transformer& model,
                                  const Cluster& cluster, const Training& training);

// Layers of each chunk (0 … p·v − 1, in the order in which a micro-batch passes them). Design §3:
// even when p·v divides L; else embedding and head count as one layer each when p·v divides L + 2;
// else the L mod p·v longer chunks are 1 … r. May be 0. Sees the plan, does not keep it.
class LayersOfChunks {
 public:
  LayersOfChunks(const Plan& plan, int layers);
  int operator[](int chunk) const {
    if (!named_.empty()) return named_[static_cast<std::size_t>(chunk)];
    return even_ + (chunk >= 1 && chunk <= longer_ ? 1 : 0);
  }
  int before(int chunk) const;    // layers of the chunks before it
  int of_stage(int stage) const;  // where micro-batches go in a loop
  std::vector<int> all() const;   // in the order of layers_per_stage

 private:
  std::span<const int> named_;  // layers_per_stage
  int stages_, chunks_;
  int even_, longer_;
};

}  // namespace trainyard
