// Marks: small buffers through which an operation waits for something that no tensor tells, such as
// the beginning of a pass. Internal to model/program.
#pragma once

#include <string_view>

#include "model/program/parts/unit.h"

namespace trainyard {

ProgramBuffer mark(std::string_view name, BufferRole role);

// A wait on the compute stream until `buffer` is written.
Operation await(int buffer);
// Writes `mark` when its stream, compute if not changed, comes to it and has ended what came
// before.
Operation writes(int mark);

// Units that hold something on the device until a transfer has ended take turns, from pass to pass,
// with room for two. `ended` stands on the stream of the transfers, behind those of a unit; `wait`
// stands before the next unit of the same turn. Activations that leave: Transformer Engine's double
// buffering. Gradients that are reduced to parts: FSDP2 waits for the reduce-scatter before the
// last (FSDPParamGroup.post_backward), DeepSpeed has two buckets.
struct TransferTurn {
  Operation ended, wait;
};
TransferTurn transfer_turn(Lowering& lowering, ProgramStream transfers);

}  // namespace trainyard
