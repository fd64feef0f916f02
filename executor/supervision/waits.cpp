#include "executor/supervision/waits.h"

#include <algorithm>
#include <tuple>

#include "executor/supervision/whereabouts.h"
#include "model/program/view.h"

namespace trainyard {
namespace {

bool is_at(const BoardHead& head, std::int64_t operation) {
  const std::vector<std::int64_t> at = operations_at(head);
  return std::find(at.begin(), at.end(), operation) != at.end();
}

// Whether a rank is in an operation of the program, not before, between or after steps.
bool is_in_step(const BoardHead& head) {
  const std::vector<std::int64_t> at = operations_at(head);
  return head.state == RankState::running && !at.empty() && at.front() < head.operations;
}

// How far a rank is in what all ranks do together outside the program: start, train the network on
// one rank, and after each step sum up the loss and compare.
std::tuple<int, std::int64_t, int> milestone(const BoardHead& head) {
  const RankState state = head.state;
  if (state == RankState::absent || state == RankState::starting) return {0, 0, 0};
  if (state == RankState::unsharded) return {1, 0, 0};
  if (state == RankState::comparing) return {2, head.steps_done, 0};
  if (state == RankState::running) {
    return {2, head.steps_done, head.operation < head.operations || is_in_step(head) ? 1 : 2};
  }
  return {3, 0, 0};
}

class Waiting {
 public:
  Waiting(const Program& program, const RankLayout& layout, const Boards& boards, int rank)
      : program_(program),
        layout_(layout),
        boards_(boards),
        rank_(rank),
        stage_(layout.coordinates(rank).stage),
        own_(boards[static_cast<std::size_t>(rank)]->head()) {}

  Waits found() {
    if (!is_in_step(own_)) {
      wait_outside();
    } else {
      for (const std::int64_t operation : operations_at(own_)) wait_in(operation);
    }
    for (std::vector<int>* ranks : {&waits_.for_ranks, &waits_.with, &waits_.passed}) {
      std::sort(ranks->begin(), ranks->end());
      ranks->erase(std::unique(ranks->begin(), ranks->end()), ranks->end());
    }
    return std::move(waits_);
  }

 private:
  const Board* board(int rank) const {
    const auto& board = boards_[static_cast<std::size_t>(rank)];
    return board ? &*board : nullptr;
  }

  // Whether a rank has begun the operation in this step; false for ranks that are not seen.
  bool has_come(int rank, std::int64_t operation) const {
    const Board* other = board(rank);
    if (other == nullptr) return false;
    const std::int64_t done = other->head().steps_done, here = own_.steps_done;
    return done > here || (done == here && operation < other->head().operations &&
                           other->begun()[operation] > here);
  }

  // Notes whether the other rank has come to an operation; true if it has also left it.
  bool meet(int rank, std::int64_t operation) {
    if (!has_come(rank, operation)) {
      waits_.for_ranks.push_back(rank);
      return false;
    }
    const BoardHead& other = board(rank)->head();
    const bool there = other.steps_done == own_.steps_done && is_at(other, operation);
    if (there) waits_.with.push_back(rank);
    return !there;
  }

  // The number, in the list of a stage, of the n-th operation that `matches`; if there is none, the
  // number behind the last operation.
  template <typename Matches>
  std::int64_t number_of(int stage, std::int64_t n, const Matches& matches) const {
    std::int64_t number = 0;
    for (const IssuedOperation issued : operations_of(program_, stage)) {
      if (matches(issued) && n-- == 0) return number;
      ++number;
    }
    return number;
  }
  // How many operations that match come before `operation` in this rank's list.
  template <typename Matches>
  std::int64_t count_before(std::int64_t operation, const Matches& matches) const {
    std::int64_t number = 0, count = 0;
    for (const IssuedOperation issued : operations_of(program_, stage_)) {
      if (number++ == operation) break;
      if (matches(issued)) ++count;
    }
    return count;
  }

  void wait_in(std::int64_t operation) {
    std::int64_t number = 0;
    for (const IssuedOperation issued : operations_of(program_, stage_)) {
      if (number++ != operation) continue;
      const OperationKind kind = issued.operation->kind;
      if (kind == OperationKind::receive || kind == OperationKind::send) {
        wait_for_message(issued, operation);
      } else if (is_communication(kind)) {
        wait_for_group(issued.operation->group, operation);
      }
      return;
    }
  }

  void wait_for_group(Group group, std::int64_t operation) {
    const auto same = [group](const IssuedOperation& issued) {
      return is_communication(issued.operation->kind) && issued.operation->group == group;
    };
    const std::int64_t turn = count_before(operation, same);
    const GroupMembers members = layout_.members(group, rank_);
    for (int i = 0; i < members.size(); ++i) {
      const int stage = layout_.coordinates(members[i]).stage;
      meet(members[i], stage == stage_ ? operation : number_of(stage, turn, same));
    }
  }

  // A send on the host keeps a copy and waits for nobody; on a device it waits for its receive.
  void wait_for_message(const IssuedOperation& issued, std::int64_t operation) {
    const bool sends = issued.operation->kind == OperationKind::send;
    const bool on_device = own_.under_way[0] >= 0;
    if (!sends || on_device) meet_peer(issued, operation);
    waits_.with.push_back(rank_);
  }

  void meet_peer(const IssuedOperation& issued, std::int64_t operation) {
    const OperationKind kind = issued.operation->kind;
    const OperationKind other =
        kind == OperationKind::send ? OperationKind::receive : OperationKind::send;
    const Phase phase = issued.operation->phase;
    const int peer = issued.call->peer;
    const auto one_of = [phase](OperationKind of, int with) {
      return [=](const IssuedOperation& each) {
        return each.operation->kind == of && each.operation->phase == phase &&
               each.call->peer == with;
      };
    };
    const std::int64_t turn = count_before(operation, one_of(kind, peer));
    const int rank = layout_.in_stage(rank_, peer);
    const bool passed = meet(rank, number_of(peer, turn, one_of(other, stage_)));
    if (passed && kind == OperationKind::receive) waits_.passed.push_back(rank);
  }

  // At the end of a step all messages leave first, then all ranks sum up the loss.
  void wait_outside() {
    if (own_.state == RankState::running && own_.call == RankCall::wait) {
      std::int64_t number = 0;
      for (const IssuedOperation issued : operations_of(program_, stage_)) {
        if (issued.operation->kind == OperationKind::send) meet_peer(issued, number);
        ++number;
      }
      return;
    }
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const Board* other = board(rank);
      if (other == nullptr || milestone(other->head()) < milestone(own_)) {
        waits_.for_ranks.push_back(rank);
      } else if (milestone(other->head()) == milestone(own_)) {
        waits_.with.push_back(rank);
      }
    }
  }

  const Program& program_;
  const RankLayout& layout_;
  const Boards& boards_;
  int rank_, stage_;
  const BoardHead& own_;
  Waits waits_;
};

}  // namespace

Waits waits_without_program(const Boards& boards, int /*rank*/) {
  Waits waits;
  for (std::size_t i = 0; i < boards.size(); ++i) {
    if (!boards[i]) continue;
    (computes(boards[i]->head()) ? waits.for_ranks : waits.with).push_back(static_cast<int>(i));
  }
  return waits;
}

Waits waits_in(const Program& program, const RankLayout& layout, const Boards& boards, int rank) {
  return Waiting(program, layout, boards, rank).found();
}

}  // namespace trainyard
