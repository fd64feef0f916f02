// What is wrong with a run, in one sentence that names rank, host, operation and call, from the
// boards of its ranks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/supervision/waits.h"
#include "executor/supervision/whereabouts.h"

namespace trainyard {

// What a sentence needs beside the boards.
struct RunWords {
  // "all-reduce over the tensor group of layer 3, …": an operation of a rank's list.
  DescribeOperation described;
  std::function<Waits(const Boards& boards, int rank)> waits = waits_without_program;
};
// Requires: both outlive it.
RunWords words_of(const Program& program, const RankLayout& layout);

bool has_ended(RankState state);

// A rank that says itself that it failed: the one at fault, not one that fails with it. Nothing: no
// rank does.
std::optional<std::string> failure_of(const Boards& boards, const RunWords& words);

// A rank that was killed; else those that were told to end, for which a launcher tells the others
// to end too.
std::optional<std::string> death_of(const Boards& boards, const RunWords& words);

// Who keeps a run from going on that stands still.
struct Culprits {
  // Who waits for nobody: in a computation, stopped, or in a call that lacks nobody. Where all wait
  // for each other, all.
  std::vector<int> ranks;
  // They are in one and the same call and nothing tells one from the other.
  bool is_tie = false;
  std::vector<int> waiting;  // for one of them, in their own call
  std::vector<int> unseen;   // ranks without a board that seen ones wait for
};
// Follows from rank to rank who waits for whom. `stopped`: of a process
// (executor/supervision/process_state.h). Every rank has ended: no culprits.
Culprits culprits_of(const Boards& boards, const RunWords& words,
                     const std::function<bool(int process)>& stopped);

// Of a run that has not gone on for `timeout`. Nothing: every rank has ended.
std::optional<std::string> standstill_of(const Boards& boards, const RunWords& words,
                                         Seconds timeout);

}  // namespace trainyard
