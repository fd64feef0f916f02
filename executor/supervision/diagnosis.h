// Says from the boards of its ranks what is wrong with a run, in one sentence that names rank,
// host, operation and call.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/supervision/waits.h"
#include "executor/supervision/whereabouts.h"

namespace trainyard {

// What such a sentence needs beside the boards.
struct RunWords {
  // "all-reduce over the tensor group of layer 3, …": an operation of a rank's list.
  DescribeOperation described;
  std::function<Waits(const Boards& boards, int rank)> waits = waits_without_program;
};
// Requires: both outlive it.
RunWords words_of(const Program& program, const RankLayout& layout);

bool has_ended(RankState state);

// Sentence on a rank that has reported its own failure; if several have, the one at fault rather
// than one that failed because of it. Nothing: none has.
std::optional<std::string> failure_of(const Boards& boards, const RunWords& words);

// Sentence on a rank that was killed; else on ranks that got SIGTERM (a launcher sends it to the
// others too). Nothing: no rank is dead.
std::optional<std::string> death_of(const Boards& boards, const RunWords& words);

// Which ranks keep a run at a standstill.
struct Culprits {
  // Ranks that wait for nobody: stopped, computing, or in a call that lacks nobody. If all ranks
  // wait for each other, all of them.
  std::vector<int> ranks;
  // All of `ranks` are in the same call, and nothing tells which one is at fault.
  bool is_tie = false;
  std::vector<int> waiting;  // ranks whose own call waits for one of them
  std::vector<int> unseen;   // ranks without a board that others wait for
};
// Follows from rank to rank who waits for whom. `stopped` says whether a process is stopped
// (executor/supervision/process_state.h). No culprits: every rank has ended.
Culprits culprits_of(const Boards& boards, const RunWords& words,
                     const std::function<bool(int process)>& stopped);

// Sentence on a run that has made no progress for `timeout`. Nothing: every rank has ended.
std::optional<std::string> standstill_of(const Boards& boards, const RunWords& words,
                                         Seconds timeout);

}  // namespace trainyard
