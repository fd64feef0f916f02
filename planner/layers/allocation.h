// Deals contiguous layers to stages by dynamic programming, and chooses the recomputation of every
// stage in the same program, so that the step is as short as the memory of each stage allows. A
// stage may be left empty.
//
// The step is handbook §8's for unlike stages, m·max T + (ΣT − max T)·r. Example: 8 layers of 10 ms
// on two stages, the second with a head of 20 ms, m = 8, r = 1: 5 and 3 layers take 8·50 + 50 = 450
// ms, 4 and 4 take 8·60 + 40 = 520 ms. Memory is that of model/cost/memory/memory.h: states, kept
// activations times those in flight, recomputed ones between the halves of split backward passes,
// and the larger of the two transients, logits or a layer's backward pass
// (model/cost/memory/repeated_layers.h). Where layers are unlike, recomputed ones count as average
// and those behind them as the smallest. Data parallelism's communication, once a step, is left
// out.
#pragma once

#include <optional>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

// One layer on one rank, for one micro-batch.
struct AllocatedLayer {
  Seconds time;                                 // of all its passes, nothing recomputed
  Seconds selective, full;                      // what recomputation adds to it
  Bytes states;                                 // weights, gradients, optimizer
  Bytes saved, saved_selective, saved_by_full;  // activations kept: recompute none, selective, full
  Bytes between_halves;   // of `saved`, kept between input gradient and weight gradient
  Bytes gradients;        // of activations, while its backward pass runs
  Bytes gathered;         // ZeRO-3's gathered copy while the layer is at work
  Bytes gathered_beside;  // ZeRO-3's gathered copy while a neighbour in its chunk is at work

  bool operator==(const AllocatedLayer&) const = default;
};

struct AllocatedStage {
  Seconds time;          // of embedding, output head and sends, for one micro-batch
  Bytes fixed;           // what it holds beside layers
  Bytes head;            // logits, while no layer's backward pass runs
  Bytes capacity;        // what the allocator may give out
  double in_flight = 1;  // micro-batches whose activations it keeps
  // [layers dealt]: the same, where some numbers of layers make its chunks unlike; empty: always
  // `in_flight`.
  std::vector<double> in_flight_by_layers;
  double past_input_gradient = 0;  // of those in flight, the ones that keep only `between_halves`
  // Micro-batches between the halves of a split backward pass, for which recomputed activations
  // stay; and the part of them that is at work, one chunk of those that the stage holds.
  double between_halves = 0, at_work = 0;
  // Chunks that share its layers evenly, and whose backward pass frees a layer before the layer in
  // front of it is at work; 0: activations stay for weight gradients that are put off.
  int chunks = 1;
  double slowness = 1;  // time of a layer here over that on the reference device
  // Layers that it holds besides those dealt to it: those of multi-token prediction.
  std::vector<AllocatedLayer> own;
};

struct AllocationProblem {
  std::vector<AllocatedLayer> layers;
  std::vector<AllocatedStage> stages;
  int microbatches = 1;
  double fill = 1;  // r of the step's formula: 1 for 1F1B
  // Recomputation that a stage may choose. `full` is that of any number of its layers, or where
  // `full_layers` > 0 of exactly so many (of all where a stage has fewer).
  bool none = true, selective = true, full = true;
  int full_layers = 0;
};

struct StageAllocation {
  int layers = 0;       // dealt to it
  Recompute recompute;  // `full_layers` counts dealt and own layers
  Seconds time;         // of all its passes for one micro-batch
  int own_layers = 0;   // besides those dealt to it
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

// The problem of a plan's degrees under the cost model. The layers of a stage with several chunks
// are not contiguous: then all layers must be of one kind, so that only their number matters.
// Nothing for other plans, for schedules with two ways through the stages, and where activations
// are offloaded. Under PassOrders::any, times are the least that any order of passes allows. Where
// the job's cluster holds only some of the stages (plan_links()), times are without sends.
enum class PassOrders { of_the_plan, any };
std::optional<AllocationProblem> allocation_problem(const PreparedJob& job, const Plan& plan,
                                                    PassOrders orders = PassOrders::of_the_plan);

// The same also where unlike layers lie in chunks. Where is_contiguous is false, the problem is for
// planner/layers/layer_moves.h only: allocate_layers would take a stage's layers for contiguous.
std::optional<AllocationProblem> problem_of_moves(const PreparedJob& job, const Plan& plan);
// Whether the layers of each stage are contiguous, or all of one kind, so that their number
// decides.
bool is_contiguous(const PreparedJob& job, const Plan& plan);

// The layers of every chunk of the plan, in the order of `layers_per_stage`, where its stages have
// so many. Each stage shares its layers out evenly; what is left over goes to the chunk with the
// embedding or the head last.
std::vector<int> layers_of_chunks(const Plan& plan, const std::vector<int>& layers_of_stages);

// The request for `plan` with the layers and the recomputation of an allocation; the second names
// the layers of each chunk.
PlanRequest request_with(const Plan& plan, const Allocation& dealt);
PlanRequest request_with(const Plan& plan, const std::vector<StageAllocation>& stages,
                         std::vector<int> layers_of_chunks);

}  // namespace trainyard
