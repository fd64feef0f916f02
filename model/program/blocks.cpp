#include "model/program/blocks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

using Key = std::pair<int, int>;  // buffer, ahead
using Operations = std::vector<Operation>;

int add_block(Program& program, std::string_view name, Operations operations) {
  if (operations.empty()) return -1;
  program.blocks.push_back({name, std::move(operations)});
  return static_cast<int>(program.blocks.size()) - 1;
}

bool is_activation(const Program& program, int buffer) {
  return program.buffers[static_cast<std::size_t>(buffer)].role == BufferRole::activation;
}

// The last operation that uses a buffer frees it, but for what the unit hands on.
void mark_last_uses(const Program& program, const std::vector<Operations*>& in_order,
                    const std::vector<Key>& handed_on) {
  std::vector<Key> used = handed_on;
  for (auto list = in_order.rbegin(); list != in_order.rend(); ++list) {
    for (auto operation = (*list)->rbegin(); operation != (*list)->rend(); ++operation) {
      for (Operand& operand : operation->operands) {
        const Key key{operand.buffer, operand.ahead};
        operand.frees = is_activation(program, operand.buffer) &&
                        std::find(used.begin(), used.end(), key) == used.end();
        if (operand.frees) used.push_back(key);
      }
    }
  }
}

// A buffer that lives within one pass of one layer needs one place, not one for every layer and
// micro-batch.
void narrow_scopes(Lowering& lowering, const NetworkUnit& unit) {
  std::map<int, unsigned> passes;  // bits: forward, input gradient, weight gradient
  const auto note = [&](const Operations& list) {
    for (const Operation& operation : list) {
      for (const Operand& operand : operation.operands) {
        passes[operand.buffer] |= 1u << static_cast<unsigned>(operation.phase);
      }
    }
  };
  note(unit.forward());
  note(unit.backward());
  const bool split = lowering.plan.schedule->splits_backward;
  for (const auto& [buffer, bits] : passes) {
    const bool between_layers = buffer == lowering.hidden || buffer == lowering.gradient;
    const bool one_pass = (bits & (bits - 1)) == 0 || (!split && (bits & 1u) == 0);
    if (is_activation(lowering.program, buffer) && !between_layers && one_pass) {
      lowering.program.buffers[static_cast<std::size_t>(buffer)].scope = Scope::stage;
    }
  }
}

struct UnitNames {
  std::string_view forward, backward, input_gradient, weight_gradient, reduction, norm, update;
};

UnitBlocks add_unit(Lowering& lowering, const NetworkUnit& unit, const UnitNames& names,
                    const std::vector<Key>& handed_on, int norm) {
  Operations forward = unit.forward();
  Operations backward = unit.backward();
  mark_last_uses(lowering.program, {&forward, &backward}, handed_on);
  Operations input = unit.backward();
  Operations weight = unit.backward();
  std::erase_if(input, [](const Operation& op) { return op.phase != Phase::input_gradient; });
  std::erase_if(weight, [](const Operation& op) { return op.phase != Phase::weight_gradient; });
  Operations forward_again = unit.forward();
  mark_last_uses(lowering.program, {&forward_again, &input, &weight}, handed_on);
  narrow_scopes(lowering, unit);

  Program& program = lowering.program;
  UnitBlocks blocks;
  blocks.forward = add_block(program, names.forward, std::move(forward));
  if (lowering.plan.schedule->splits_backward) {
    blocks.input_gradient = add_block(program, names.input_gradient, std::move(input));
    blocks.weight_gradient = add_block(program, names.weight_gradient, std::move(weight));
  }
  blocks.backward = add_block(program, names.backward, std::move(backward));
  blocks.reduction =
      add_block(program, names.reduction, gradient_reduction(lowering, unit.parameters()));
  blocks.norm = add_block(program, names.norm, squared_norm(unit.parameters(), norm));
  blocks.update =
      add_block(program, names.update, optimizer_update(lowering, unit.parameters(), norm));
  return blocks;
}

constexpr UnitNames kLayerNames = {
    "layer forward",         "layer backward",           "layer input gradient",
    "layer weight gradient", "layer gradient reduction", "layer gradient norm",
    "layer optimizer"};
constexpr UnitNames kEmbeddingNames = {
    "embedding forward",         "embedding backward",           "embedding input gradient",
    "embedding weight gradient", "embedding gradient reduction", "embedding gradient norm",
    "embedding optimizer"};
constexpr UnitNames kHeadNames = {
    "head forward",         "head backward",           "head input gradient",
    "head weight gradient", "head gradient reduction", "head gradient norm",
    "head optimizer"};

bool has_layers_of(const Transformer& model, LayerKind kind) {
  for (int layer = 0; layer < model.layers; ++layer) {
    if (layer_kind(model, layer) == kind) return true;
  }
  return false;
}

void add_ends(Lowering& lowering, int norm, ProgramBlocks& blocks) {
  const Key stream{lowering.hidden, 0};
  const Key gradient{lowering.gradient, 0};
  const bool tied = lowering.model.tied_embeddings;
  // Where a micro-batch comes back to the first stage, both ends are there.
  const bool apart =
      lowering.plan.pipeline_parallel > 1 && lowering.plan.schedule->route != Route::vee;
  NetworkUnit embedding(lowering, Scope::stage);
  const Parameter table = vocabulary_table(embedding, false);
  add_embedding(embedding, table);
  blocks.embedding = add_unit(lowering, embedding, kEmbeddingNames, {stream}, norm);
  NetworkUnit head(lowering, Scope::stage);
  const bool shared = tied && !apart;
  const Parameter matrix = shared ? table : vocabulary_table(head, true);
  add_head(head, matrix);
  blocks.head = add_unit(lowering, head, kHeadNames, {gradient}, norm);
  if (!tied || !apart) return;
  for (const Parameter& copy : {table, matrix}) {
    lowering.program.buffers[static_cast<std::size_t>(copy.gradient)].replicas = 2;
    lowering.program.buffers[static_cast<std::size_t>(copy.weight)].replicas = 2;
  }
  Program& program = lowering.program;
  blocks.tied_first = add_block(program, "tied embedding", {tied_reduction(lowering, table)});
  blocks.tied_last = add_block(program, "tied head", {tied_reduction(lowering, matrix)});
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

// Where a micro-batch turns round, both chunks are on one stage.
void add_turns(Lowering& lowering, ProgramBlocks& blocks) {
  Program& program = lowering.program;
  const Turn stream = turn(lowering, lowering.hidden, "turning stream");
  const Turn gradient = turn(lowering, lowering.gradient, "turning gradient");
  blocks.send_forward.here = add_block(program, "turn out", {stream.out});
  blocks.receive_forward.here = add_block(program, "turn in", {stream.in});
  blocks.send_gradient.here = add_block(program, "turn gradient out", {gradient.out});
  blocks.receive_gradient.here = add_block(program, "turn gradient in", {gradient.in});
}

}  // namespace

ProgramBlocks make_blocks(Lowering& lowering) {
  ProgramBlocks blocks;
  const int norm = norm_buffer(lowering);
  add_ends(lowering, norm, blocks);
  for (int index = 0; index < kLayerKinds; ++index) {
    const LayerKind kind = layer_kind_at(index);
    if (!has_layers_of(lowering.model, kind)) continue;
    NetworkUnit layer(lowering, Scope::layer);
    add_layer(layer, kind);
    blocks.layers[static_cast<std::size_t>(index)] = add_unit(
        lowering, layer, kLayerNames, {{lowering.hidden, 1}, {lowering.gradient, 0}}, norm);
  }
  Program& program = lowering.program;
  if (lowering.plan.pipeline_parallel > 1) add_boundaries(lowering, blocks);
  if (lowering.plan.schedule->route == Route::vee) add_turns(lowering, blocks);
  if (lowering.plan.tensor_parallel * lowering.plan.pipeline_parallel > 1) {
    blocks.norm_reduction = add_block(program, "gradient norm", {norm_reduction(lowering, norm)});
  }
  return blocks;
}

}  // namespace trainyard
