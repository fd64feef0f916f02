#include "tests/model/program/interpreter/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>

#include "executor/holdings.h"
#include "tests/model/program/interpreter/collectives.h"
#include "tests/model/program/interpreter/rank_tasks.h"

namespace trainyard::interpreter {
namespace {

struct Rank {
  int number = 0;
  Holdings holdings;
  const RankTasks* list = nullptr;
  std::vector<Tensor<double>> values;
  std::vector<int> waits_for;  // by task
  std::set<int> ready;
};

// One meeting of a group: the n-th collective of the group on a stream.
using Meeting = std::array<int, 4>;  // group, first member, stream, which one
using Parcel = std::array<int, 4>;   // sender, receiver, phase, which one

class Machine {
 public:
  Machine(const Setting& setting, const Program& program, std::uint64_t seed, const Nudge& nudge)
      : setting_(setting),
        program_(program),
        layout_(setting.plan, setting.model.kv_heads),
        nudge_(nudge),
        random_(seed),
        shuffles_(seed != 0) {
    for (int stage = 0; stage < static_cast<int>(program.stages.size()); ++stage) {
      lists_.push_back(tasks_of(program, stage));
    }
    for (int rank = 0; rank < layout_.ranks(); ++rank) add_rank(rank);
  }

  Outcome run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank& rank : ranks_) {
        while (advance(rank)) moved = true;
      }
    }
    report_stuck();
    if (outcome_.stuck.empty()) collect();
    return std::move(outcome_);
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  void add_rank(int number) {
    Rank rank{.number = number, .holdings = Holdings(setting_, program_, layout_, number)};
    rank.list = &lists_[index(rank.holdings.at().stage)];
    for (const Value& value : rank.list->values) rank.values.push_back(initial(rank, value));
    for (std::size_t i = 0; i < rank.list->tasks.size(); ++i) {
      rank.waits_for.push_back(rank.list->tasks[i].waits_for);
      if (rank.waits_for.back() == 0) rank.ready.insert(static_cast<int>(i));
    }
    ranks_.push_back(std::move(rank));
  }

  // The value of a buffer before the program runs. What an operation creates starts as
  // not-a-number.
  Tensor<double> initial(const Rank& rank, const Value& value) const {
    const ProgramBuffer& buffer = program_.buffer(value.buffer);
    switch (buffer.role) {
      case BufferRole::weight:
        return weight(rank, value, buffer);
      case BufferRole::data:
        return as_tensor(rank.holdings.tokens(buffer, value.microbatch, 0), buffer);
      case BufferRole::activation:
        return Tensor<double>::Constant(buffer.rows, buffer.columns, std::nan(""));
      case BufferRole::optimizer:  // plain gradient descent has no moments
        return Tensor<double>::Zero(buffer.rows * buffer.columns, buffer.keeps_weights ? 1 : 0);
      default:
        return Tensor<double>::Zero(buffer.rows, buffer.columns);
    }
  }

  static Tensor<double> as_tensor(const std::vector<double>& numbers, const ProgramBuffer& buffer) {
    return Eigen::Map<const Tensor<double>>(numbers.data(), buffer.rows, buffer.columns);
  }

  Tensor<double> weight(const Rank& rank, const Value& value, const ProgramBuffer& buffer) const {
    std::vector<double> numbers = rank.holdings.initial_weights(buffer, value.layer);
    if (rank.holdings.name(buffer, value.layer) != TensorName(nudge_.weight, nudge_.layer)) {
      return as_tensor(numbers, buffer);
    }
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const auto place = rank.holdings.element(buffer, static_cast<std::int64_t>(k));
      if (place && place->row == nudge_.row && place->column == nudge_.column) {
        numbers[k] += nudge_.by;
      }
    }
    return as_tensor(numbers, buffer);
  }

  bool advance(Rank& rank) {
    if (rank.ready.empty()) return false;
    std::vector<int> candidates(rank.ready.begin(), rank.ready.end());
    if (shuffles_) std::shuffle(candidates.begin(), candidates.end(), random_);
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](int task) { return attempt(rank, task); });
  }

  bool attempt(Rank& rank, int number) {
    const RankTask& task = rank.list->tasks[index(number)];
    const Operation& op = *task.issued.operation;
    switch (op.kind) {
      case OperationKind::send:
        parcels_[parcel(rank.number, peer_of(rank, task), task)] =
            sent_part(rank, rank.values[index(task.values[0])], op);
        break;
      case OperationKind::receive: {
        const auto found = parcels_.find(parcel(peer_of(rank, task), rank.number, task));
        if (found == parcels_.end()) return false;
        rank.values[index(task.values[0])] = found->second;
        break;
      }
      default:
        if (is_communication(op.kind)) return join(rank, number);
        compute_here(rank, task);
    }
    rank.ready.erase(number);
    complete(rank, number);
    return true;
  }

  int peer_of(const Rank& rank, const RankTask& task) const {
    return layout_.in_stage(rank.number, task.issued.call->peer);
  }

  static Parcel parcel(int from, int to, const RankTask& task) {
    return {from, to, static_cast<int>(task.issued.operation->phase), task.turn};
  }

  // If the message is smaller than the buffer, the rank sends its share of the rows.
  Tensor<double> sent_part(const Rank& rank, const Tensor<double>& whole,
                           const Operation& op) const {
    const ProgramBuffer& buffer = program_.buffer(op.operands[0].buffer);
    const auto parts = static_cast<Eigen::Index>(std::lround(buffer.bytes() / op.message));
    const Eigen::Index rows = whole.rows() / parts;
    return parts == 1 ? whole
                      : Tensor<double>(whole.middleRows(rank.holdings.at().tensor * rows, rows));
  }

  Operands<double> operands_of(Rank& rank, const RankTask& task) {
    Operands<double> operands;
    for (std::size_t i = 0; i < task.values.size(); ++i) {
      const Operand& operand = task.issued.operation->operands[i];
      Tensor<double>* value = &rank.values[index(task.values[i])];
      switch (operand.access) {
        case Access::read:
          operands.in.push_back(value);
          operands.in_buffers.push_back(&program_.buffer(operand.buffer));
          break;
        case Access::create:
          operands.out.push_back(value);
          break;
        case Access::update:
          operands.in_place.push_back(value);
          operands.in_place_buffers.push_back(&program_.buffer(operand.buffer));
          break;
      }
    }
    return operands;
  }

  void compute_here(Rank& rank, const RankTask& task) {
    if (task.issued.operation->kind == OperationKind::optimizer_step) note_gradients(rank, task);
    const Group group = task.issued.operation->group;
    const int shard =
        group == Group::none ? 0 : layout_.members(group, rank.number).index_of(rank.number);
    compute(*task.issued.operation, {setting_, rank.holdings.at(), task.issued.tag(), shard},
            operands_of(rank, task));
  }

  // Returns true: the rank has joined the collective, which runs when all members have come.
  bool join(Rank& rank, int number) {
    const RankTask& task = rank.list->tasks[index(number)];
    const Operation& op = *task.issued.operation;
    const GroupMembers members = layout_.members(op.group, rank.number);
    const Meeting meeting{static_cast<int>(op.group), members.first, static_cast<int>(op.stream),
                          task.turn};
    auto& present = meetings_[meeting];
    present[rank.number] = number;
    rank.ready.erase(number);
    if (static_cast<int>(present.size()) == members.size()) hold(op, members, present);
    return true;
  }

  void hold(const Operation& op, const GroupMembers& members, const std::map<int, int>& present) {
    std::vector<Operands<double>> operands;
    for (int i = 0; i < members.size(); ++i) {
      Rank& rank = ranks_[index(members[i])];
      operands.push_back(operands_of(rank, rank.list->tasks[index(present.at(members[i]))]));
    }
    take_part(op, operands);
    for (const auto& [rank, task] : present) complete(ranks_[index(rank)], task);
  }

  void complete(Rank& rank, int number) {
    for (const int next : rank.list->tasks[index(number)].successors) {
      if (--rank.waits_for[index(next)] == 0) rank.ready.insert(next);
    }
  }

  // ---- What came out ----------------------------------------------------------------

  void note_gradients(Rank& rank, const RankTask& task) {
    for (std::size_t i = 0; i < updated_gradients(*task.issued.operation); ++i) {
      const Value& value = rank.list->values[index(task.values[i])];
      note(rank, value, rank.values[index(task.values[i])], outcome_.gradients);
    }
  }

  void note(const Rank& rank, const Value& value, const Tensor<double>& matrix, Elements& into) {
    const ProgramBuffer& buffer = program_.buffer(value.buffer);
    auto& elements = into[rank.holdings.name(buffer, value.layer)];
    for (Eigen::Index k = 0; k < matrix.size(); ++k) {
      // Not-a-number marks another rank's part of sharded states.
      const double number = matrix.data()[k];
      const auto place = rank.holdings.element(buffer, k);
      if (std::isnan(number) || !place) continue;
      const auto [found, is_new] = elements.try_emplace({place->row, place->column}, number);
      if (!is_new) {
        outcome_.disagreement = std::max(outcome_.disagreement, std::abs(found->second - number));
      }
    }
  }

  void collect() {
    for (Rank& rank : ranks_) {
      for (std::size_t i = 0; i < rank.values.size(); ++i) {
        const Value& value = rank.list->values[i];
        const ProgramBuffer& buffer = program_.buffer(value.buffer);
        if (buffer.role == BufferRole::weight) {
          note(rank, value, rank.values[i], outcome_.weights);
        }
        if (buffer.name == "loss" && rank.holdings.at().tensor == 0)
          outcome_.loss += rank.values[i](0, 0);
      }
    }
  }

  void report_stuck() {
    for (const Rank& rank : ranks_) {
      for (std::size_t i = 0; i < rank.waits_for.size(); ++i) {
        const bool waits = rank.waits_for[i] > 0 || rank.ready.contains(static_cast<int>(i));
        if (!waits) continue;
        outcome_.stuck =
            fmt::format("rank {}: {}", rank.number, described(rank.list->tasks[i].issued));
        return;
      }
    }
  }

  const Setting& setting_;
  const Program& program_;
  RankLayout layout_;
  Nudge nudge_;
  std::mt19937_64 random_;
  bool shuffles_;
  std::vector<RankTasks> lists_;  // by stage
  std::vector<Rank> ranks_;
  std::map<Meeting, std::map<int, int>> meetings_;  // rank → task
  std::map<Parcel, Tensor<double>> parcels_;
  Outcome outcome_;
};

}  // namespace

Outcome run(const Setting& setting, const Program& program, std::uint64_t seed,
            const Nudge& nudge) {
  return Machine(setting, program, seed, nudge).run();
}

}  // namespace trainyard::interpreter
