// The program of one training step (docs/adr/0006-program.md): what every rank executes, folded.
//
// All ranks of a stage run the same operations on parts of the same size: a stage is the class of
// equivalent ranks, and there is one StageProgram for each. It folds twice more. A block holds the
// operations of one layer (or embedding, head, boundary of a stage), whichever layer it is; a body
// lists the blocks that one pass over a chunk calls; steps say in which order the passes come and
// for which micro-batch. Size: O(blocks + layers of the stage + passes), not their product.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/program/operation.h"

namespace trainyard {

// What a step of the program does. `start`: weights whose update is still scattered are gathered
// beside the first passes. `finish`: gradients that nothing hid, their norm, the optimizer.
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
  int position = 0;      // of the chunk's layers, 0 … n; n stands behind the last one
  int local_layer = -1;  // of the stage's layers, over all its chunks
  int peer = -1;         // stage that a boundary sends to or receives from
};

struct Body {
  std::vector<BlockCall> calls;
};

struct Step {
  int body = 0;  // index in StageProgram::bodies
  StepPass pass = StepPass::forward;
  int chunk = 0;  // of the stage
  int microbatch = 0;
  int slot = 0;  // the micro-batch's among those of its chunk that are in flight
  // One of a forward and a backward pass that a schedule means to run side by side (DualPipe): they
  // follow each other here, begin and end together.
  bool paired = false;
};

struct ChunkLayout {
  int first_layer = 0;  // of the network
  int layers = 0;
  int first_position = 0;  // positions of the stage's chunks before it: n + 1 each
  int first_local_layer = 0;
};

struct StageProgram {
  std::vector<ChunkLayout> chunks;
  std::vector<Body> bodies;
  std::vector<Step> steps;
  int slots = 0;                    // most micro-batches of one chunk in flight
  std::vector<int> first_instance;  // by buffer: where its instances begin among the stage's
  int instances = 0;
  std::int64_t operations = 0;  // that a rank of the stage runs
};

struct Program {
  int microbatches = 0;
  std::vector<ProgramBuffer> buffers;
  std::vector<Block> blocks;
  std::vector<StageProgram> stages;

  // As operands name it. Requires: a buffer, not −1.
  ProgramBuffer& buffer(int number) { return buffers[static_cast<std::size_t>(number)]; }
  const ProgramBuffer& buffer(int number) const {
    return buffers[static_cast<std::size_t>(number)];
  }
};

// Fills first_instance, instances and operations of every stage from the rest.
void number_instances(Program& program);

std::string_view name_of(StepPass pass);

}  // namespace trainyard
