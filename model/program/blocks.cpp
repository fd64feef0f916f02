#include "model/program/blocks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "model/cost/sharding/gradient_buckets.h"
#include "model/program/lifetimes.h"
#include "model/program/parts/marks.h"
#include "model/program/parts/offload.h"
#include "model/program/unit_names.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

using Operations = std::vector<Operation>;

int add_block(Program& program, std::string_view name, Operations operations) {
  if (operations.empty()) return -1;
  program.blocks.push_back({.name = name, .kind = {}, .operations = std::move(operations)});
  return static_cast<int>(program.blocks.size()) - 1;
}

Operations in_turn(Operations first, const Operations& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Operations cut_front(Operations& list, std::size_t count) {
  const auto end = list.begin() + static_cast<std::ptrdiff_t>(count);
  Operations front(list.begin(), end);
  list.erase(list.begin(), end);
  return front;
}

// Of a backward pass that is split in two.
enum class Half : std::uint8_t { input_gradient, weight_gradient };
Operations half_of(Operations backward, Half half) {
  std::erase_if(backward, [half](const Operation& op) {
    return (op.phase == Phase::weight_gradient) != (half == Half::weight_gradient);
  });
  return backward;
}

// In a weight-gradient pass of its own, moves the gather of a saved input before the kernel that
// precedes its use, so that the two overlap. In an unsplit backward pass it overlaps the kernel of
// the input gradient.
void gather_ahead(Operations& weight) {
  for (std::size_t i = 1; i < weight.size(); ++i) {
    const bool gathers =
        weight[i].kind == OperationKind::all_gather && !is_communication(weight[i - 1].kind);
    if (gathers) std::swap(weight[i], weight[i - 1]);
  }
}

// Adds the gathers of a pass as blocks of their own. Those for the next unit wait until the current
// unit begins, that is, until its input is there.
void add_fetch(Program& program, Operations fetch, Operand input, int& first, int& next) {
  first = add_block(program, "weights", fetch);
  for (Operation& operation : fetch) operation.operands.push_back(input);
  next = add_block(program, "next weights", std::move(fetch));
}

// Adds the copy that brings a layer's saved activations back as a block of its own. The copy for
// the next layer waits until the gradient that the current layer reads is there.
void add_restore(Lowering& lowering, Operations restore, UnitBlocks& blocks) {
  blocks.restores = restore;
  blocks.restore = add_block(lowering.program, "activations", beside_last_layer(lowering, restore));
  for (Operation& operation : restore) operation.operands.push_back(reads(lowering.gradient, 2));
  blocks.restore_next = add_block(lowering.program, "next activations", std::move(restore));
}

// Adds gradient norm and update, with the copies to where the optimizer states lie and back.
void add_update(Lowering& lowering, const std::vector<Parameter>& parameters, int norm,
                const UnitNames& names, UnitBlocks& blocks) {
  const UpdateCrossing crossing(lowering, parameters);
  Operations squares = in_turn(crossing.for_norm(), squared_norm(lowering, crossing.there(), norm));
  Operations update =
      in_turn(in_turn(crossing.for_update(), optimizer_update(lowering, crossing.there(), norm)),
              crossing.back());
  mark_last_uses(lowering.program, {&squares}, {});
  mark_last_uses(lowering.program, {&update}, {});
  blocks.norm = add_block(lowering.program, names.norm, std::move(squares));
  blocks.update = add_block(lowering.program, names.update, std::move(update));
}

struct LayerCopies {
  Operations away, back;
};
// A pass of a unit with the transfers before and after it, in order.
struct PassOperations {
  Operations come;     // from outside the device
  Operations gather;   // of weights
  Operations restore;  // of activations
  Operations work;
  Operations go;

  Operations all() const {
    return in_turn(in_turn(in_turn(in_turn(come, gather), restore), work), go);
  }
  // Takes the operations of all() back after they were marked with what they free.
  void take(Operations marked) {
    for (Operations* part : {&come, &gather, &restore, &work}) {
      *part = cut_front(marked, part->size());
    }
    go = std::move(marked);
  }
};

void mark_passes(const Program& program, const std::vector<PassOperations*>& in_order,
                 const std::vector<CopyKey>& handed_on) {
  std::vector<Operations> all;
  std::vector<Operations*> passes;
  all.reserve(in_order.size());
  for (const PassOperations* pass : in_order) {
    all.push_back(pass->all());
    passes.push_back(&all.back());
  }
  mark_last_uses(program, passes, handed_on);
  for (std::size_t i = 0; i < in_order.size(); ++i) in_order[i]->take(std::move(all[i]));
}

// How a unit is connected with the others.
struct UnitPlace {
  std::vector<CopyKey> handed_on;  // buffers that it leaves for later units
  int norm = -1;
  bool sends_away = false;      // its saved activations are offloaded
  int stays = -1;               // except this buffer
  bool reduced_in_pass = true;  // UnitBlocks::reduced_in_pass
};

LayerCopies copies_of(Lowering& lowering, const NetworkUnit& unit, const UnitPlace& place) {
  if (!place.sends_away) return {};
  const ActivationCopies copies = activation_copies(lowering, unit, place.stays);
  return {{copies.away}, {copies.back}};
}

// The operations of every pass of a unit; `input` and `weight` are the halves of a split backward.
struct UnitPasses {
  PassOperations forward, backward, input, weight;
};

UnitPasses passes_of(const NetworkUnit& unit, const LayerCopies& copies) {
  const std::vector<Phase> input = {Phase::input_gradient};
  const std::vector<Phase> weight = {Phase::weight_gradient};
  const std::vector<Phase> both = {Phase::input_gradient, Phase::weight_gradient};
  const Operations weights_again = weights_from_offload(unit, Phase::input_gradient);
  const Operations gather_again = weight_fetch(unit, Phase::input_gradient);
  UnitPasses passes;
  passes.forward = {.come = weights_from_offload(unit, Phase::forward),
                    .gather = weight_fetch(unit, Phase::forward),
                    .restore = {},
                    .work = in_turn(unit.forward(), copies.away),
                    .go = {}};
  passes.backward = {.come = in_turn(weights_again, gradients_from_offload(unit, both)),
                     .gather = gather_again,
                     .restore = copies.back,
                     .work = unit.backward(),
                     .go = gradients_to_offload(unit, both)};
  passes.input = {.come = in_turn(weights_again, gradients_from_offload(unit, input)),
                  .gather = gather_again,
                  .restore = copies.back,
                  .work = half_of(unit.backward(), Half::input_gradient),
                  .go = gradients_to_offload(unit, input)};
  passes.weight = {.come = gradients_from_offload(unit, weight),
                   .gather = {},
                   .restore = {},
                   .work = half_of(unit.backward(), Half::weight_gradient),
                   .go = gradients_to_offload(unit, weight)};
  gather_ahead(passes.weight.work);
  return passes;
}

CopyBlocks add_copies(Lowering& lowering, const PassOperations& pass) {
  return {add_block(lowering.program, "states come", beside_pass(lowering, pass.come)),
          add_block(lowering.program, "next states come", beside_unit(lowering, pass.come)),
          add_block(lowering.program, "gradients go", pass.go)};
}

// Under ZeRO-3 cuts the gradient of the logits off the head's backward pass as a block of its own.
// The weights of the next unit come after it, when logits and their copies are gone, because the
// hook that gathers them is that of the head's output (FSDP2, FSDPParamGroup.pre_backward;
// DeepSpeed, PreBackwardFunction).
int add_loss(Lowering& lowering, Operations& work) {
  if (lowering.plan.held_zero_stage() < 3) return -1;
  const auto made =
      std::ranges::find(work, OperationKind::cross_entropy_gradient, &Operation::kind);
  if (made == work.end()) return -1;
  const auto count = static_cast<std::size_t>(made - work.begin()) + 1;
  return add_block(lowering.program, "loss gradient", cut_front(work, count));
}

void add_passes(Lowering& lowering, bool splits, const UnitNames& names, UnitPasses passes,
                UnitBlocks& blocks) {
  Program& program = lowering.program;
  add_fetch(program, passes.forward.gather, reads(lowering.hidden), blocks.fetch_forward,
            blocks.fetch_next_forward);
  const Operand gradient = reads(lowering.gradient, 1);
  add_fetch(program, passes.backward.gather, gradient, blocks.fetch_backward,
            blocks.fetch_next_backward);
  const PassOperations& first = splits ? passes.input : passes.backward;
  add_restore(lowering, first.restore, blocks);
  blocks.forward_copies = add_copies(lowering, passes.forward);
  blocks.forward = add_block(program, names.forward, std::move(passes.forward.work));
  if (splits) {
    blocks.input_copies = add_copies(lowering, passes.input);
    blocks.weight_copies = add_copies(lowering, passes.weight);
    blocks.loss_input_gradient = add_loss(lowering, passes.input.work);
    blocks.input_gradient = add_block(program, names.input_gradient, std::move(passes.input.work));
    blocks.weight_gradient =
        add_block(program, names.weight_gradient, std::move(passes.weight.work));
  }
  blocks.backward_copies = add_copies(lowering, passes.backward);
  blocks.loss_backward = add_loss(lowering, passes.backward.work);
  blocks.backward = add_block(program, names.backward, std::move(passes.backward.work));
}

void note_gradients_that_go(const UnitPasses& passes, bool splits, UnitBlocks& blocks) {
  const bool with_input = splits && passes.weight.go.empty();
  const PassOperations& last =
      !splits ? passes.backward : (with_input ? passes.input : passes.weight);
  if (last.go.empty()) return;
  blocks.sums = true;
  blocks.sums_with_input = with_input;
}

// Whether a gradient has gone to the host before its reduction: under no_sync, which reduces after
// the last pass; and in a split backward pass one that the input-gradient half completes, which has
// gone by the end of the weight-gradient half.
bool gone_before_reduction(const Plan& plan, const NetworkUnit& unit, const Parameter& parameter) {
  if (!parameter.gradient_away()) return false;
  return plan.no_sync() ||
         (unit.splits_backward() && completing_phase(unit, parameter) == Phase::input_gradient);
}

// Whether a gradient's remaining sums wait for the end of the step: if it has gone to the host, or
// if it is kept in parts, which the ranks of one copy of the network then sum after its reduction;
// earlier the passes on their stream would wait for that.
bool is_late(const Plan& plan, const NetworkUnit& unit, const Parameter& parameter) {
  return gone_before_reduction(plan, unit, parameter) || parameter.keeps_gradient_part();
}

// Splits off what is over data-parallel ranks.
Operations cut_bucketed(Operations& reductions) {
  const auto stays = [](const Operation& operation) {
    return operation.stream != ProgramStream::data_parallel;
  };
  const auto first = std::stable_partition(reductions.begin(), reductions.end(), stays);
  Operations bucketed(first, reductions.end());
  reductions.erase(first, reductions.end());
  return bucketed;
}

void add_reductions(Lowering& lowering, const NetworkUnit& unit, const UnitNames& names,
                    UnitBlocks& blocks) {
  Program& program = lowering.program;
  const std::vector<Parameter>& all = unit.parameters();
  const auto reduction = [&](const std::vector<Parameter>& some) {
    return with_gradients_here(lowering, some, gradient_reduction(lowering, some));
  };
  if (!lowering.plan.overlap.data_parallel || !blocks.reduced_in_pass) {
    blocks.reduced_in_pass = false;
    blocks.reduction = add_block(program, names.reduction, reduction(all));
    return;
  }
  std::vector<Parameter> in_pass, late;
  for (const Parameter& parameter : all) {
    (is_late(lowering.plan, unit, parameter) ? late : in_pass).push_back(parameter);
  }
  Operations reduced = gradient_reduction(lowering, in_pass);
  if (lowering.plan.no_sync() && !reduced.empty()) {
    blocks.await_reduction = add_block(program, "gradients summed up", {await_reductions(reduced)});
  }
  if (uses_buckets(lowering.training, lowering.plan)) {
    blocks.bucketed_sums = cut_bucketed(reduced);
    blocks.bucketed_gathers = weight_gather(lowering, all);
  }
  blocks.reduction = add_block(program, names.reduction, std::move(reduced));
  blocks.late_reduction = add_block(program, names.reduction, reduction(late));
}

UnitBlocks add_unit(Lowering& lowering, NetworkUnit& unit, const UnitNames& names,
                    const UnitPlace& place) {
  const std::optional<Phase> sums = reduce_every_pass(unit);
  const bool splits = unit.splits_backward();
  Program& program = lowering.program;
  const LayerCopies copies = copies_of(lowering, unit, place);
  UnitPasses passes = passes_of(unit, copies);
  mark_passes(program, {&passes.forward, &passes.backward}, place.handed_on);
  PassOperations forward_again = passes.forward;
  mark_passes(program, {&forward_again, &passes.input, &passes.weight}, place.handed_on);
  if (splits) {
    narrow_scopes(lowering, {passes.forward.all(), passes.input.all(), passes.weight.all()});
  } else {
    narrow_scopes(lowering, {passes.forward.all(), passes.backward.all()});
  }

  UnitBlocks blocks;
  blocks.reduced_in_pass = place.reduced_in_pass;
  blocks.sums = sums.has_value();
  blocks.sums_with_input = sums == Phase::input_gradient;
  note_gradients_that_go(passes, splits, blocks);
  add_passes(lowering, splits, names, std::move(passes), blocks);
  const std::vector<Parameter>& parameters = unit.parameters();
  add_reductions(lowering, unit, names, blocks);
  blocks.mirror =
      add_block(program, names.mirror,
                with_gradients_here(lowering, parameters, mirror_reduction(lowering, parameters)));
  add_update(lowering, parameters, place.norm, names, blocks);
  if (blocks.bucketed_gathers.empty()) {
    blocks.gather = add_block(program, names.gather, weight_gather(lowering, parameters));
  }
  return blocks;
}

bool has_layers_of(const Transformer& model, LayerKind kind) {
  for (int layer = 0; layer < layers_with_mtp(model); ++layer) {
    if (layer_kind(model, layer) == kind) return true;
  }
  return false;
}

// Notes that another stage holds the same matrix, so the gradient norm counts it once.
void note_copy(Lowering& lowering, const Parameter& parameter) {
  for (const int buffer : std::set<int>{parameter.held_gradient, parameter.held_weight,
                                        parameter.stored_gradient, parameter.stored_weight}) {
    lowering.program.buffer(buffer).replicas *= 2;
  }
}

// Which units share the vocabulary matrix: embedding and tied head, embedding and MTP layers, or
// all three.
struct SharedTable {
  bool tied = false;      // the head uses it
  bool shared = false;    // some unit besides the embedding uses it
  bool apart = false;     // that unit is on another stage, with a copy of the matrix
  bool together = false;  // every pass meets all units that use it
};

// The ends of the network are on different stages only under Route::loop. Under the other routes a
// micro-batch comes back to the first stage, or others begin at the last one.
SharedTable shared_table(const Lowering& lowering, const NetworkUnit& embedding) {
  const Plan& plan = lowering.plan;
  SharedTable table{.tied = lowering.model.tied_embeddings,
                    .shared = shares_embedding(lowering.model)};
  table.apart = table.shared && plan.pipeline_parallel > 1 && plan.schedule->route == Route::loop;
  table.together = table.shared && plan.pipeline_parallel == 1 && !embedding.splits_backward();
  return table;
}

Parameter add_embedding_unit(Lowering& lowering, int norm, ProgramBlocks& blocks) {
  NetworkUnit embedding(lowering, Scope::stage);
  const SharedTable of = shared_table(lowering, embedding);
  const Parameter table =
      vocabulary_table(embedding, false, of.together ? SharedEnd::front : SharedEnd::none);
  if (of.apart) note_copy(lowering, table);
  std::vector<CopyKey> handed_on = {{lowering.hidden, 0}};
  if (of.together) handed_on.emplace_back(table.weight, 0);
  add_embedding(embedding, table);
  // If only one pass adds to the gradient, it may be reduced before it goes to the host, or with
  // those of the first layers.
  const bool in_a_bucket = uses_buckets(lowering.training, lowering.plan);
  const bool at_once =
      (in_a_bucket || keeps_gradients_away(lowering.plan)) && (!of.shared || of.together);
  blocks.embedding = add_unit(lowering, embedding, kEmbeddingNames,
                              {.handed_on = handed_on, .norm = norm, .reduced_in_pass = at_once});
  return table;
}

// The buffers that the head's backward pass leaves for the layers before it: the gradient of the
// last layer's output and, for each MTP layer, its input stream and the gradient of its output.
std::vector<CopyKey> left_by_head(const Lowering& lowering) {
  std::vector<CopyKey> handed_on = {{lowering.gradient, 0}};
  for (int depth = 0; depth < lowering.model.mtp_layers; ++depth) {
    handed_on.emplace_back(lowering.hidden, depth);
    handed_on.emplace_back(lowering.gradient, depth + 1);
  }
  return handed_on;
}

Parameter add_head_unit(Lowering& lowering, Parameter table, int norm, ProgramBlocks& blocks) {
  NetworkUnit head(lowering, Scope::stage);
  const SharedTable of = shared_table(lowering, head);
  const bool has_copy = of.tied && of.apart;
  const Parameter matrix =
      of.tied && !of.apart ? head.borrowed(table) : vocabulary_table(head, true, SharedEnd::none);
  if (has_copy) note_copy(lowering, matrix);
  std::vector<CopyKey> handed_on = left_by_head(lowering);
  if (of.tied && of.together) handed_on.emplace_back(table.gradient, 0);
  add_head(head, matrix);
  blocks.head = add_unit(lowering, head, kHeadNames,
                         {.handed_on = handed_on, .norm = norm, .reduced_in_pass = !has_copy});
  return matrix;
}

// `held`: the matrix if the stage of the last layer has it anyway; null: it gets a copy.
Parameter add_mtp_embedding_unit(Lowering& lowering, const Parameter* held, int norm,
                                 ProgramBlocks& blocks) {
  NetworkUnit unit(lowering, Scope::stage);
  const SharedTable of = shared_table(lowering, unit);
  const Parameter table = held != nullptr
                              ? unit.borrowed(*held, of.tied ? SharedEnd::middle : SharedEnd::back)
                              : vocabulary_table(unit, false, SharedEnd::none);
  if (held == nullptr) note_copy(lowering, table);
  std::vector<CopyKey> handed_on;
  handed_on.reserve(static_cast<std::size_t>(lowering.model.mtp_layers));
  for (int depth = 0; depth < lowering.model.mtp_layers; ++depth) {
    handed_on.emplace_back(lowering.embedded, depth);
  }
  if (of.together) {
    handed_on.emplace_back(table.gradient, 0);
    if (of.tied) handed_on.emplace_back(table.weight, 0);
  }
  add_mtp_embedding(unit, table);
  blocks.mtp_embedding = add_unit(lowering, unit, kMtpEmbeddingNames,
                                  {.handed_on = handed_on, .norm = norm, .reduced_in_pass = false});
  return table;
}

void add_ends(Lowering& lowering, int norm, ProgramBlocks& blocks) {
  const Parameter table = add_embedding_unit(lowering, norm, blocks);
  const Parameter matrix = add_head_unit(lowering, table, norm, blocks);
  const SharedTable of = shared_table(lowering, NetworkUnit(lowering, Scope::stage));
  Parameter copy = matrix;
  if (lowering.model.mtp_layers > 0) {
    const Parameter* held = of.apart ? (of.tied ? &matrix : nullptr) : &table;
    const Parameter looked_up = add_mtp_embedding_unit(lowering, held, norm, blocks);
    if (!of.tied) copy = looked_up;
  }
  if (!of.apart) return;
  const auto shared_block = [&](std::string_view name, const Parameter& parameter) {
    return add_block(
        lowering.program, name,
        with_gradients_here(lowering, {parameter}, {shared_reduction(lowering, parameter)}));
  };
  blocks.shared_first = shared_block(of.tied ? "tied embedding" : "shared embedding", table);
  blocks.shared_last = shared_block(of.tied ? "tied head" : "shared mtp embedding", copy);
}

// Whether any stage has a layer that is treated in this way.
bool some_layers(const Lowering& lowering, LayerWay way) {
  for (int stage = 0; stage < lowering.plan.pipeline_parallel; ++stage) {
    for (int layer = 0; layer < layers_with_mtp(lowering.model); ++layer) {
      if (way_of(lowering, stage, layer) == way) return true;
    }
  }
  return false;
}

// The same layer may exist in several ways (recomputed or not, …); all use the same parameters.
UnitBlocks add_layer_unit(Lowering& lowering, LayerKind kind, LayerWay way, int norm) {
  const auto first = static_cast<std::ptrdiff_t>(lowering.program.blocks.size());
  NetworkUnit layer(lowering, Scope::layer);
  add_layer(layer, kind, way.repeats);
  UnitPlace place{.handed_on = {{lowering.hidden, 1}, {lowering.gradient, 0}},
                  .norm = norm,
                  .sends_away = way.away};
  if (kind.mtp) {
    place.handed_on.emplace_back(lowering.embedded_gradient, 0);
    place.stays = lowering.hidden;  // its input stays: the head predicts from it too
  }
  UnitBlocks blocks = add_unit(lowering, layer, kLayerNames, place);
  std::vector<Block>& all = lowering.program.blocks;
  std::for_each(all.begin() + first, all.end(), [kind](Block& block) { block.kind = kind; });
  return blocks;
}

void add_layers(Lowering& lowering, int norm, ProgramBlocks& blocks) {
  for (int index = 0; index < kLayerKinds; ++index) {
    const LayerKind kind = layer_kind_at(lowering.model, index);
    if (!has_layers_of(lowering.model, kind)) continue;
    for (const Repeats repeats : {Repeats::nothing, Repeats::attention_core,
                                  Repeats::every_second_matmul, Repeats::everything}) {
      for (const bool away : {false, true}) {
        const LayerWay way{repeats, away};
        if (!some_layers(lowering, way)) continue;
        blocks.layers[index_of(way)][static_cast<std::size_t>(index)] =
            add_layer_unit(lowering, kind, way, norm);
      }
    }
  }
}

bool has_pairs(const Lowering& lowering) {
  const Plan& plan = lowering.plan;
  const PipelineShape shape = pipeline_shape(plan);
  for (int stage = 0; stage < shape.stages; ++stage) {
    if (plan.schedule->pairs(shape, stage) > 0) return true;
  }
  return false;
}

void add_boundaries(Lowering& lowering, ProgramBlocks& blocks) {
  Program& program = lowering.program;
  const int stream = lowering.hidden;
  const int gradient = lowering.gradient;
  blocks.send_forward.away = add_block(program, "send", boundary_send(lowering, stream));
  blocks.receive_forward.away = add_block(program, "receive", boundary_receive(lowering, stream));
  blocks.send_gradient.away =
      add_block(program, "send gradient", boundary_send(lowering, gradient));
  blocks.receive_gradient.away =
      add_block(program, "receive gradient", boundary_receive(lowering, gradient));
}

void add_pair_boundaries(Lowering& lowering, ProgramBlocks& blocks) {
  Program& program = lowering.program;
  blocks.pair_receive = add_block(program, "receive gradient", receive_ahead(lowering));
  blocks.pair_send = add_block(program, "send", send_behind(lowering));
}

// ZB-V: on the stage where a micro-batch turns round both chunks are on one stage.
void add_turns(Lowering& lowering, ProgramBlocks& blocks) {
  Program& program = lowering.program;
  const Turn stream = turn(lowering, lowering.hidden, "turning stream");
  const Turn gradient = turn(lowering, lowering.gradient, "turning gradient");
  blocks.send_forward.here = add_block(program, "turn out", {stream.out});
  blocks.receive_forward.here = add_block(program, "turn in", {stream.in});
  blocks.send_gradient.here = add_block(program, "turn gradient out", {gradient.out});
  blocks.receive_gradient.here = add_block(program, "turn gradient in", {gradient.in});
}

TurnBlocks turns_of(Lowering& lowering, ProgramStream transfers) {
  TurnBlocks turns;
  for (std::size_t i = 0; i < turns.wait.size(); ++i) {
    const TransferTurn turn = transfer_turn(lowering, transfers);
    turns.ended[i] = add_block(lowering.program, "transfer ended", {turn.ended});
    turns.wait[i] = add_block(lowering.program, "wait for transfer", {turn.wait});
  }
  return turns;
}

// A gradient that leaves goes behind its reduction.
void add_turns_of_transfers(Lowering& lowering, ProgramBlocks& blocks) {
  const Plan& plan = lowering.plan;
  if (plan.offload.activations != OffloadTarget::none) {
    blocks.leaving = turns_of(lowering, ProgramStream::copy);
    const Operation begins = last_layer_begins(lowering);
    blocks.last_layer_begins = add_block(lowering.program, "last layer", {begins});
  }
  if (keeps_gradients_away(plan)) {
    blocks.summing = turns_of(lowering, ProgramStream::copy);
  } else if (plan.held_zero_stage() >= 2 && plan.overlap.data_parallel) {
    blocks.summing = turns_of(lowering, ProgramStream::data_parallel);
  }
}

}  // namespace

LayerWay way_of(const Lowering& lowering, int stage, int local_layer) {
  return {repeats_of(lowering, stage, local_layer),
          sends_activations_away(lowering.plan, local_layer)};
}

ProgramBlocks make_blocks(Lowering& lowering) {
  ProgramBlocks blocks;
  const int norm = norm_buffer(lowering);
  add_ends(lowering, norm, blocks);
  add_layers(lowering, norm, blocks);
  Program& program = lowering.program;
  if (lowering.plan.pipeline_parallel > 1) {
    add_boundaries(lowering, blocks);
    if (has_pairs(lowering)) add_pair_boundaries(lowering, blocks);
  }
  if (lowering.plan.schedule->route == Route::vee) add_turns(lowering, blocks);
  if (keeps_weights_away(lowering) || keeps_gradients_away(lowering.plan)) {
    blocks.pass_begins = add_block(program, "pass", {pass_begins(lowering)});
  }
  add_turns_of_transfers(lowering, blocks);
  blocks.norm_reduction = add_block(program, "gradient norm", norm_reduction(lowering, norm));
  return blocks;
}

}  // namespace trainyard
