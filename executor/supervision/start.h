// How a process finds out that it was started as a rank of a run, and how it runs as one. A
// supervisor tells it by the environment variable kRunFolder (supervisor.h), a launcher by its own
// variables (executor/launcher.h).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "executor/launcher.h"
#include "executor/rank_run.h"
#include "executor/supervision/board.h"

namespace trainyard {

// A process that was started as one of several ranks: by the supervisor, or by a launcher
// (executor/launcher.h).
struct Started {
  std::optional<std::filesystem::path> folder;  // folder of the boards, under a supervisor
  Launcher launcher;                            // without a supervisor
};
// Nothing: the process is not a rank. The error says which variable of a launcher is wrong.
Expected<std::optional<Started>> started_as_rank();

// What a rank returns to its caller.
struct RankResult {
  // Without a supervisor, the boards of all ranks (of a rank alone, its own); else none.
  std::vector<Board> boards;
  std::string failure;   // of this rank; empty: it is done
  bool is_said = false;  // another rank has reported or will report what is wrong
  int rank = 0;
};
// Saves what a rank has measured when it ends before the others, and why it ends.
using SaveBoard = std::function<void(Board& board, const std::string& why)>;
// Runs the process as one rank. Without a supervisor, `save` is called when the rank is told to end
// (SIGTERM, SIGINT), fails, or makes no progress for the plan's timeout; in the first and the last
// case the process then ends. The error: the rank could not begin.
Expected<RankResult> run_as_rank(const Started& started, const Setting& setting,
                                 const RunPlan& plan, const SaveBoard& save);

}  // namespace trainyard
