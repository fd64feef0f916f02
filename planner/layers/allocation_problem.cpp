#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/cost/layer_cost.h"
#include "model/cost/memory/held_at_boundaries.h"
#include "model/cost/memory/memory.h"
#include "model/cost/messages/pipeline_sends.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/sharding/shard_divisors.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/schedule/schedule.h"
#include "planner/bound/step_bound.h"
#include "planner/layers/allocation.h"
#include "planner/request.h"

namespace trainyard {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// What the embedding, every layer and the head hold on their own: the stages of a plan that gives
// each of these parts a stage.
std::vector<StageParameters> parts(const PreparedJob& job, Plan plan) {
  const int layers = job.job.model.layers;
  plan.schedule = find_schedule("1f1b");
  plan.virtual_stages = 1;
  plan.pipeline_parallel = layers + 2;
  plan.layers_per_stage.assign(at(layers + 2), 1);
  plan.layers_per_stage.front() = 0;
  plan.layers_per_stage.back() = 0;
  std::vector<StageParameters> result;
  stage_parameters(job, plan, result);
  return result;
}

Seconds time_of(const LayerCost& cost) {
  return cost.forward.total() + cost.input_gradient.total() + cost.weight_gradient.total();
}

// Adds the exposed second gather: that under the plan's schedule, or under any order of passes the
// lesser of a whole and a split backward pass.
void add_shown_gather(const Plan& plan, PassOrders orders, LayerCost& cost) {
  if (orders == PassOrders::of_the_plan) return add_second_gather(plan, cost);
  PassCost& pass = cost.input_gradient;
  const Seconds gather = std::min(cost.second_gather.whole, cost.second_gather.split);
  pass.tensor_parallel += std::max(Seconds(0), gather - pass.launch);
}

std::size_t kind_of(const StageParameters& part) {
  const auto found =
      std::find_if(part.kinds.begin(), part.kinds.end(), [](int n) { return n > 0; });
  return static_cast<std::size_t>(found - part.kinds.begin());
}

PassTimes passes_of(const LayerCost& layer) {
  return {.forward = layer.forward.total(),
          .input_gradient = layer.input_gradient.total(),
          .weight_gradient = layer.weight_gradient.total()};
}

// The layers of each chunk of a stage with so many. The extra ones go to its last chunks, which
// have the fewest micro-batches in flight, or to its first ones where the last chunk has the head.
std::vector<int> chunks_of_stage(PipelineShape shape, int stage, int layers) {
  std::vector<int> chunks(at(shape.chunks), layers / shape.chunks);
  const bool before_head = shape.route == Route::loop && stage + 1 == shape.stages;
  for (int turn = 0; turn < layers % shape.chunks; ++turn) {
    ++chunks[at(before_head ? turn : shape.chunks - 1 - turn)];
  }
  return chunks;
}

class Translation {
 public:
  Translation(const PreparedJob& job, const Plan& plan, PassOrders orders)
      : job_(job),
        plan_(plan),
        links_(plan_links(job, plan)),
        costs_(stage_costs(job, plan, links_)),
        parts_(parts(job, plan)),
        mtp_(split_off_mtp(parts_.back())),
        plain_(without_recompute(plan)),
        buffers_of_none_(buffers_of({})) {
    for (LayerCost& layer : costs_.layers) add_shown_gather(plan, orders, layer);
    add_shown_gather(plan, orders, costs_.head);
  }

  AllocationProblem run() const {
    AllocationProblem problem;
    problem.microbatches = plan_.microbatches;
    add_layers(problem);
    PipelineSends sends = pipeline_sends(job_, plan_, links_);
    const bool holds_all = sends.stages == plan_.pipeline_parallel;
    if (!holds_all) sends = {};
    for (int stage = 0; stage < plan_.pipeline_parallel; ++stage) {
      problem.stages.push_back(stage_of(stage, sends));
    }
    problem.fill =
        plan_.schedule->fill(pipeline_shape(plan_), passes_of(costs_.layers[kind_of(parts_[1])]));
    return problem;
  }

 private:
  // Takes the layers of multi-token prediction, which no plan deals out, from `head`, and leaves
  // their states with it. Returns one of the layers, if there are any.
  static std::optional<StageParameters> split_off_mtp(StageParameters& head) {
    if (head.layers == 0) return std::nullopt;
    StageParameters layer;
    layer.kinds[kMtpKind] = 1;
    layer.layers = 1;
    layer.experts = head.experts;
    layer.largest_layer = head.largest_layer;
    head.kinds = {};
    head.layers = 0;
    head.largest_layer = 0;
    head.side_by_side = {};
    return layer;
  }

  static Plan without_recompute(Plan plan) {
    plan.recompute = {};
    plan.recompute_per_stage.clear();
    return plan;
  }

  // Most layers of one kind are alike, and share one computation.
  void add_layers(AllocationProblem& problem) const {
    std::array<std::size_t, kLayerKinds> last{};  // of each kind, in parts_; 0: none yet
    for (std::size_t layer = 1; layer + 1 < parts_.size(); ++layer) {
      std::size_t& known = last[kind_of(parts_[layer])];
      const bool alike = known > 0 && parts_[known] == parts_[layer];
      problem.layers.push_back(alike ? problem.layers[known - 1] : layer_of(parts_[layer]));
      known = layer;
    }
  }

  // Buffers of a stage that has only this part and nothing in flight.
  Bytes buffers_of(const StageParameters& part) const {
    return stage_memory(job_, plain_, costs_, part, plan_.pipeline_parallel - 1).at_peak.buffers;
  }

  Bytes states_of(const StageParameters& part) const {
    const MemoryByKind held = state_memory(job_.job.training, plan_, part);
    return held.parameters + held.gradients + held.optimizer;
  }

  AllocatedLayer layer_of(const StageParameters& part) const {
    const LayerCost& cost = costs_.layers[kind_of(part)];
    AllocatedLayer layer;
    layer.time = time_of(cost);
    layer.selective = cost.selective_recompute.total();
    layer.full = cost.full_recompute.total();
    layer.states = states_of(part);
    layer.saved = cost.saved.everything;
    layer.saved_selective = cost.saved.selective;
    layer.saved_by_full = cost.saved.input_only;
    layer.between_halves = cost.saved.between_halves;
    layer.gradients = cost.gradients;
    layer.gathered = buffers_of(part) - buffers_of_none_ - cost.gradients;
    StageParameters beside = part;
    beside.side_by_side = {beside.largest_layer, beside.largest_layer};
    layer.gathered_beside = buffers_of(beside) - buffers_of(part);
    return layer;
  }

  AllocatedLayer mtp_layer() const {
    AllocatedLayer layer = layer_of(*mtp_);
    layer.states = Bytes(0);
    return layer;
  }

  // The transient of the output head: logits and, under ZeRO-3, what the head's gathered copy takes
  // beyond that of a layer at work. It peaks while the loss is computed, or behind it, when the
  // next layer's weights come. Of unlike layers the smallest counts, so that there is room beside
  // any.
  Bytes at_head(const StageParameters& head, const LogitsAtHead& logits) const {
    const Bytes turned = logits.turned + logits.input;
    if (dense_divisors(plan_).parameters <= 1) return std::max(logits.turning, turned);
    double layer = parts_[1].largest_layer;
    for (std::size_t i = 2; i + 1 < parts_.size(); ++i) {
      layer = std::min(layer, parts_[i].largest_layer);
    }
    const Training& training = job_.job.training;
    const double weight = training.precision.weight_bytes;
    const double gradient = whole_gradient_bytes(training);
    const double second = plan_.overlap.data_parallel ? std::max(weight, gradient) : weight;
    const Bytes more =
        buffers_of(head) - buffers_of_none_ - Bytes(layer * (weight + gradient + second));
    return std::max(logits.turning + std::max(Bytes(0), more),
                    turned + std::max(Bytes(0), more + Bytes(layer * weight)));
  }

  // States that are saved where one stage has both embedding and head: those of a tied table, else
  // none.
  Bytes tied_states() const {
    Plan one = plan_;
    one.schedule = find_schedule("1f1b");
    one.virtual_stages = one.pipeline_parallel = 1;
    one.layers_per_stage.clear();
    std::vector<StageParameters> all;
    stage_parameters(job_, one, all);
    Bytes sum;
    for (const StageParameters& part : parts_) sum += states_of(part);
    return sum - states_of(all.front());
  }

  // AllocatedStage::in_flight_by_layers of a stage whose last chunk has `own` layers besides those
  // dealt to it.
  std::vector<double> in_flight_by_layers(int index, std::size_t own, double mean) const {
    const PipelineShape shape = pipeline_shape(plan_);
    std::vector<double> in_flight;
    if (chunks_held(shape) == 1 || shape.route == Route::both_ways) return in_flight;
    in_flight.push_back(mean);
    std::vector<Bytes> of_chunks(at(shape.chunks));
    for (int layers = 1; layers <= job_.job.model.layers; ++layers) {
      const std::vector<int> dealt = chunks_of_stage(shape, index, layers);
      std::ranges::transform(dealt, of_chunks.begin(), [](int n) { return Bytes(n); });
      if (own > 0) of_chunks.back() += Bytes(static_cast<double>(own));
      const Bytes most = most_kept(*plan_.schedule, shape, index, of_chunks);
      in_flight.push_back(most.value() / (layers + static_cast<double>(own)));
    }
    return in_flight;
  }

  // Of micro-batches in flight the mean of the stage's chunks, in each of which layers keep enough.
  Bytes held_at_boundaries(int index, double in_flight) const {
    const HeldAtBoundaries held(job_, plan_, index);
    const int chunks = chunks_held(pipeline_shape(plan_));
    constexpr Bytes kEnough(1e15);
    Bytes more;
    for (int chunk = 0; chunk < chunks; ++chunk) more += held.in_flight(chunk, kEnough) - kEnough;
    return held.standing() + in_flight * more;
  }

  AllocatedStage stage_of(int index, const PipelineSends& sends) const {
    const Stack& stack = job_.job.training.stack;
    const PipelineShape shape = pipeline_shape(plan_);
    AllocatedStage stage;
    stage.in_flight =
        static_cast<double>(plan_.schedule->chunks_in_flight(shape, index)) / chunks_held(shape);
    const double past = past_input_gradient(plan_, index);
    stage.past_input_gradient = past / chunks_held(shape);
    const double between = plan_.schedule->chunks_between_halves(shape, index);
    stage.between_halves = between / chunks_held(shape);
    stage.at_work = between > 0 ? 1.0 / chunks_held(shape) : 0;
    const bool stays = splits_backward(*plan_.schedule, plan_.pipeline_parallel);
    stage.chunks = stays ? 0 : shape.chunks;
    stage.fixed = buffers_of_none_ + held_at_boundaries(index, stage.in_flight);
    if (index == place_of(shape, 0, 0).stage) {
      const StageParameters& embedding = parts_.front();
      stage.time += time_of(costs_.embedding);
      stage.fixed += states_of(embedding) + costs_.embedding.saved.everything * stage.in_flight;
    }
    if (index == place_of(shape, 0, layer_chunks(shape) - 1).stage) {
      const StageParameters& head = parts_.back();
      if (index == place_of(shape, 0, 0).stage) stage.fixed -= tied_states();
      stage.time += time_of(costs_.head);
      const LogitsAtHead logits = logits_at_head(job_, plan_);
      const double there = 1 + beside_turning(plan_).all();
      stage.fixed += states_of(head) + costs_.head.saved.everything * there + logits.beside;
      stage.head = at_head(head, logits);
      if (mtp_) stage.own.assign(at(job_.job.model.mtp_layers), mtp_layer());
    }
    stage.in_flight_by_layers = in_flight_by_layers(index, stage.own.size(), stage.in_flight);
    stage.time += sends_in_passes(stack, plan_, sends, index).total();
    stage.capacity =
        (job_.job.cluster.usable_memory() - stack.runtime_memory) / (1 + stack.fragmentation);
    return stage;
  }

  const PreparedJob& job_;
  const Plan& plan_;
  PlanLinks links_;
  StageCosts costs_;
  std::vector<StageParameters> parts_;  // embedding, layers, head
  std::optional<StageParameters> mtp_;  // of the stage of the head
  Plan plain_;                          // nothing repeated
  Bytes buffers_of_none_;               // of a stage without parts
};

// A schedule with a formula for unlike stages, and all activations on the device.
bool is_plain(const Plan& plan) {
  return plan.schedule->fill != nullptr && plan.offload.activations == OffloadTarget::none;
}

}  // namespace

bool is_contiguous(const PreparedJob& job, const Plan& plan) {
  return plan.virtual_stages == 1 || job.only_kind.has_value();
}

std::optional<AllocationProblem> allocation_problem(const PreparedJob& job, const Plan& plan,
                                                    PassOrders orders) {
  if (!is_plain(plan) || !is_contiguous(job, plan)) return std::nullopt;
  return Translation(job, plan, orders).run();
}

std::optional<AllocationProblem> problem_of_moves(const PreparedJob& job, const Plan& plan) {
  if (!is_plain(plan)) return std::nullopt;
  return Translation(job, plan, PassOrders::of_the_plan).run();
}

std::vector<int> layers_of_chunks(const Plan& plan, const std::vector<int>& layers_of_stages) {
  const PipelineShape shape = pipeline_shape(plan);
  std::vector<int> layers(at(layer_chunks(shape)));
  for (int stage = 0; stage < shape.stages; ++stage) {
    const std::vector<int> own = chunks_of_stage(shape, stage, layers_of_stages[at(stage)]);
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      layers[at(layer_chunk_of(shape, {stage, chunk}))] = own[at(chunk)];
    }
  }
  return layers;
}

namespace {

int repeatable(const StageAllocation& stage) { return stage.layers + stage.own_layers; }

// A stage without layers recomputes nothing whatever it is told: it takes its neighbour's choice,
// so that the list has no needless entries.
void fill_empty_stages(const std::vector<StageAllocation>& stages, std::vector<Recompute>& all) {
  const auto with_layers = std::ranges::find_if(
      stages, [](const StageAllocation& stage) { return repeatable(stage) > 0; });
  std::size_t from = static_cast<std::size_t>(with_layers - stages.begin());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (repeatable(stages[i]) > 0) from = i;
    all[i] = all[from];
  }
}

}  // namespace

PlanRequest request_with(const Plan& plan, const Allocation& dealt) {
  std::vector<int> layers;
  layers.reserve(dealt.stages.size());
  for (const StageAllocation& stage : dealt.stages) layers.push_back(stage.layers);
  return request_with(plan, dealt.stages, layers_of_chunks(plan, layers));
}

PlanRequest request_with(const Plan& plan, const std::vector<StageAllocation>& stages,
                         std::vector<int> layers_of_chunks) {
  PlanRequest request = request_of(plan);
  request.layers_per_stage = std::move(layers_of_chunks);
  request.recompute_per_stage.clear();
  request.recompute_per_stage.reserve(stages.size());
  for (const StageAllocation& stage : stages) {
    const bool whole = stage.recompute.mode == RecomputeMode::full &&
                       stage.recompute.full_layers >= repeatable(stage);
    request.recompute_per_stage.push_back(whole ? Recompute{RecomputeMode::full, 0}
                                                : stage.recompute);
  }
  fill_empty_stages(stages, request.recompute_per_stage);
  return request;
}

}  // namespace trainyard
