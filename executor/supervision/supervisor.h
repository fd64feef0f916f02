// Starts the ranks of a run, watches them through their boards, and ends them: when they are done,
// when one of them fails, dies, hangs or never starts, and when the user has had enough. Whatever
// happens no process is left over, and what was measured is on the boards.
//
// One host: ranks are started by mpirun (a single rank directly). A rank hangs when no rank has
// begun an operation for the timeout; the culprit is who the others wait for (diagnosis.h).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/supervision/diagnosis.h"

namespace trainyard {

// Of a rank process: the folder of the boards.
inline constexpr const char* kRunFolder = "TRAINYARD_RUN_FOLDER";

struct RankLaunch {
  std::vector<std::string> command;  // of a rank: program and arguments
  int ranks = 1;
  Seconds timeout{60};
  RunWords words;
  std::function<bool()> interrupted;
  std::function<void(double fraction)> progress;
  // Many times a second, with what the ranks have published; may be empty.
  std::function<void(Boards& boards)> looked;
};

struct Launched {
  Boards boards;
  std::string failure;  // one sentence; empty: every rank is done
  bool interrupted = false;
};

// The error: nothing could be started at all.
Expected<Launched> launch(const RankLaunch& what);

}  // namespace trainyard
