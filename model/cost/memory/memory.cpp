#include "model/cost/memory/memory.h"

#include <algorithm>

#include "model/cost/memory/kept_activations.h"
#include "model/cost/memory/offload.h"
#include "model/cost/memory/repeated_layers.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/sharding/data_parallel.h"
#include "model/workload/operators.h"

namespace trainyard {
namespace {

constexpr Bytes kGemmWorkspace(64.0 * 1024 * 1024);  // cuBLAS on Hopper, per stream set

bool on_device(OffloadTarget target) { return target == OffloadTarget::none; }

// Those of the states that lie there; `of_ends` of the parameters are no layer's.
MemoryByKind sharded_states(const Training& training, const Plan& plan, double parameters,
                            double of_ends, ShardDivisors by, OffloadTarget where) {
  const PrecisionRecipe& precision = training.precision;
  const bool copy = keeps_weights(training, plan);
  const double master = parameters * precision.master_weight_bytes;
  const double states = parameters * training.optimizer.moment_bytes +
                        of_ends * training.optimizer.more_at_ends + (copy ? master : 0);
  MemoryByKind memory;
  // Without a copy the master weights are the parameters: FSDP's module has no others. They lie
  // where the optimizer does, which updates them.
  if (copy && plan.offload.parameters == where) {
    memory.parameters = Bytes(parameters * precision.weight_bytes / by.parameters);
  }
  if (!copy && plan.offload.optimizer == where) memory.parameters = Bytes(master / by.optimizer);
  if (plan.offload.gradients == where) {
    memory.gradients = Bytes(parameters * kept_gradient_bytes(training) / by.gradients);
  }
  if (plan.offload.optimizer == where) memory.optimizer = Bytes(states / by.optimizer);
  return memory;
}

// What a stage repeats, in layers where those are repeated whole.
Recompute repeated_by(const PreparedJob& job, const Plan& plan, const StageParameters& stage,
                      int index) {
  return what_is_repeated(job.job.training.stack, recompute_of(plan, index), stage.layers);
}

// Of a rank.
Bytes bytes_on_host(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                    const StageParameters& stage, int index) {
  if (plan.offload == Offload{}) return Bytes(0);
  Bytes bytes = states_at(job.job.training, plan, stage, OffloadTarget::host).allocated();
  if (plan.offload.activations == OffloadTarget::host) {
    bytes += KeptInChunks(job, plan, costs, stage, index).in_flight(false) *
             offloaded_share(plan.offload, stage.layers);
  }
  return bytes;
}

// Share of its layers of each kind that a stage repeats whole. Of a number of them the mean: so no
// number takes less than all, which searches rely on.
RepeatedShares whole_shares(const PreparedJob& job, const Plan& plan, const StageParameters& stage,
                            int index) {
  const Recompute recompute = recompute_of(plan, index);
  if (repeats_every_second(job.job.training.stack, recompute)) {
    return repeated_shares(job, plan, stage, index, recompute);
  }
  RepeatedShares shares;
  shares.fill(full_recompute_share(recompute, stage.layers));
  return shares;
}

Bytes largest_layer(const StageCosts& costs, const StageParameters& stage,
                    const RepeatedShares& repeated) {
  Bytes largest;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    const bool counts = stage.kinds[kind] > 0 && repeated[kind] > 0;
    if (counts) largest = std::max(largest, costs.layers[kind].saved.everything);
  }
  return largest;
}

// The most that a layer has for the first half of its backward pass only.
Bytes largest_core(const StageCosts& costs, const StageParameters& stage) {
  Bytes largest;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    const SavedBytes& saved = costs.layers[kind].saved;
    if (stage.kinds[kind] > 0) largest = std::max(largest, saved.everything - saved.between_halves);
  }
  return largest;
}

// Of what a layer keeps of a micro-batch.
Bytes largest_kept(const StageCosts& costs, const StageParameters& stage, Recompute recompute) {
  const bool all_repeated = full_recompute_share(recompute, stage.layers) >= 1;
  Bytes largest;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    if (stage.kinds[kind] == 0) continue;
    const Bytes kept = kept_of(costs.layers[kind].saved, recompute, all_repeated ? 1 : 0);
    largest = std::max(largest, kept);
  }
  return largest;
}

// Layers whose activations leave and are on the device still: the one at work and the one on its
// way. Where only the first ones of a chunk do so, they have left when later ones begin
// (model/program/departures.h), so that each layer that stays takes the place of one.
int layers_on_the_way(const Plan& plan, const StageParameters& stage) {
  if (plan.offload.activation_layers == 0) return 2;
  const int of_chunk = stage.layers / chunks_held(pipeline_shape(plan));
  return std::clamp(2 - (of_chunk - plan.offload.activation_layers), 0, 2);
}

Bytes kept_here(const Plan& plan, const StageCosts& costs, const StageParameters& stage,
                Recompute recompute, Bytes kept) {
  if (on_device(plan.offload.activations)) return kept;
  const double away = offloaded_share(plan.offload, stage.layers);
  const Bytes layer = largest_kept(costs, stage, recompute);
  return std::min(kept, kept * (1 - away) + layers_on_the_way(plan, stage) * layer);
}

// Of the activations in flight, what the embedding's passes do not have beside them: its chunk's of
// their own micro-batch, not made yet or used already.
Bytes gone_at_embedding(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                        const StageParameters& stage, int index) {
  if (!stage.embedding) return Bytes(0);
  const KeptInChunks chunks(job, plan, costs, stage, index);
  return kept_here(plan, costs, stage, repeated_by(job, plan, stage, index), chunks.of_first());
}

Bytes largest_gradients(const StageCosts& costs, const StageParameters& stage) {
  Bytes largest;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    if (stage.kinds[kind] > 0) largest = std::max(largest, costs.layers[kind].gradients);
  }
  return largest;
}

bool repeats(Recompute recompute) {
  return recompute.mode == RecomputeMode::full || recompute.mode == RecomputeMode::selective;
}

// Blocks of keys that a ring makes the scores of again, one behind the other.
double blocks_of_scores(const PreparedJob& job, const Plan& plan) {
  const bool again = job.job.training.stack.selective == SelectiveRecompute::core_attention;
  const bool ring = plan.context_parallel_algorithm == ContextAlgorithm::ring;
  return again && ring ? plan.context_parallel : 1;
}

// The most that a layer's backward pass makes again at a time.
Bytes largest_repeated(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                       const StageParameters& stage, int index) {
  const Recompute recompute = repeated_by(job, plan, stage, index);
  if (recompute.mode == RecomputeMode::full) {
    return largest_layer(costs, stage, whole_shares(job, plan, stage, index));
  }
  Bytes largest;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    const SavedBytes& saved = costs.layers[kind].saved;
    if (stage.kinds[kind] > 0) largest = std::max(largest, saved.everything - saved.selective);
  }
  return largest / blocks_of_scores(job, plan);
}

// What a micro-batch has on the device between the halves of its backward pass and not before:
// activations that were repeated or fetched for the first half stay for the second.
Bytes back_between_halves(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                          const StageParameters& stage, int index) {
  const Recompute recompute = repeated_by(job, plan, stage, index);
  const bool fetched = !on_device(plan.offload.activations);
  if (!repeats(recompute) && !fetched) return Bytes(0);
  Bytes stays;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    stays += stage.kinds[kind] * costs.layers[kind].saved.between_halves;
  }
  if (fetched) {
    const double away = offloaded_share(plan.offload, stage.layers);
    const Bytes here = (1 - away) * saved_by_stage(costs, stage, recompute);
    return std::max(Bytes(0), stays - here);
  }
  if (recompute.mode == RecomputeMode::selective) {
    return std::max(Bytes(0), stays - saved_by_stage(costs, stage, recompute));
  }
  const RepeatedShares repeated = whole_shares(job, plan, stage, index);
  Bytes more;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    const SavedBytes& saved = costs.layers[kind].saved;
    more += repeated[kind] * stage.kinds[kind] * (saved.between_halves - saved.input_only);
  }
  return more;
}

// What a micro-batch keeps behind the first half of its split backward pass over what it kept
// before.
Bytes more_behind_first_half(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                             const StageParameters& stage, int index) {
  const Recompute recompute = repeated_by(job, plan, stage, index);
  if (recompute.mode == RecomputeMode::selective) return Bytes(0);
  const RepeatedShares repeated = whole_shares(job, plan, stage, index);
  Bytes more;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    const SavedBytes& saved = costs.layers[kind].saved;
    more += (1 - repeated[kind]) * stage.kinds[kind] * (saved.between_halves - saved.everything);
  }
  return more;
}

Bytes activation_bytes(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                       const StageParameters& stage, int index) {
  const PipelineShape shape = pipeline_shape(plan);
  const int held = chunks_held(shape);
  const KeptInChunks chunks(job, plan, costs, stage, index);
  Bytes kept =
      kept_here(plan, costs, stage, repeated_by(job, plan, stage, index), chunks.in_flight(true)) +
      chunks.at_boundaries();
  const int between = plan.schedule->chunks_between_halves(shape, index);
  if (between > 0 && on_device(plan.offload.activations)) {
    // As many chunks are there before the first halves as after them.
    const Bytes more = more_behind_first_half(job, plan, costs, stage, index);
    const int past = past_input_gradient(plan, index);
    kept += more * (static_cast<double>(more > Bytes(0) ? between : past) / held);
  }
  if (between > 1) {  // but for the one at work (`add_transients`)
    kept += back_between_halves(job, plan, costs, stage, index) * ((between - 1.0) / held);
  }
  if (stage.head) kept += costs.head.saved.everything * (1 + beside_turning(plan).all());
  return kept;
}

// While a layer's backward pass runs, or a chunk's where its halves are apart.
Bytes back_at_work(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                   const StageParameters& stage, int index) {
  const bool again = repeats(repeated_by(job, plan, stage, index));
  const Bytes layer = again ? largest_repeated(job, plan, costs, stage, index) : Bytes(0);
  const PipelineShape shape = pipeline_shape(plan);
  if (plan.schedule->chunks_between_halves(shape, index) == 0) return layer;
  // The layer at work has everything of itself.
  const Bytes more = again ? largest_core(costs, stage) : Bytes(0);
  return std::max(layer,
                  back_between_halves(job, plan, costs, stage, index) / chunks_held(shape) + more);
}

// The most that a layer's backward pass adds to what is in flight. Where weight gradients are put
// off, what is behind a layer stays for them.
Bytes back_beside_kept(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                       const StageParameters& stage, int index) {
  const Bytes again = back_at_work(job, plan, costs, stage, index);
  const Stack& stack = job.job.training.stack;
  const Recompute recompute = recompute_of(plan, index);
  const bool stays = splits_backward(*plan.schedule, plan.pipeline_parallel);
  if (!repeats_some(stack, recompute) || stays || !on_device(plan.offload.activations)) {
    return again;
  }
  const KeptInChunks chunks(job, plan, costs, stage, index);
  if (repeats_every_second(stack, recompute)) return std::min(again, chunks.most_made_again());
  return beside_kept(again, chunks.gone_before_repeats());
}

// Of the largest layer of a stage whose states come from elsewhere: what comes for its backward
// pass, in this order, and what it makes.
struct LayerBytes {
  Bytes weights, gradients, activations;
  Bytes made;
};

// While passes run whose states come from elsewhere: the layer at work, the one that comes and the
// one that goes. Under ZeRO-3 parts come two units ahead, to be gathered.
class StatesOnTheirWay {
 public:
  StatesOnTheirWay(const LayerBytes& bytes, Seconds work, BytesPerSecond link, double ahead)
      : bytes_(bytes), work_(work), link_(link), ahead_(ahead) {}

  // At the most of the moments when something begins to come.
  Bytes most_in_backward() const {
    const Seconds weights = bytes_.weights / link_;
    const Seconds gradients = weights + bytes_.gradients / link_;
    return std::max({at(Seconds(0)), at(weights), at(gradients)});
  }
  // The activations of two layers: one makes them, those of the one before go.
  Bytes in_forward() const { return (ahead_ + 1) * bytes_.weights + 2 * bytes_.activations; }

 private:
  Bytes at(Seconds time) const {
    const auto until = [time](Seconds end) { return time < end ? 1.0 : 0.0; };
    const Seconds weights = bytes_.weights / link_;
    const Seconds gradients = weights + bytes_.gradients / link_;
    const Seconds period = std::max(work_, gradients + bytes_.activations / link_);
    const Seconds gone = work_ + bytes_.gradients / link_;
    const double gradients_here = 1 - until(weights) + until(gone) + until(gone - period);
    return (ahead_ + until(work_)) * bytes_.weights + gradients_here * bytes_.gradients +
           (1 - until(gradients) + until(work_)) * bytes_.activations + until(work_) * bytes_.made;
  }

  const LayerBytes& bytes_;
  Seconds work_;
  BytesPerSecond link_;
  double ahead_ = 1;
};

Seconds longest_backward(const StageCosts& costs, const StageParameters& stage) {
  Seconds longest;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    const LayerCost& layer = costs.layers[kind];
    if (stage.kinds[kind] == 0) continue;
    longest = std::max(longest, layer.input_gradient.total() + layer.weight_gradient.total());
  }
  return longest;
}

// MTP layers' copy of the embedding is not there with it, nor are learned positions.
double matrix_at_head(const PreparedJob& job, const StageParameters& stage) {
  const double matrix = stage.embedding_matrix - job.end_parameters.positions;
  const double shared = stage.head && stage.embedding ? matrix : 0.0;
  return std::max({stage.head_matrix - stage.tied_embedding, stage.tied_embedding, shared});
}

// What states that lie elsewhere add to a stage's memory beside what it makes and keeps: while a
// layer is at work, and while the head is, with its own and those of the layer that comes.
struct StatesHere {
  Bytes at_layer, at_loss, at_head;
};
StatesHere states_here(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                       const StageParameters& stage, int index) {
  if (plan.offload == Offload{}) return {};
  const Training& training = job.job.training;
  const bool copy = keeps_weights(training, plan);
  const ShardDivisors by = dense_divisors(plan);
  const PrecisionRecipe& precision = training.precision;
  double weight = (copy ? precision.weight_bytes : precision.master_weight_bytes) / by.parameters;
  if (!weights_away(training, plan)) weight = 0;
  const double gradient = gradients_away(plan) ? kept_gradient_bytes(training) / by.gradients : 0;
  if (weight + gradient <= 0) return {};
  LayerBytes layer{Bytes(stage.largest_layer * weight),
                   Bytes(stage.largest_layer * gradient),
                   {},
                   largest_gradients(costs, stage)};
  if (!on_device(plan.offload.activations)) {
    layer.activations = largest_kept(costs, stage, repeated_by(job, plan, stage, index));
  }
  const double ahead = by.parameters > 1 ? 2 : 1;
  const StatesOnTheirWay way(layer, longest_backward(costs, stage),
                             job.job.cluster.device.host_bandwidth, ahead);
  const Bytes counted = 2 * layer.activations + layer.made;
  Bytes most = std::max(way.most_in_backward(), way.in_forward());
  if (splits_backward(*plan.schedule, plan.pipeline_parallel)) {
    most = std::max((ahead + 1) * layer.weights, 3 * layer.gradients) + counted;
  }
  const Bytes states = layer.weights + layer.gradients;
  const Bytes embedding(stage.embedding_matrix * std::max(weight, gradient));
  const Bytes matrix(matrix_at_head(job, stage) * (weight + gradient));
  // While the loss is made the link still carries the head's weights, where those come first; not
  // so what ZeRO-3 asks for two units ahead.
  const bool waits = weight > 0 && ahead == 1;
  const Bytes next = waits ? Bytes(0) : states;
  return {std::max(most - counted, embedding + states - counted), matrix + next, matrix + states};
}

// What ZeRO 2 and 3 have whole of a stage's parameters while passes run. Weights are gathered a
// unit ahead. A unit's gradients are scattered beside the next one's backward pass, so that two
// units' are there at most: of one pass, where it waits for its own
// (model/program/parts/sharded.cpp); without overlap before it, so that only one's are.
class WholeParameters {
 public:
  WholeParameters(const PreparedJob& job, const Plan& plan, const StageParameters& stage)
      : stage_(stage), matrix_(matrix_at_head(job, stage)), overlaps_(plan.overlap.data_parallel) {
    const Training& training = job.job.training;
    const ShardDivisors dense = dense_divisors(plan), expert = expert_divisors(plan);
    const auto is_shared = [&](double ShardDivisors::*by) {
      return dense.*by > 1 || (stage.experts > 0 && expert.*by > 1);
    };
    if (is_shared(&ShardDivisors::parameters)) weight_ = training.precision.weight_bytes;
    if (is_shared(&ShardDivisors::gradients)) gradient_ = whole_gradient_bytes(training);
    ends_are_shared_ = dense.gradients > 1;
    const bool waits = plan.pipeline_parallel == 1 || plan.held_zero_stage() >= 3;
    const LayersSideBySide two_largest = {stage.largest_layer, stage.largest_layer};
    const LayersSideBySide two = waits ? stage.side_by_side : two_largest;
    one_layer_ = Bytes(stage.largest_layer * (weight_ + gradient_));
    two_layers_ = Bytes(two.larger * (weight_ + gradient_) +
                        two.smaller * (overlaps_ ? std::max(weight_, gradient_) : weight_));
    end_weight_ = dense.parameters > 1 ? weight_ : 0;
  }

  // One's weights and gradients, and the next one's weights or the gradients of the one before.
  Bytes at_layers() const { return std::max(one_layer_, two_layers_); }
  // More than that beside the last layers: the head's gradient goes while the next unit's are made;
  // that of a matrix that is the embedding's as well grows until that one's pass.
  Bytes beside_layers() const {
    if (!stage_.head || !ends_are_shared_) return Bytes(0);
    const bool stays = stage_.embedding && stage_.head_matrix == 0;
    if (!stays && !overlaps_) return Bytes(0);
    const Bytes more(matrix_ * gradient_);
    return stays ? more : std::max(Bytes(0), one_layer_ + more - at_layers());
  }
  // More, or less, than `at_layers` while the loss is made: the head's matrix and its gradient.
  Bytes at_loss() const {
    if (!ends_are_shared_) return Bytes(0);
    return Bytes(matrix_ * (end_weight_ + gradient_)) - at_layers();
  }
  // The same behind it: the last layer's weights come when the logits and their copies are gone,
  // and there is no gradient of a layer yet.
  Bytes at_head() const {
    if (!ends_are_shared_) return Bytes(0);
    return at_loss() + Bytes(stage_.largest_layer * weight_);
  }
  // While the embedding's passes run, with its positions: its weights and the next layer's, or its
  // gradient and that of the layer whose pass came before.
  Bytes at_embedding() const {
    if (!stage_.embedding || !ends_are_shared_) return Bytes(0);
    if (!overlaps_) {
      return Bytes(std::max(stage_.embedding_matrix * end_weight_ + stage_.largest_layer * weight_,
                            stage_.embedding_matrix * gradient_));
    }
    return Bytes(stage_.embedding_matrix * std::max(end_weight_, gradient_) +
                 stage_.largest_layer * std::max(weight_, gradient_));
  }

 private:
  const StageParameters& stage_;
  double matrix_;
  Bytes one_layer_, two_layers_;
  double weight_ = 0, gradient_ = 0, end_weight_ = 0;  // bytes of a parameter; 0: each rank has all
  bool ends_are_shared_ = false;
  bool overlaps_ = false;
};

// The logits that turn back and what is there beside them.
struct AtHead {
  Bytes logits, states;
  Bytes all() const { return logits + states; }
};
// While their loss is made, or while the head's backward pass runs and the last layer's states
// come.
AtHead fullest_at_head(const LogitsAtHead& logits, const StatesHere& states,
                       const WholeParameters& whole) {
  const AtHead loss{logits.turning, states.at_loss + whole.at_loss()};
  const AtHead head{logits.turned, states.at_head + logits.input + whole.at_head()};
  return loss.all() > head.all() ? loss : head;
}

// A micro-batch's logits and a layer's backward pass (its gradients, its activations where they are
// recomputed or fetched) are never alive together: the peak has the larger of the two.
void add_transients(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                    const StageParameters& stage, int index, StageMemory& memory) {
  const Bytes recomputed = back_beside_kept(job, plan, costs, stage, index);
  const Bytes gradients = largest_gradients(costs, stage);
  const StatesHere states = states_here(job, plan, costs, stage, index);
  const WholeParameters whole(job, plan, stage);
  memory.at_peak.buffers = kGemmWorkspace + whole.at_layers();
  const Bytes buffers = gradients + states.at_layer + whole.beside_layers();
  const Bytes at_layer = recomputed + buffers;
  const Bytes at_embedding =
      whole.at_embedding() - whole.at_layers() - gone_at_embedding(job, plan, costs, stage, index);
  if (stage.head) {
    const LogitsAtHead logits = logits_at_head(job, plan);
    memory.at_peak.logits = logits.beside;
    const AtHead head = fullest_at_head(logits, states, whole);
    if (head.all() > std::max(at_layer, at_embedding)) {
      memory.at_peak.logits += head.logits;
      memory.at_peak.buffers += head.states;
      memory.moment = MemoryMoment::output_head;
      return;
    }
  }
  if (at_embedding > at_layer) {
    memory.at_peak.buffers += at_embedding;
    return;
  }
  memory.at_peak.recomputation = recomputed;
  memory.at_peak.buffers += buffers;
}

}  // namespace

BesideTurning beside_turning(const Plan& plan) {
  const PipelineShape shape = pipeline_shape(plan);
  const int stage = place_of(shape, 0, layer_chunks(shape) - 1).stage;
  if (plan.schedule->splits_backward) {
    const int between = plan.schedule->chunks_between_halves(shape, stage);
    return {.put_off = std::max(0, between - 1)};
  }
  // Chunks are there so that a micro-batch turns back at once.
  if (chunks_held(shape) > 1) return {};
  return {.waiting = plan.schedule->chunks_in_flight(shape, stage) - 1};
}

LogitsAtHead logits_at_head(const PreparedJob& job, const Plan& plan) {
  const auto vocabulary = padded_vocabulary(job.job.model.vocabulary, plan.tensor_parallel);
  const double logits =
      tokens_per_rank(job, plan) * static_cast<double>(vocabulary) / plan.tensor_parallel;
  const double gradient = logit_gradient_bytes(job.job.training);
  const double rest = saved_logit_bytes(job.job.training.stack, plan.tensor_parallel) - gradient;
  // Of every micro-batch as they left the head.
  const bool keeps = job.job.training.stack.pipeline_keeps_logits && plan.pipeline_parallel > 1;
  const double kept = keeps ? plan.microbatches * job.job.training.precision.activation_bytes : 0.0;
  // Of all predictions of a token the last has its gradient while the others still wait.
  const int predictions = 1 + job.job.model.mtp_layers;
  const BesideTurning beside = beside_turning(plan);
  const double others = logits * (predictions - 1) * rest;
  const bool gathers = plan.sequence_parallel && plan.tensor_parallel > 1;
  const double input = tokens_per_rank(job, plan) * job.job.model.hidden_size *
                       job.job.training.precision.activation_bytes;
  return {.turning = Bytes(others + logits * (rest + gradient)),
          .turned = Bytes(others + logits * gradient),
          .input = Bytes(gathers ? 2 * input : input),
          .beside = Bytes(logits * predictions *
                          (beside.waiting * rest + beside.put_off * gradient + kept))};
}

int past_input_gradient(const Plan& plan, int stage) {
  const PipelineShape shape = pipeline_shape(plan);
  const int head = place_of(shape, 0, layer_chunks(shape) - 1).stage;
  return stage == head ? plan.schedule->chunks_past_input_gradient(shape, stage) : 0;
}

bool keeps_weights(const Training& training, const Plan& plan) {
  return training.stack.keeps_weight_copy || training.precision.master_weight_bytes == 0 ||
         plan.held_zero_stage() < 3;
}

Bytes saved_by_stage(const StageCosts& costs, const StageParameters& stage, Recompute recompute) {
  const double repeated = full_recompute_share(recompute, stage.layers);
  Bytes sum;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    if (stage.kinds[kind] == 0) continue;
    sum += kept_of(costs.layers[kind].saved, recompute, repeated) * stage.kinds[kind];
  }
  return sum;
}

double offloaded_share(const Offload& offload, int layers) {
  if (offload.activations == OffloadTarget::none) return 0;
  if (offload.activation_layers == 0 || layers == 0) return 1;
  return std::min(1.0, static_cast<double>(offload.activation_layers) / layers);
}

bool repeats_every_second(const Stack& stack, Recompute recompute) {
  return recompute.mode == RecomputeMode::selective &&
         stack.selective == SelectiveRecompute::half_of_layers;
}

Recompute what_is_repeated(const Stack& stack, Recompute recompute, int layers) {
  if (repeats_every_second(stack, recompute)) return {RecomputeMode::full, (layers + 1) / 2};
  const bool of_scores = stack.selective == SelectiveRecompute::core_attention;
  const bool keeps_none = recompute.mode == RecomputeMode::selective && of_scores;
  return keeps_none && stack.flash_attention ? Recompute{RecomputeMode::none} : recompute;
}

bool repeats_some(const Stack& stack, Recompute recompute) {
  return repeats_every_second(stack, recompute) ||
         (recompute.mode == RecomputeMode::full && recompute.full_layers > 0);
}

double full_recompute_share(Recompute recompute, int layers) {
  if (recompute.mode != RecomputeMode::full) return 0;
  if (recompute.full_layers == 0 || layers == 0) return 1;
  return std::min(1.0, static_cast<double>(recompute.full_layers) / layers);
}

MemoryByKind states_at(const Training& training, const Plan& plan, const StageParameters& stage,
                       OffloadTarget where) {
  MemoryByKind memory =
      sharded_states(training, plan, stage.dense, stage.of_ends(), dense_divisors(plan), where);
  if (stage.experts == 0) return memory;
  const MemoryByKind experts =
      sharded_states(training, plan, stage.experts, 0, expert_divisors(plan), where);
  memory.parameters += experts.parameters;
  memory.gradients += experts.gradients;
  memory.optimizer += experts.optimizer;
  return memory;
}

MemoryByKind state_memory(const Training& training, const Plan& plan,
                          const StageParameters& stage) {
  return states_at(training, plan, stage, OffloadTarget::none);
}

StageMemory stage_memory(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                         const StageParameters& stage, int index) {
  StageMemory out;
  MemoryByKind& memory = out.at_peak;
  memory = state_memory(job.job.training, plan, stage);
  add_transients(job, plan, costs, stage, index, out);
  memory.runtime = job.job.training.stack.runtime_memory;
  fill_activations(job, plan, costs, stage, index, out);
  return out;
}

void fill_activations(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                      const StageParameters& stage, int index, StageMemory& memory) {
  MemoryByKind& peak = memory.at_peak;
  peak.activations = activation_bytes(job, plan, costs, stage, index);
  peak.fragmentation = peak.allocated() * job.job.training.stack.fragmentation;
  memory.on_host = bytes_on_host(job, plan, costs, stage, index);
}

}  // namespace trainyard
