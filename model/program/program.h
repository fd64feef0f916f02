// The program of one training step (docs/adr/0006-program.md): what every rank executes, stored in
// a folded form whose size is O(blocks + layers of the stage + passes), not their product.
//
// All ranks of a stage run the same operations on parts of the same size, so one StageProgram
// serves them all. Within a stage a `Block` holds the operations of one layer (or of the embedding,
// the head, a boundary between stages), whichever layer it is; a `Body` lists the blocks that one
// pass over a chunk calls; a `Step` runs one body for one micro-batch, in the order of the
// schedule. Example: the forward work of 20 equal layers for 64 micro-batches is one block, one
// body with 20 calls, and 64 steps.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/program/operation.h"

namespace trainyard {

// What a step of the program does. `start`: all-gathers of weights whose sharded update ended the
// step before, where they overlap the first passes. `finish`: the reductions of gradients that no
// pass overlapped, the gradient norm and the optimizer.
enum class StepPass : std::uint8_t {
  start,
  forward,
  backward,
  input_gradient,
  weight_gradient,
  finish,
};

struct Block {
  std::string_view name;
  LayerKind kind;  // of the layers that call it
  std::vector<Operation> operations;
};

struct BlockCall {
  int block = 0;         // index in Program::blocks
  int layer = -1;        // of the network; −1: none
  int position = 0;      // in the chunk: 0 … n, where n stands behind its last layer
  int local_layer = -1;  // the layer's number on the stage, over all its chunks; −1: none
  int peer = -1;         // the stage that a boundary sends to or receives from; −1: none
};

struct Body {
  std::vector<BlockCall> calls;
};

struct Step {
  int body = 0;  // index in StageProgram::bodies
  StepPass pass = StepPass::forward;
  int chunk = 0;  // of the stage
  int microbatch = 0;
  int slot = 0;  // place of the micro-batch's activations among those of its chunk in flight
  // Whether the step is one of a forward and a backward pass that the schedule runs side by side
  // (DualPipe). The two steps follow each other in the list, but begin and end together.
  bool paired = false;
};

struct ChunkLayout {
  int first_layer = 0;        // number in the network
  int layers = 0;             // n
  int first_position = 0;     // positions of the stage's earlier chunks, n + 1 each
  int first_local_layer = 0;  // layers of the stage's earlier chunks
};

struct StageProgram {
  std::vector<ChunkLayout> chunks;
  std::vector<Body> bodies;
  std::vector<Step> steps;
  int slots = 0;                    // most micro-batches of one chunk in flight
  std::vector<int> first_instance;  // [buffer]: number of its first instance on the stage
  int instances = 0;                // of all buffers
  std::int64_t operations = 0;      // that a rank of the stage runs in a step
};

struct Program {
  int microbatches = 0;
  std::vector<ProgramBuffer> buffers;
  std::vector<Block> blocks;
  std::vector<StageProgram> stages;

  // The buffer that an operand names. Requires: number is not −1.
  ProgramBuffer& buffer(int number) { return buffers[static_cast<std::size_t>(number)]; }
  const ProgramBuffer& buffer(int number) const {
    return buffers[static_cast<std::size_t>(number)];
  }
};

// Computes first_instance, instances and operations of every stage from the other fields.
void number_instances(Program& program);

std::string_view name_of(StepPass pass);

}  // namespace trainyard
