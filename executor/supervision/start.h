// How a process knows that it is a rank, and runs as one.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "executor/rank_run.h"
#include "executor/supervision/board.h"

namespace trainyard {

// A process that was started as one of several ranks: by the supervisor, by the user's own mpirun
// or srun, or by a launcher that sets RANK and WORLD_SIZE (executor/cpu/socket_transport.h).
struct Started {
  std::optional<std::filesystem::path> folder;  // of the boards, where a supervisor looks at them
  int ranks = 1;  // without a supervisor: as many as the launcher says that it has started
};
std::optional<Started> started_as_rank();
// How many ranks a launcher has started on this host, this one among them; 1 where it does not say.
int ranks_of_host();
// What is wrong where a launcher's RANK and WORLD_SIZE are set and name no rank.
std::optional<Error> wrong_environment();

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
