// Layers to stages by dynamic programming: contiguous layers, some stages perhaps empty, and the
// recomputation of every stage chosen in the same program, so that the step is as short as the
// memory of each stage allows.
//
// The step is handbook §8's for unlike stages, m·max T + (ΣT − max T)·r. Memory is that of
// model/cost/memory/memory.h: states, kept activations times those in flight, what was repeated
// between the halves of split backward passes, and the larger of the two transients, of which a
// layer that is repeated is beside no layers behind it (model/cost/memory/repeated_layers.h). Of
// layers that are unlike those that are repeated count as average ones, those behind them as the
// smallest. What data parallelism adds once a step is left out.
#pragma once

#include <optional>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

// One layer on one rank, for one micro-batch.
struct AllocatedLayer {
  Seconds time;                                 // of all its passes, nothing repeated
  Seconds selective, full;                      // what recomputation adds to it
  Bytes states;                                 // weights, gradients, optimizer
  Bytes saved, saved_selective, saved_by_full;  // kept for backward
  Bytes between_halves;                         // … of all of it, after the first half of that
  Bytes gradients;                              // of activations, while its backward pass runs
  Bytes gathered;                               // ZeRO-3's copy while it is at work
  Bytes gathered_beside;  // … while the next one in its chunk is, or the one before

  bool operator==(const AllocatedLayer&) const = default;
};

struct AllocatedStage {
  Seconds time;          // of what it runs beside layers: embedding, output head, sends
  Bytes fixed;           // what it holds beside layers
  Bytes head;            // logits, while no layer's backward pass runs
  Bytes capacity;        // what the allocator may give out
  double in_flight = 1;  // micro-batches whose activations it keeps
  // The same by the layers that it is dealt, where its chunks are unlike with some numbers of them;
  // empty: always the above.
  std::vector<double> in_flight_by_layers;
  double past_input_gradient = 0;  // of them: they keep `between_halves` of a layer
  // Micro-batches between the halves of a split backward pass, for which what was repeated stays;
  // of them the one at work, as far as the stage has its chunks at once.
  double between_halves = 0, at_work = 0;
  // That share its layers evenly, and in whose backward passes nothing is left of a layer once the
  // one before it is at work; 0: all stays for weight gradients that are put off.
  int chunks = 1;
  double slowness = 1;  // time of a layer here over that on the reference device
  // Layers that it has whatever it is dealt: those of multi-token prediction.
  std::vector<AllocatedLayer> own;
};

struct AllocationProblem {
  std::vector<AllocatedLayer> layers;
  std::vector<AllocatedStage> stages;
  int microbatches = 1;
  double fill = 1;  // r: 1 for 1F1B
  // Which recomputation a stage may choose; `full` is of any number of its layers, or of so many
  // where `full_layers` is one (all of a stage that has fewer).
  bool none = true, selective = true, full = true;
  int full_layers = 0;
};

struct StageAllocation {
  int layers = 0;       // dealt to it
  Recompute recompute;  // `full_layers` as many of all of them as the stage needs
  Seconds time;
  int own_layers = 0;  // beside those that it was dealt
};

struct Allocation {
  std::vector<StageAllocation> stages;
  Seconds step;
};

// The best allocation; nothing when none fits. Exact to a relative 1e-12.
// Requires: at least one stage, m ≥ 1, 0 ≤ r ≤ 1, nothing negative.
std::optional<Allocation> allocate_layers(const AllocationProblem& problem);

// The step of handbook §8 for these stage times.
Seconds allocation_step(const AllocationProblem& problem,
                        const std::vector<StageAllocation>& stages);

// The problem of a plan's degrees under the cost model. Where a stage has chunks, its layers are
// not contiguous: then the layers must all be of one kind, so that their number tells all. Nothing
// for other plans, with two ways through the stages or with activations offloaded. Of `any` order
// of passes a layer takes what it takes at least.
enum class PassOrders { of_the_plan, any };
std::optional<AllocationProblem> allocation_problem(const PreparedJob& job, const Plan& plan,
                                                    PassOrders orders = PassOrders::of_the_plan);

// The same where unlike layers lie in chunks too: what they and the stages take. It is a problem
// for planner/layers/layer_moves.h, not for allocate_layers.
std::optional<AllocationProblem> problem_of_moves(const PreparedJob& job, const Plan& plan);
// Whether a stage's layers are contiguous, or their number tells all.
bool is_contiguous(const PreparedJob& job, const Plan& plan);

// The layers of every chunk of the plan, in the order of `layers_per_stage`, when its stages have
// so many: as even as they go, chunks with embedding or head last.
std::vector<int> layers_of_chunks(const Plan& plan, const std::vector<int>& layers_of_stages);

// `plan` with the layers and the recomputation of an allocation of its stages; the second says
// which chunks of theirs have the layers.
PlanRequest request_with(const Plan& plan, const Allocation& dealt);
PlanRequest request_with(const Plan& plan, const std::vector<StageAllocation>& stages,
                         std::vector<int> layers_of_chunks);

}  // namespace trainyard
