#include "model/plan/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "model/plan/validity.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

StackOverlap overlap(const OverlapRequest& asked, const StackOverlap& stack) {
  return {
      .tensor_parallel = asked.tensor_parallel.value_or(stack.tensor_parallel),
      .context_parallel = asked.context_parallel.value_or(stack.context_parallel),
      .expert_parallel = asked.expert_parallel.value_or(stack.expert_parallel),
      .pipeline = asked.pipeline.value_or(stack.pipeline),
      .data_parallel = asked.data_parallel.value_or(stack.data_parallel),
  };
}

// Layers of each chunk; an entry for a whole stage is spread over its v chunks.
std::vector<int> layers_per_chunk(const Proposal& proposal) {
  const int stages = proposal.request.pipeline_parallel;
  const std::vector<int>& asked = proposal.request.layers_per_stage;
  if (static_cast<int>(asked.size()) != stages || proposal.virtual_stages == 1) return asked;
  const PipelineShape shape = proposal.schedule->shape(stages, proposal.virtual_stages, 1);
  std::vector<int> layers;
  for (int chunk = 0; chunk < layer_chunks(shape); ++chunk) {
    const auto stage = static_cast<std::size_t>(place_of(shape, 0, chunk).stage);
    layers.push_back(asked[stage] / shape.chunks);
  }
  return layers;
}

// If all stages recompute alike, the plan has one entry. Otherwise Plan::recompute is the entry
// that recomputes the most: the later mode in the enumeration, then the larger number of layers.
void set_recompute(const PlanRequest& request, Plan& plan) {
  const std::vector<Recompute>& stages = request.recompute_per_stage;
  plan.recompute = request.recompute;
  if (stages.empty()) return;
  const auto extent = [](const Recompute& r) {
    constexpr int kAll = std::numeric_limits<int>::max();
    return std::pair(r.mode, r.full_layers == 0 ? kAll : r.full_layers);
  };
  plan.recompute = *std::max_element(
      stages.begin(), stages.end(),
      [&](const Recompute& a, const Recompute& b) { return extent(a) < extent(b); });
  const bool alike = std::all_of(stages.begin(), stages.end(),
                                 [&](const Recompute& r) { return r == stages.front(); });
  if (!alike) plan.recompute_per_stage = stages;
}

// Requires: every rule holds, so every product below fits an int.
Plan complete(const Proposal& proposal) {
  const PlanRequest& request = proposal.request;
  const Stack& stack = proposal.training.stack;
  Plan plan = plan_of_degrees(request, static_cast<int>(proposal.data_parallel));
  plan.sequence_parallel = proposal.sequence_parallel;
  plan.context_parallel_algorithm = request.context_parallel_algorithm;
  plan.virtual_stages = proposal.virtual_stages;
  plan.schedule = proposal.schedule;
  plan.passes = request.passes;
  plan.layers_per_stage = layers_per_chunk(proposal);
  plan.micro_batch = request.micro_batch;
  plan.microbatches = static_cast<int>(proposal.microbatches);
  plan.zero_stage = zero_stage_of(request, stack);
  plan.pipeline_no_sync = stack.pipeline_no_sync;
  set_recompute(request, plan);
  plan.overlap = overlap(request.overlap, stack.overlap);
  plan.offload = request.offload;
  plan.capacity_factor = request.capacity_factor.value_or(0);
  plan.load_imbalance = request.load_imbalance;
  plan.collective = request.collective;
  const bool waits = proposal.schedule->optimizer_barrier || !stack.limits.post_validation;
  plan.optimizer_barrier = request.optimizer_barrier.value_or(stack.optimizer_barrier && waits);
  return plan;
}

}  // namespace

Expected<Plan> make_plan(const PlanRequest& request, const Transformer& model,
                         const Cluster& cluster, const Training& training) {
  const Proposal proposal = propose(request, model, cluster, training);
  if (const PlanRule* broken = broken_rule(proposal)) {
    return tl::unexpected<Error>(broken->refusal(proposal));
  }
  return complete(proposal);
}

std::optional<Plan> plan_if_legal(const PlanRequest& request, const Transformer& model,
                                  const Cluster& cluster, const Training& training) {
  const Proposal proposal = propose(request, model, cluster, training);
  if (broken_rule(proposal) != nullptr) return std::nullopt;
  return complete(proposal);
}

Plan plan_of_degrees(const PlanRequest& request, int data_parallel) {
  Plan plan;
  plan.tensor_parallel = request.tensor_parallel;
  plan.context_parallel = request.context_parallel;
  plan.pipeline_parallel = request.pipeline_parallel;
  plan.data_parallel = data_parallel;
  plan.expert_parallel = request.expert_parallel;
  plan.expert_tensor_parallel = request.expert_tensor_parallel;
  plan.expert_data_parallel = plan.tensor_parallel * plan.context_parallel * data_parallel /
                              (plan.expert_parallel * plan.expert_tensor_parallel);
  plan.sharding_group = request.sharding_group.value_or(data_parallel * plan.context_parallel);
  plan.rank_order = request.rank_order;
  return plan;
}

PipelineShape pipeline_shape(const Plan& plan) {
  return plan.schedule->shape(plan.pipeline_parallel, plan.virtual_stages, plan.microbatches);
}

bool recomputes(const Plan& plan, RecomputeMode mode) {
  if (plan.recompute_per_stage.empty()) return plan.recompute.mode == mode;
  return std::any_of(plan.recompute_per_stage.begin(), plan.recompute_per_stage.end(),
                     [mode](const Recompute& stage) { return stage.mode == mode; });
}

// Both rules of design §3 give these numbers. If p·v divides L + 2, then r = p·v − 2, and all
// chunks but the first and the last, which have the embedding and the head, get one layer more.
LayersOfChunks::LayersOfChunks(const Plan& plan, int layers)
    : named_(plan.layers_per_stage),
      stages_(plan.pipeline_parallel),
      chunks_(plan.virtual_stages),
      even_(layers / (stages_ * chunks_)),
      longer_(layers % (stages_ * chunks_)) {}

int LayersOfChunks::before(int chunk) const {
  if (named_.empty()) return even_ * chunk + std::clamp(chunk - 1, 0, longer_);
  return std::accumulate(named_.begin(), named_.begin() + chunk, 0);
}

int LayersOfChunks::of_stage(int stage) const {
  if (named_.empty()) {
    const int longer = stage > longer_ ? 0 : (longer_ - stage) / stages_ + 1;
    const bool has_first = stage == 0;  // chunk 0 is never one of the longer chunks
    return even_ * chunks_ + longer - (has_first ? 1 : 0);
  }
  int sum = 0;
  for (int chunk = 0; chunk < chunks_; ++chunk) sum += (*this)[chunk * stages_ + stage];
  return sum;
}

std::vector<int> LayersOfChunks::all() const {
  std::vector<int> layers(static_cast<std::size_t>(stages_) * static_cast<std::size_t>(chunks_));
  for (int chunk = 0; int& own : layers) own = (*this)[chunk++];
  return layers;
}

}  // namespace trainyard
