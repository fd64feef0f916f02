// What one rank of a run does from start to end: its steps, its measurements and, if asked for, the
// comparison with the unsharded network. It publishes everything that others may want to know on
// its board (executor/supervision/board.h).
#pragma once

#include <optional>

#include "executor/backend.h"
#include "executor/setting.h"
#include "executor/supervision/board.h"
#include "executor/verification.h"

namespace trainyard {

struct RunPlan {
  BackendKind backend = BackendKind::cpu;
  int warmup = 1;
  int steps = 3;  // measured, after the warm-up
  bool verify = false;
  bool same_batch = false;
  std::optional<int> alone;  // the only rank that runs, without its peers; nothing: all ranks run
  // Without a supervisor: how long the ranks may take to find each other, and how long a rank may
  // stand still between two operations.
  Seconds timeout{60};
  int all_steps() const { return warmup + steps; }
};

// Collective over the ranks of `transport`. The error is a sentence without the rank's name, which
// the board gets too.
Expected<void> run_rank(const Setting& setting, const RunPlan& plan, const Program& program,
                        const RankLayout& layout, Transport& transport, Board& board);

// Why the backend cannot run this: an optimizer, a precision or, on a device, an offload target
// that it does not implement. Nothing: it can.
std::optional<Error> not_executed(const Setting& setting, BackendKind backend);

}  // namespace trainyard
