// Starts the ranks of a run, watches them through their boards, and ends them: when they are done,
// when one of them fails, dies, hangs or never starts, or when the user interrupts. No process is
// ever left over, and what was measured is on the boards.
//
// The ranks run on this host, started by mpirun (a single rank directly). A run hangs when no rank
// makes progress for the timeout; the culprit is the rank that the others wait for (diagnosis.h).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/supervision/diagnosis.h"

namespace trainyard {

// Environment variable that tells a rank process the folder of the boards.
inline constexpr const char* kRunFolder = "TRAINYARD_RUN_FOLDER";

struct RankLaunch {
  std::vector<std::string> command;  // program and arguments of a rank
  int ranks = 1;
  Seconds timeout{60};
  RunWords words;
  std::function<bool()> interrupted;
  std::function<void(double fraction)> progress;
  // Called many times a second with what the ranks have published; may be empty.
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
