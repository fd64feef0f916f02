// How a process knows that it is a rank, and runs as one.
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
  std::optional<std::filesystem::path> folder;  // of the boards, where a supervisor looks at them
  Launcher launcher;                            // where none does
};
// Nothing: the process is no rank. The error: what a launcher's variables say wrongly.
Expected<std::optional<Started>> started_as_rank();

// What a rank gives its caller: its exit status, and in a run without a supervisor the boards of
// all (of a rank alone its own).
struct RankResult {
  std::vector<Board> boards;
  std::string failure;   // of this rank
  bool is_said = false;  // another rank of this host has said what is wrong
  int rank = 0;
};
// Keeps what a rank has measured when it ends before the others, and why it does.
using SaveBoard = std::function<void(Board& board, const std::string& why)>;
// `save`: called where no supervisor looks at the rank and it is told to end (SIGTERM, SIGINT),
// fails, or has not gone on for the plan's timeout. The process ends in the first and the last
// case. The error: the rank could not begin.
Expected<RankResult> run_as_rank(const Started& started, const Setting& setting,
                                 const RunPlan& plan, const SaveBoard& save);

}  // namespace trainyard
