#include "tests/model/program/interpreter/rank_tasks.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace trainyard::interpreter {
namespace {

using Way = std::array<int, 4>;

Way pipeline_way(const IssuedOperation& issued) {
  const Operation& op = *issued.operation;
  return {static_cast<int>(ProgramStream::pipeline), static_cast<int>(op.kind),
          static_cast<int>(op.phase), issued.call->peer};
}

// The queue in which an operation waits: its stream, or a direction between two stages.
Way queue_of(const IssuedOperation& issued) {
  const Operation& op = *issued.operation;
  if (op.stream == ProgramStream::pipeline) return pipeline_way(issued);
  return {static_cast<int>(op.stream), 0, 0, 0};
}

// The messages among which both sides count this one.
Way way_of(const IssuedOperation& issued) {
  const Operation& op = *issued.operation;
  if (op.group == Group::none) return pipeline_way(issued);
  return {static_cast<int>(op.stream), static_cast<int>(op.group), 0, 0};
}

class Lister {
 public:
  Lister(const Program& program, int stage)
      : program_(program),
        value_of_(
            static_cast<std::size_t>(program.stages[static_cast<std::size_t>(stage)].instances),
            -1) {
    for (const IssuedOperation issued : operations_of(program, stage)) add(issued);
  }
  RankTasks list() { return std::move(list_); }

 private:
  struct Users {
    int writer = -1;
    std::vector<int> readers;
  };

  void add(const IssuedOperation& issued) {
    const int self = static_cast<int>(list_.tasks.size());
    RankTask task{.issued = issued};
    std::vector<int> before;
    const auto [queue, is_new] = last_in_queue_.try_emplace(queue_of(issued), self);
    if (!is_new) before.push_back(std::exchange(queue->second, self));
    task.turn = turns_[way_of(issued)]++;
    for (const Operand& operand : issued.operation->operands) {
      const int value = value_for(issued, operand);
      task.values.push_back(value);
      Users& users = users_[static_cast<std::size_t>(value)];
      if (operand.access != Access::create && users.writer >= 0) before.push_back(users.writer);
      if (operand.access == Access::read) {
        users.readers.push_back(self);
      } else {
        before.insert(before.end(), users.readers.begin(), users.readers.end());
        users = {self, {}};
      }
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    std::erase(before, self);
    task.waits_for = static_cast<int>(before.size());
    for (const int earlier : before) {
      list_.tasks[static_cast<std::size_t>(earlier)].successors.push_back(self);
    }
    list_.tasks.push_back(std::move(task));
  }

  int value_for(const IssuedOperation& issued, const Operand& operand) {
    int& value = value_of_[static_cast<std::size_t>(instance_of(program_, issued, operand))];
    if (operand.access == Access::create || value < 0) {
      value = static_cast<int>(list_.values.size());
      list_.values.push_back({.buffer = operand.buffer,
                              .layer = layer_of(program_, issued, operand),
                              .microbatch = issued.step->microbatch});
      users_.emplace_back();
    }
    return value;
  }

  const Program& program_;
  RankTasks list_;
  std::vector<int> value_of_;         // by buffer instance
  std::vector<Users> users_;          // by value
  std::map<Way, int> last_in_queue_;  // task
  std::map<Way, int> turns_;
};

}  // namespace

RankTasks tasks_of(const Program& program, int stage) { return Lister(program, stage).list(); }

}  // namespace trainyard::interpreter
