// Starts the ranks of a run, watches them through their boards, and ends them: when they are done,
// when one of them fails, dies, hangs or never starts, and when the user has had enough. Whatever
// happens no process is left over, and what was measured is on the boards.
//
// One host: ranks are started by mpirun (a single rank directly). A rank hangs when no rank has
// begun an operation for the timeout; the culprit is the one that computes while the others wait
// for it, or that is furthest behind.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/whereabouts.h"

namespace trainyard {

// Of a rank process: the folder of the boards.
inline constexpr const char* kRunFolder = "TRAINYARD_RUN_FOLDER";

struct RankLaunch {
  std::vector<std::string> command;  // of a rank: program and arguments
  int ranks = 1;
  Seconds timeout{60};
  // "all-reduce over the tensor group of layer 3, …": an operation of a rank's list.
  DescribeOperation described;
  std::function<bool()> interrupted;
  std::function<void(double fraction)> progress;
  // Many times a second, with what the ranks have published; may be empty.
  std::function<void(std::vector<std::optional<Board>>& boards)> looked;
};

struct Launched {
  std::vector<std::optional<Board>> boards;  // by rank; nothing: it never started
  std::string failure;                       // one sentence; empty: every rank is done
  bool interrupted = false;
};

// The error: nothing could be started at all.
Expected<Launched> launch(const RankLaunch& what);

// Whether a process is there and has not ended; one that has and that nobody has asked about is
// not.
bool is_alive(int process);

}  // namespace trainyard
