#include "model/program/lower.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "model/program/blocks.h"
#include "model/program/not_lowered.h"
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
    case StepPass::finish:
      break;
  }
  return -1;
}

// The micro-batches of a chunk take the lowest free place when their forward pass begins and give
// it back after the pass that uses their activations last.
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

class StageBuilder {
 public:
  StageBuilder(const Lowering& lowering, const ProgramBlocks& blocks, int stage)
      : lowering_(lowering), blocks_(blocks), plan_(lowering.plan), stage_(stage) {
    lay_out_chunks();
  }

  StageProgram build(const std::vector<Pass>& passes) {
    std::vector<Slots> slots(program_.chunks.size());
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const Pass& pass = passes[i];
      Slots& mine = slots[static_cast<std::size_t>(pass.chunk)];
      const bool begins = pass.kind == PassKind::forward;
      const int slot = begins ? mine.take(pass.microbatch) : mine.of(pass.microbatch);
      program_.steps.push_back({.body = body_of(pass, completes_gradients(passes, i)),
                                .pass = step_pass(pass.kind),
                                .chunk = pass.chunk,
                                .microbatch = pass.microbatch,
                                .slot = slot});
      if (ends(pass.kind)) mine.give_back(slot);
    }
    for (const Slots& mine : slots) program_.slots = std::max(program_.slots, mine.most());
    finish();
    return std::move(program_);
  }

 private:
  void lay_out_chunks() {
    const int stages = plan_.pipeline_parallel;
    const int layers = lowering_.model.layers;
    ChunkLayout layout;
    for (int chunk = 0, first = 0; chunk < stages * plan_.virtual_stages; ++chunk) {
      const int count = layers_of_chunk(plan_, layers, chunk);
      if (chunk % stages == stage_) {
        layout.first_layer = first;
        layout.layers = count;
        program_.chunks.push_back(layout);
        layout.first_position += count + 1;
        layout.first_local_layer += count;
      }
      first += count;
    }
  }

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

  int body_of(const Pass& pass, bool last) {
    const auto key = std::array{static_cast<int>(pass.kind), pass.chunk, last ? 1 : 0};
    const auto [found, is_new] = bodies_.try_emplace(key, 0);
    if (is_new) {
      found->second = static_cast<int>(program_.bodies.size());
      program_.bodies.push_back(make_body(pass.chunk, step_pass(pass.kind), last));
    }
    return found->second;
  }

  bool has_embedding(int chunk) const { return stage_ == 0 && chunk == 0; }
  bool has_head(int chunk) const {
    return stage_ == plan_.pipeline_parallel - 1 && chunk == plan_.virtual_stages - 1;
  }
  // Chunks follow each other round the stages.
  int stage_before() const {
    return (stage_ + plan_.pipeline_parallel - 1) % plan_.pipeline_parallel;
  }
  int stage_after() const { return (stage_ + 1) % plan_.pipeline_parallel; }

  const UnitBlocks& layer_blocks(int layer) const {
    return blocks_.layers[static_cast<std::size_t>(index_of(layer_kind(lowering_.model, layer)))];
  }

  static void call(Body& body, const Call& call) {
    if (call.block >= 0) body.calls.push_back(call);
  }

  Call layer_call(int chunk, int position, int block) const {
    const ChunkLayout& layout = program_.chunks[static_cast<std::size_t>(chunk)];
    return {.block = block,
            .layer = layout.first_layer + position,
            .position = position,
            .local_layer = layout.first_local_layer + position};
  }

  Body make_body(int chunk, StepPass pass, bool last) const {
    return pass == StepPass::forward ? forward_body(chunk) : backward_body(chunk, pass, last);
  }

  Body forward_body(int chunk) const {
    const int layers = program_.chunks[static_cast<std::size_t>(chunk)].layers;
    Body body;
    if (has_embedding(chunk)) {
      call(body, {.block = blocks_.embedding.forward});
    } else {
      call(body, {.block = blocks_.receive_forward, .peer = stage_before()});
    }
    for (int position = 0; position < layers; ++position) {
      const ChunkLayout& layout = program_.chunks[static_cast<std::size_t>(chunk)];
      call(body, layer_call(chunk, position, layer_blocks(layout.first_layer + position).forward));
    }
    if (has_head(chunk)) {
      call(body, {.block = blocks_.head.forward, .position = layers});
    } else {
      call(body, {.block = blocks_.send_forward, .position = layers, .peer = stage_after()});
    }
    return body;
  }

  Body backward_body(int chunk, StepPass pass, bool last) const {
    const ChunkLayout& layout = program_.chunks[static_cast<std::size_t>(chunk)];
    const bool moves = pass != StepPass::weight_gradient;
    const bool reduces = last && plan_.overlap.data_parallel;
    Body body;
    if (has_head(chunk)) {
      call(body, {.block = block_of(blocks_.head, pass), .position = layout.layers});
      if (reduces) call(body, {.block = blocks_.head.reduction});
    } else if (moves) {
      call(body,
           {.block = blocks_.receive_gradient, .position = layout.layers, .peer = stage_after()});
    }
    for (int position = layout.layers - 1; position >= 0; --position) {
      const UnitBlocks& unit = layer_blocks(layout.first_layer + position);
      call(body, layer_call(chunk, position, block_of(unit, pass)));
      if (reduces) call(body, layer_call(chunk, position, unit.reduction));
    }
    if (has_embedding(chunk)) {
      call(body, {.block = block_of(blocks_.embedding, pass)});
    } else if (moves) {
      call(body, {.block = blocks_.send_gradient, .peer = stage_before()});
    }
    return body;
  }

  void add_ends(Body& body, int UnitBlocks::*block) const {
    if (stage_ == 0) call(body, {.block = blocks_.embedding.*block});
    if (stage_ == plan_.pipeline_parallel - 1) call(body, {.block = blocks_.head.*block});
  }

  void add_units(Body& body, int UnitBlocks::*block) const {
    add_ends(body, block);
    add_layers(body, block);
  }

  void add_layers(Body& body, int UnitBlocks::*block) const {
    for (int chunk = 0; chunk < static_cast<int>(program_.chunks.size()); ++chunk) {
      const ChunkLayout& layout = program_.chunks[static_cast<std::size_t>(chunk)];
      for (int position = 0; position < layout.layers; ++position) {
        const UnitBlocks& unit = layer_blocks(layout.first_layer + position);
        call(body, layer_call(chunk, position, unit.*block));
      }
    }
  }

  // What no backward pass hid, the copies of a tied matrix, the norm and the optimizer.
  void finish() {
    Body body;
    const bool overlapped = plan_.overlap.data_parallel;
    if (!overlapped) {
      add_units(body, &UnitBlocks::reduction);
    } else if (stage_ == 0) {
      // Its backward pass is the last of all; nothing is left to hide behind.
      call(body, {.block = blocks_.embedding.reduction});
    }
    if (stage_ == 0) call(body, {.block = blocks_.tied_first});
    if (stage_ == plan_.pipeline_parallel - 1) call(body, {.block = blocks_.tied_last});
    add_units(body, &UnitBlocks::norm);
    call(body, {.block = blocks_.norm_reduction});
    add_units(body, &UnitBlocks::update);
    program_.steps.push_back(
        {.body = static_cast<int>(program_.bodies.size()), .pass = StepPass::finish});
    program_.bodies.push_back(std::move(body));
  }

  const Lowering& lowering_;
  const ProgramBlocks& blocks_;
  const Plan& plan_;
  int stage_ = 0;
  StageProgram program_;
  std::map<std::array<int, 3>, int> bodies_;  // pass kind, chunk, last → index
};

}  // namespace

Expected<Program> lower(const Transformer& model, const Training& training, const Plan& plan) {
  if (auto gap = not_lowered(model, training, plan)) return tl::unexpected(std::move(*gap));
  Lowering lowering = start_lowering(model, training, plan);
  const ProgramBlocks blocks = make_blocks(lowering);
  const PassList passes = plan.schedule->passes({.stages = plan.pipeline_parallel,
                                                 .chunks = plan.virtual_stages,
                                                 .microbatches = plan.microbatches});
  for (int stage = 0; stage < plan.pipeline_parallel; ++stage) {
    StageBuilder builder(lowering, blocks, stage);
    lowering.program.stages.push_back(builder.build(passes[static_cast<std::size_t>(stage)]));
  }
  number_instances(lowering.program);
  return std::move(lowering.program);
}

}  // namespace trainyard
