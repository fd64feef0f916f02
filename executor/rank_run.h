// What one rank of a run does from start to end: its steps, what it measures, and where asked the
// comparison with the unsharded network. Everything that anyone else wants to know stands on its
// board.
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
  std::optional<int> alone;  // a rank that runs without its peers; nothing: all run
  // Where no supervisor starts the ranks: within which they find each other, and each of them goes
  // on from one operation to the next.
  Seconds timeout{60};
  int all_steps() const { return warmup + steps; }
};

// Collective over the ranks of `transport`. The error is a sentence without the rank's name; it
// stands on the board too.
Expected<void> run_rank(const Setting& setting, const RunPlan& plan, const Program& program,
                        const RankLayout& layout, Transport& transport, Board& board);

// What the backend has no arithmetic for: optimizers, precisions; on a device, memory outside it.
// Nothing: it can be run.
std::optional<Error> not_executed(const Setting& setting, BackendKind backend);

}  // namespace trainyard
