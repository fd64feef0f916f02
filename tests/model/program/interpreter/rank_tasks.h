// Lists the operations of one rank with their dependencies spelled out. Every operand with access
// `create` is a new value. A task waits for the task before it on its stream and for the last
// writer of each value that it uses; a task that updates a value also waits for those that read it
// since. Only tests list them: other readers of a program keep a view.
#pragma once

#include <vector>

#include "model/program/view.h"

namespace trainyard::interpreter {

struct RankTask {
  IssuedOperation issued;
  std::vector<int> values;  // index into RankTasks::values, by operand
  std::vector<int> successors;
  int waits_for = 0;  // number of tasks
  int turn = 0;       // counts the messages of its group, or between two stages in one direction
};

struct Value {
  int buffer = 0;
  int layer = -1;      // of the network, if there is one buffer per layer
  int microbatch = 0;  // if there is one buffer per micro-batch
};

struct RankTasks {
  std::vector<RankTask> tasks;
  std::vector<Value> values;
};

RankTasks tasks_of(const Program& program, int stage);

}  // namespace trainyard::interpreter
