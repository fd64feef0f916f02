#include "model/program/lower.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "model/program/blocks.h"
#include "model/program/buckets.h"
#include "model/program/chunk_units.h"
#include "model/program/departures.h"
#include "model/program/parts/offload.h"
#include "model/program/parts/recompute.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

StepPass step_pass(PassKind kind) {
  switch (kind) {
    case PassKind::forward:
      return StepPass::forward;
    case PassKind::backward:
      return StepPass::backward;
    case PassKind::input_gradient:
      return StepPass::input_gradient;
    case PassKind::weight_gradient:
      break;
  }
  return StepPass::weight_gradient;
}

int block_of(const UnitBlocks& unit, StepPass pass) {
  switch (pass) {
    case StepPass::forward:
      return unit.forward;
    case StepPass::backward:
      return unit.backward;
    case StepPass::input_gradient:
      return unit.input_gradient;
    case StepPass::weight_gradient:
      return unit.weight_gradient;
    case StepPass::start:
    case StepPass::finish:
      break;
  }
  return -1;
}

int loss_block_of(const UnitBlocks& unit, StepPass pass) {
  if (pass == StepPass::backward) return unit.loss_backward;
  return pass == StepPass::input_gradient ? unit.loss_input_gradient : -1;
}

// Slots for the activations of a chunk. A micro-batch takes the lowest free slot when its forward
// pass begins and gives it back after the last pass that uses its activations.
class Slots {
 public:
  int take(int microbatch) {
    const auto free = std::find(holder_.begin(), holder_.end(), kNobody);
    const auto slot = static_cast<int>(free - holder_.begin());
    if (free == holder_.end()) {
      holder_.push_back(microbatch);
    } else {
      *free = microbatch;
    }
    return slot;
  }
  int of(int microbatch) const {
    return static_cast<int>(std::find(holder_.begin(), holder_.end(), microbatch) -
                            holder_.begin());
  }
  void give_back(int slot) { holder_[static_cast<std::size_t>(slot)] = kNobody; }
  int most() const { return static_cast<int>(holder_.size()); }

 private:
  static constexpr int kNobody = -1;
  std::vector<int> holder_;
};

// Whether a pass of this kind leaves reduced gradients of the unit that another pass may wait for.
bool sums_up(const UnitBlocks& unit, StepPass pass) {
  if (!unit.sums || pass == StepPass::forward) return false;
  return pass == StepPass::backward || (pass == StepPass::input_gradient) == unit.sums_with_input;
}

const CopyBlocks& copies_of(const UnitBlocks& unit, StepPass pass) {
  switch (pass) {
    case StepPass::forward:
      return unit.forward_copies;
    case StepPass::backward:
      return unit.backward_copies;
    case StepPass::input_gradient:
      return unit.input_copies;
    case StepPass::weight_gradient:
    case StepPass::start:
    case StepPass::finish:
      break;
  }
  return unit.weight_copies;
}

class StageBuilder {
 public:
  StageBuilder(const Lowering& lowering, const ProgramBlocks& blocks, const StageChunks& chunks,
               const std::vector<ChunkBuckets>& buckets,
               const std::vector<ChunkDepartures>& departures, PipelineShape shape)
      : lowering_(lowering),
        blocks_(blocks),
        plan_(lowering.plan),
        chunks_(chunks),
        buckets_(buckets),
        departures_(departures),
        shape_(shape) {
    program_.chunks = chunks.layouts();
  }

  StageProgram build(const std::vector<Pass>& passes) {
    start();
    std::vector<Slots> slots(program_.chunks.size());
    const std::size_t drain = first_of_drain(passes);
    for (std::size_t i = 0; i < drain; ++i) {
      const Pass& pass = passes[i];
      Slots& mine = slots[static_cast<std::size_t>(pass.chunk)];
      const bool begins = pass.kind == PassKind::forward;
      const int slot = begins ? mine.take(pass.microbatch) : mine.of(pass.microbatch);
      const bool last = completes_gradients(passes, i);
      if (pass.paired) {
        const Pass& beside = passes[i + 1];
        const Slots& its = slots[static_cast<std::size_t>(beside.chunk)];
        add_pass(beside, its.of(beside.microbatch), Part::receive, false);
        add_pass(pass, slot, Part::inner, last);
      } else if (i > 0 && passes[i - 1].paired) {
        const Pass& beside = passes[i - 1];
        const Slots& its = slots[static_cast<std::size_t>(beside.chunk)];
        add_pass(pass, slot, Part::inner, last);
        add_pass(beside, its.of(beside.microbatch), Part::send, false);
      } else {
        add_pass(pass, slot, Part::whole, last);
      }
      if (ends(pass.kind)) mine.give_back(slot);
    }
    add_drain(passes, drain, slots);
    for (const Slots& mine : slots) program_.slots = std::max(program_.slots, mine.most());
    finish();
    return std::move(program_);
  }

 private:
  static bool ends(PassKind kind) {
    return kind == PassKind::backward || kind == PassKind::weight_gradient;
  }

  // Whether no later pass adds to the gradients of the same chunk.
  static bool completes_gradients(const std::vector<Pass>& passes, std::size_t at) {
    return ends(passes[at].kind) &&
           std::none_of(passes.begin() + static_cast<std::ptrdiff_t>(at) + 1, passes.end(),
                        [chunk = passes[at].chunk](const Pass& later) {
                          return ends(later.kind) && later.chunk == chunk;
                        });
  }

  // The first of the weight-gradient passes that end the list of a last stage whose head is tied to
  // the embedding on another stage. Of these passes the head's parts run first, so that the first
  // stage need not wait for the layers' parts (the zero-bubble authors' WeightGradStore starts that
  // sum before the delayed gradients). If all stages end together, nothing is gained.
  std::size_t first_of_drain(const std::vector<Pass>& passes) const {
    std::size_t first = passes.size();
    if (!sums_before_drain()) return first;
    while (first > 0 && passes[first - 1].kind == PassKind::weight_gradient) --first;
    return first;
  }
  void add_drain(const std::vector<Pass>& passes, std::size_t first,
                 const std::vector<Slots>& slots) {
    for (const Part part : {Part::head, Part::layers}) {
      for (std::size_t i = first; i < passes.size(); ++i) {
        const Pass& pass = passes[i];
        const Slots& mine = slots[static_cast<std::size_t>(pass.chunk)];
        add_pass(pass, mine.of(pass.microbatch), part, completes_gradients(passes, i));
      }
    }
  }
  bool sums_before_drain() const {
    return blocks_.shared_last >= 0 && lowering_.model.tied_embeddings &&
           shape_.route == Route::loop && shape_.chunks == 1 && chunks_.has_head() &&
           plan_.schedule->splits_backward && !plan_.optimizer_barrier &&
           !keeps_gradients_away(plan_);
  }

  // The part of a pass that a step runs. Two passes that run side by side begin and end together:
  // the gradient is received before both (receive), the stream is sent after both (send), and the
  // rest of each pass is `inner`. Of delayed weight gradients `head` and `layers` run apart.
  enum class Part : std::uint8_t { whole, inner, receive, send, head, layers };

  void add_pass(const Pass& pass, int slot, Part part, bool last) {
    const bool forward = pass.kind == PassKind::forward;
    std::size_t& turn = forward ? leaving_ : summing_;
    const auto key = std::array{static_cast<int>(pass.kind), pass.chunk, last ? 1 : 0,
                                static_cast<int>(part), static_cast<int>(turn)};
    const auto [found, is_new] = bodies_.try_emplace(key, 0);
    if (is_new) {
      found->second = static_cast<int>(program_.bodies.size());
      program_.bodies.push_back(make_body(pass, part, last));
    }
    const Body& body = program_.bodies[static_cast<std::size_t>(found->second)];
    turn = (turn + turns_taken(body, forward ? blocks_.leaving : blocks_.summing)) % 2;
    const bool some = part == Part::whole || part == Part::inner;
    if (!some && body.calls.empty()) return;
    program_.steps.push_back({.body = found->second,
                              .pass = step_pass(pass.kind),
                              .chunk = pass.chunk,
                              .microbatch = pass.microbatch,
                              .slot = slot,
                              .paired = part == Part::inner});
  }

  static void call(Body& body, const BlockCall& call) {
    if (call.block >= 0) body.calls.push_back(call);
  }

  Body make_body(const Pass& pass, Part part, bool last) const {
    const bool forward = pass.kind == PassKind::forward;
    switch (part) {
      case Part::receive:
        return chunks_.has_head(pass.chunk) ? Body{}
                                            : boundary_body(pass.chunk, blocks_.pair_receive);
      case Part::send:
        return chunks_.has_head(pass.chunk) ? Body{} : boundary_body(pass.chunk, blocks_.pair_send);
      case Part::whole:
      case Part::inner:
      case Part::head:
      case Part::layers:
        break;
    }
    return forward ? forward_body(pass.chunk, part)
                   : backward_body(pass.chunk, step_pass(pass.kind), part, last);
  }

  Body boundary_body(int chunk, int block) const { return {{boundary(chunk, 1, {.away = block})}}; }

  // Calls the boundary to a neighbouring chunk: a message to another stage, a new name on this one.
  BlockCall boundary(int chunk, int distance, const BoundaryBlocks& blocks) const {
    const int peer = chunks_.neighbour(chunk, distance);
    const int layers = program_.chunks[static_cast<std::size_t>(chunk)].layers;
    return {.block = peer == chunks_.stage() ? blocks.here : blocks.away,
            .position = distance > 0 ? layers : 0,
            .peer = peer == chunks_.stage() ? -1 : peer};
  }

  static BlockCall block_call(BlockCall at, int block) {
    at.block = block;
    return at;
  }

  // The units whose weights and activations are transferred while unit `at` runs: the one after it,
  // and the one after that if the first is brief.
  static std::vector<std::size_t> next_units(const std::vector<ChunkUnit>& units, std::size_t at) {
    if (at > 0 && units[at].is_brief) return {};
    std::vector<std::size_t> next;
    for (std::size_t i = at + 1; i < units.size(); ++i) {
      next.push_back(i);
      if (!units[i].is_brief) break;
    }
    return next;
  }

  // Calls the gather of the next unit's weights. Beside a layer it waits for the layer's input.
  static void call_next_fetch(Body& body, const ChunkUnit& at, const ChunkUnit& next,
                              StepPass pass) {
    const UnitBlocks& of = *next.blocks;
    const bool forward = pass == StepPass::forward;
    BlockCall fetch = next.at;
    if (at.is_layer) {
      fetch.position = at.at.position;
      fetch.block = forward ? of.fetch_next_forward : of.fetch_next_backward;
    } else {
      fetch.block = forward ? of.fetch_forward : of.fetch_backward;
    }
    call(body, fetch);
  }

  // Calls the copies from the host for the first units of a pass; and, while unit `at` runs, those
  // for a unit after it.
  void call_first_copies(Body& body, const std::vector<ChunkUnit>& units, StepPass pass) const {
    const auto ahead = static_cast<std::size_t>(units_ahead(lowering_));
    for (std::size_t i = 0; i < std::min(ahead, units.size()); ++i) {
      call(body, block_call(units[i].at, copies_of(*units[i].blocks, pass).come));
      if (i == 0) call(body, {.block = blocks_.pass_begins});
    }
  }
  void call_next_copies(Body& body, const std::vector<ChunkUnit>& units, std::size_t at,
                        StepPass pass) const {
    const std::size_t next = at + static_cast<std::size_t>(units_ahead(lowering_));
    if (next >= units.size()) return;
    call(body, block_call(units[next].at, copies_of(*units[next].blocks, pass).come_beside));
  }

  // Calls the copy that brings the next unit's activations back while unit `at` runs.
  static void call_next_restore(Body& body, const ChunkUnit& at, const ChunkUnit& next) {
    call(body, block_call(next.at, at.is_layer ? next.blocks->restore_next : next.blocks->restore));
  }

  static void wait_for_turn(Body& body, const TurnBlocks& turns, std::size_t turn) {
    call(body, {.block = turns.wait[turn]});
  }
  static void end_turn(Body& body, const TurnBlocks& turns, std::size_t& turn) {
    call(body, {.block = turns.ended[turn]});
    turn = 1 - turn;
  }
  static std::size_t turns_taken(const Body& body, const TurnBlocks& turns) {
    const auto ends = [&](const BlockCall& call) {
      return call.block == turns.ended[0] || call.block == turns.ended[1];
    };
    return static_cast<std::size_t>(std::count_if(body.calls.begin(), body.calls.end(), ends));
  }

  // Where all layers' activations leave, two layers' are on the device, one at work and one that
  // leaves.
  void call_forward(Body& body, const ChunkUnit& unit, std::size_t& turn) const {
    if (const UnitDepartures* some = departures_at(unit)) {
      call(body, some->left);
      return call(body, block_call(unit.at, unit.blocks->forward));
    }
    if (unit.leaves) wait_for_turn(body, blocks_.leaving, turn);
    call(body, block_call(unit.at, unit.blocks->forward));
    if (unit.leaves) end_turn(body, blocks_.leaving, turn);
  }

  Body forward_body(int chunk, Part part) const {
    const std::vector<ChunkUnit> units = chunks_.units(chunk);
    Body body;
    std::size_t turn = leaving_;
    call_first_copies(body, units, StepPass::forward);
    if (!units.empty()) call(body, block_call(units[0].at, units[0].blocks->fetch_forward));
    if (!chunks_.has_embedding(chunk)) call(body, boundary(chunk, -1, blocks_.receive_forward));
    for (std::size_t i = 0; i < units.size(); ++i) {
      call_next_copies(body, units, i, StepPass::forward);
      for (const std::size_t next : next_units(units, i)) {
        call_next_fetch(body, units[i], units[next], StepPass::forward);
      }
      call_forward(body, units[i], turn);
    }
    if (part == Part::whole && !chunks_.has_head(chunk)) {
      call(body, boundary(chunk, 1, blocks_.send_forward));
    }
    return body;
  }

  // Whether a pass ends with the last of its reductions. Under ZeRO-2 in a pipeline they overlap
  // the passes that follow.
  bool waits_for_sums() const {
    const int zero = plan_.held_zero_stage();
    return zero >= 3 || (zero == 2 && plan_.pipeline_parallel == 1);
  }

  void call_first_fetch(Body& body, const std::vector<ChunkUnit>& units) const {
    if (units.empty()) return;
    call(body, block_call(units[0].at, units[0].blocks->fetch_backward));
    call(body, block_call(units[0].at, units[0].blocks->restore));
  }

  static void call_reduction(Body& body, const ChunkUnit& unit) {
    if (unit.blocks->reduced_in_pass) call(body, block_call(unit.at, unit.blocks->reduction));
  }

  // Calls the reduction of a unit's gradients, or of a bucket that they complete.
  void call_own_reduction(Body& body, const ChunkUnit& unit, bool reduces) const {
    if (!reduces || plan_.no_sync()) return;
    call_reduction(body, unit);
    const ChunkBuckets& buckets = buckets_[unit.chunk];
    if (buckets.empty()) return;
    for (const BlockCall& bucket : buckets[unit.place].sums) call(body, bucket);
  }

  // Under no_sync a chunk's gradients are reduced all at once, and nothing goes on before that has
  // ended (torch.distributed.pipelining: perform_reduce_grad, after the last pass of a stage
  // module).
  void call_all_reductions(Body& body, const std::vector<ChunkUnit>& units, bool reduces) const {
    if (!reduces || !plan_.no_sync()) return;
    for (const ChunkUnit& unit : units) call_reduction(body, unit);
    for (const ChunkUnit& unit : units)
      call(body, block_call(unit.at, unit.blocks->await_reduction));
  }

  std::vector<ChunkUnit> units_backward(int chunk, Part part) const {
    std::vector<ChunkUnit> units = chunks_.units(chunk);
    std::reverse(units.begin(), units.end());
    if (part == Part::head) units.resize(1);
    if (part == Part::layers) units.erase(units.begin());
    return units;
  }

  void call_next_moves(Body& body, const std::vector<ChunkUnit>& units, std::size_t at,
                       StepPass pass) const {
    const UnitDepartures* const some = departures_at(units[at]);
    if (some != nullptr) call(body, some->called_back);
    for (const std::size_t next : next_units(units, at)) {
      call_next_fetch(body, units[at], units[next], pass);
      if (some == nullptr) call_next_restore(body, units[at], units[next]);
    }
  }

  // Where only some layers' activations leave the device; else null.
  const UnitDepartures* departures_at(const ChunkUnit& unit) const {
    const ChunkDepartures& some = departures_[unit.chunk];
    return some.empty() ? nullptr : &some[unit.place];
  }

  // Tells copies of activations for the next backward pass that they may come.
  void call_last_begins(Body& body, const std::vector<ChunkUnit>& units, std::size_t at) const {
    const auto first_behind = units.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    const bool more = std::any_of(first_behind, units.end(), std::mem_fn(&ChunkUnit::leaves));
    const bool all_leave = departures_at(units[at]) == nullptr;
    if (all_leave && units[at].leaves && !more) call(body, {.block = blocks_.last_layer_begins});
  }

  // Calls one unit. It waits for the gradients of the unit two before it, in this pass or in one
  // before: whole ones of two units are on the device at most, or ones that leave.
  void call_backward(Body& body, const std::vector<ChunkUnit>& units, std::size_t at, StepPass pass,
                     bool reduces, std::size_t& turn) const {
    const ChunkUnit& unit = units[at];
    const bool moves = pass != StepPass::weight_gradient;
    const bool sums = sums_up(*unit.blocks, pass);
    if (sums) wait_for_turn(body, blocks_.summing, turn);
    call_next_copies(body, units, at, pass);
    call(body, block_call(unit.at, loss_block_of(*unit.blocks, pass)));
    if (moves) call_next_moves(body, units, at, pass);
    if (moves) call_last_begins(body, units, at);
    call(body, block_call(unit.at, block_of(*unit.blocks, pass)));
    call_own_reduction(body, unit, reduces);
    call(body, block_call(unit.at, copies_of(*unit.blocks, pass).go));
    if (sums) end_turn(body, blocks_.summing, turn);
  }

  Body backward_body(int chunk, StepPass pass, Part part, bool last) const {
    const std::vector<ChunkUnit> units = units_backward(chunk, part);
    const bool moves = pass != StepPass::weight_gradient;
    const bool reduces = last && plan_.overlap.data_parallel;
    Body body;
    std::size_t turn = summing_;
    call_first_copies(body, units, pass);
    if (moves) call_first_fetch(body, units);
    if (moves && part == Part::whole && !chunks_.has_head(chunk)) {
      call(body, boundary(chunk, 1, blocks_.receive_gradient));
    }
    for (std::size_t i = 0; i < units.size(); ++i) {
      call_backward(body, units, i, pass, reduces, turn);
    }
    if (moves && !chunks_.has_embedding(chunk))
      call(body, boundary(chunk, -1, blocks_.send_gradient));
    call_all_reductions(body, units, reduces);
    if (waits_for_sums()) wait_for_turn(body, blocks_.summing, 1 - turn);
    if (part == Part::head && last) call(body, {.block = blocks_.shared_last});
    return body;
  }

  void add_ends(Body& body, int UnitBlocks::*block) const {
    if (chunks_.has_embedding()) call(body, {.block = blocks_.embedding.*block});
    if (chunks_.has_head()) call(body, {.block = blocks_.head.*block});
    if (chunks_.has_head()) call(body, {.block = blocks_.mtp_embedding.*block});
  }

  void add_units(Body& body, int UnitBlocks::*block) const {
    add_ends(body, block);
    add_layers(body, block);
  }

  void add_layers(Body& body, int UnitBlocks::*block) const {
    for (const int chunk : chunks_.in_order()) {
      const ChunkLayout& layout = program_.chunks[static_cast<std::size_t>(chunk)];
      for (int position = 0; position < layout.layers; ++position) {
        call(body,
             chunks_.layer_call(chunk, position, chunks_.layer_blocks(layout, position).*block));
      }
    }
  }

  void add_step(StepPass pass, Body body) {
    if (body.calls.empty()) return;
    program_.steps.push_back({.body = static_cast<int>(program_.bodies.size()), .pass = pass});
    program_.bodies.push_back(std::move(body));
  }

  // The all-gathers that end a sharded update, if they may overlap the first forward passes.
  void start() {
    Body body;
    if (plan_.overlap.data_parallel) add_units(body, &UnitBlocks::gather);
    for (const int chunk : chunks_.in_order()) {
      for (const UnitBuckets& unit : buckets_[static_cast<std::size_t>(chunk)]) {
        for (const BlockCall& bucket : unit.gathers) call(body, bucket);
      }
    }
    add_step(StepPass::start, std::move(body));
  }

  // The reductions that no backward pass overlapped, the gradient norm and the optimizer.
  void finish() {
    Body body;
    const bool overlapped = plan_.overlap.data_parallel;
    if (chunks_.has_embedding()) call(body, {.block = blocks_.shared_first});
    if (chunks_.has_head() && !sums_before_drain()) call(body, {.block = blocks_.shared_last});
    // The embedding's backward pass is the last of all, so nothing can hide its reduction. A head
    // that is its copy waits for it.
    const auto reduces = [&](const UnitBlocks& end) { return !overlapped || !end.reduced_in_pass; };
    if (chunks_.has_embedding() && reduces(blocks_.embedding)) {
      call(body, {.block = blocks_.embedding.reduction});
    }
    if (chunks_.has_head() && reduces(blocks_.head)) call(body, {.block = blocks_.head.reduction});
    if (chunks_.has_head()) call(body, {.block = blocks_.mtp_embedding.reduction});
    if (!overlapped) add_layers(body, &UnitBlocks::reduction);
    add_units(body, &UnitBlocks::late_reduction);
    add_units(body, &UnitBlocks::mirror);
    add_units(body, &UnitBlocks::norm);
    call(body, {.block = blocks_.norm_reduction});
    add_units(body, &UnitBlocks::update);
    if (!overlapped) add_units(body, &UnitBlocks::gather);
    add_step(StepPass::finish, std::move(body));
  }

  const Lowering& lowering_;
  const ProgramBlocks& blocks_;
  const Plan& plan_;
  const StageChunks& chunks_;
  const std::vector<ChunkBuckets>& buckets_;
  const std::vector<ChunkDepartures>& departures_;
  PipelineShape shape_;
  StageProgram program_;
  std::map<std::array<int, 5>, int> bodies_;  // pass kind, chunk, last, part, turn → index
  // Whose turn it is behind the passes so far (TurnBlocks).
  std::size_t leaving_ = 0, summing_ = 0;
};

}  // namespace

Expected<Program> lower(const Transformer& model, const Training& training, const Plan& plan) {
  Lowering lowering = start_lowering(model, training, plan);
  const ProgramBlocks blocks = make_blocks(lowering);
  const PipelineShape shape = pipeline_shape(plan);
  const PassList passes = plan.schedule->passes(shape);
  BucketMaker bucket_maker(lowering);
  DepartureMaker departure_maker(lowering);
  for (int stage = 0; stage < plan.pipeline_parallel; ++stage) {
    const StageChunks chunks(lowering, blocks, shape, stage);
    const std::vector<ChunkBuckets> buckets = bucket_maker.buckets_of(chunks);
    const std::vector<ChunkDepartures> departures = departure_maker.departures_of(chunks);
    StageBuilder builder(lowering, blocks, chunks, buckets, departures, shape);
    lowering.program.stages.push_back(builder.build(passes[static_cast<std::size_t>(stage)]));
  }
  number_instances(lowering.program);
  return std::move(lowering.program);
}

}  // namespace trainyard
