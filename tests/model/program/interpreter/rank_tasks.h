// The operations of one rank with their dependencies spelled out: every `create` is a new value,
// and a task waits for its stream, for the last writer of what it uses and, where it updates, for
// the readers since. Listing them is for tests only; a reader of the program keeps a view.
#pragma once

#include <vector>

#include "model/program/view.h"

namespace trainyard::interpreter {

struct RankTask {
  IssuedOperation issued;
  std::vector<int> values;  // by operand
  std::vector<int> successors;
  int waits_for = 0;  // tasks
  int turn = 0;       // among the messages of its group, or of its way between two stages
};

struct Value {
  int buffer = 0;
  int layer = -1;      // of the network, where the buffer is one a layer
  int microbatch = 0;  // where it is one a micro-batch
};

struct RankTasks {
  std::vector<RankTask> tasks;
  std::vector<Value> values;
};

RankTasks tasks_of(const Program& program, int stage);

}  // namespace trainyard::interpreter
