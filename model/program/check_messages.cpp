#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "model/program/check.h"
#include "model/program/view.h"

namespace trainyard {
namespace {

int stage_count(const Program& program) { return static_cast<int>(program.stages.size()); }

bool is_send(const IssuedOperation& issued) {
  return issued.operation->kind == OperationKind::send;
}
bool is_receive(const IssuedOperation& issued) {
  return issued.operation->kind == OperationKind::receive;
}

// ---- Collectives ------------------------------------------------------------------------

std::vector<IssuedOperation> collectives_of(const Program& program, int stage, Group group) {
  std::vector<IssuedOperation> list;
  for (const IssuedOperation issued : operations_of(program, stage)) {
    if (issued.operation->group == group) list.push_back(issued);
  }
  return list;
}

bool same_collective(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.message == b.message && a.reduction == b.reduction &&
         a.dtype == b.dtype && a.stream == b.stream;
}

Expected<void> compare(const Program& program, const RankLayout& layout, Group group, int stage,
                       int other) {
  const auto mine = collectives_of(program, stage, group);
  const auto theirs = collectives_of(program, other, group);
  const int rank = layout.in_stage(0, stage);
  const int peer = layout.in_stage(0, other);
  for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    if (i >= theirs.size()) {
      return failure("program", fmt::format("rank {}: {} has no counterpart on rank {}", rank,
                                            described(mine[i]), peer));
    }
    if (i >= mine.size()) {
      return failure("program", fmt::format("rank {}: {} has no counterpart on rank {}", peer,
                                            described(theirs[i]), rank));
    }
    if (!same_collective(*mine[i].operation, *theirs[i].operation)) {
      return failure("program", fmt::format("rank {}: {} meets another one on rank {}: {}", rank,
                                            described(mine[i]), peer, described(theirs[i])));
    }
  }
  return {};
}

// ---- Sends ------------------------------------------------------------------------------

// All sends or receives between two stages in one direction of the pipeline.
std::vector<IssuedOperation> messages(const Program& program, int stage, int peer,
                                      OperationKind kind, Phase phase) {
  std::vector<IssuedOperation> list;
  for (const IssuedOperation issued : operations_of(program, stage)) {
    const Operation& operation = *issued.operation;
    if (operation.kind == kind && operation.phase == phase && issued.call->peer == peer) {
      list.push_back(issued);
    }
  }
  return list;
}

bool same_message(const IssuedOperation& send, const IssuedOperation& receive) {
  return send.step->microbatch == receive.step->microbatch &&
         send.operation->message == receive.operation->message &&
         send.operation->dtype == receive.operation->dtype;
}

Expected<void> compare_way(const Program& program, const RankLayout& layout, int from, int to,
                           Phase phase) {
  const auto sends = messages(program, from, to, OperationKind::send, phase);
  const auto receives = messages(program, to, from, OperationKind::receive, phase);
  const int sender = layout.in_stage(0, from);
  const int receiver = layout.in_stage(0, to);
  for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
    if (i >= receives.size()) {
      return failure("program", fmt::format("rank {}: {} has no receive on rank {}", sender,
                                            described(sends[i]), receiver));
    }
    if (i >= sends.size()) {
      return failure("program", fmt::format("rank {}: {} has no send on rank {}", receiver,
                                            described(receives[i]), sender));
    }
    if (!same_message(sends[i], receives[i])) {
      return failure("program",
                     fmt::format("rank {}: {} gets another message from rank {}: {}", receiver,
                                 described(receives[i]), sender, described(sends[i])));
    }
  }
  return {};
}

// ---- Progress ---------------------------------------------------------------------------

// Plays all stages, each in its own order: a send leaves at once, a receive waits for its message,
// a collective between stages for all of them.
class Play {
 public:
  Play(const Program& program, const RankLayout& layout) : program_(program), layout_(layout) {
    const int stages = stage_count(program);
    arrived_.resize(static_cast<std::size_t>(stages) * static_cast<std::size_t>(stages) * 2);
    met_.resize(static_cast<std::size_t>(stages));
    for (int stage = 0; stage < stages; ++stage) {
      const OperationView view = operations_of(program, stage);
      cursors_.push_back({view.begin(), view.end()});
    }
  }

  Expected<void> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < stage_count(program_); ++stage) {
        moved = advance(stage) || moved;
      }
    }
    for (int stage = 0; stage < stage_count(program_); ++stage) {
      const Cursor& cursor = cursors_[static_cast<std::size_t>(stage)];
      if (cursor.next != cursor.end) return deadlock(stage, *cursor.next);
    }
    return {};
  }

 private:
  struct Cursor {
    OperationIterator next, end;
  };

  bool advance(int stage) {
    Cursor& cursor = cursors_[static_cast<std::size_t>(stage)];
    const OperationIterator before = cursor.next;
    while (cursor.next != cursor.end && can_run(stage, *cursor.next)) {
      leave(stage, *cursor.next);
      ++cursor.next;
    }
    return cursor.next != before;
  }

  int& arrived(int from, int to, Phase phase) {
    const int stages = stage_count(program_);
    const int direction = phase == Phase::forward ? 0 : 1;
    return arrived_[static_cast<std::size_t>((from * stages + to) * 2 + direction)];
  }

  static bool between_stages(Group group) { return group >= Group::tied_embedding; }

  bool can_run(int stage, const IssuedOperation& issued) {
    if (is_receive(issued)) {
      return arrived(issued.call->peer, stage, issued.operation->phase) > 0;
    }
    return !between_stages(issued.operation->group) || all_there(stage, issued.operation->group);
  }

  // Whether every stage of the group has entered this collective before, or stands at it now.
  bool all_there(int stage, Group group) {
    const int turn = met(stage, group);
    const GroupStages stages = stages_of(group, stage, stage_count(program_));
    for (int other = stages.first; other <= stages.last; other += stages.step) {
      const Cursor& cursor = cursors_[static_cast<std::size_t>(other)];
      const bool stands = cursor.next != cursor.end && (*cursor.next).operation->group == group;
      if (met(other, group) + (stands ? 1 : 0) <= turn) return false;
    }
    return true;
  }

  int& met(int stage, Group group) {
    auto& counts = met_[static_cast<std::size_t>(stage)];
    counts.resize(std::max(counts.size(), static_cast<std::size_t>(group) + 1));
    return counts[static_cast<std::size_t>(group)];
  }

  void leave(int stage, const IssuedOperation& issued) {
    const Operation& operation = *issued.operation;
    if (is_send(issued)) ++arrived(stage, issued.call->peer, operation.phase);
    if (is_receive(issued)) --arrived(issued.call->peer, stage, operation.phase);
    if (between_stages(operation.group)) ++met(stage, operation.group);
  }

  Expected<void> deadlock(int stage, const IssuedOperation& issued) const {
    const int rank = layout_.in_stage(0, stage);
    if (is_receive(issued)) {
      return failure("program",
                     fmt::format("deadlock: rank {} waits for ever for rank {}: {}", rank,
                                 layout_.in_stage(0, issued.call->peer), described(issued)));
    }
    return failure("program", fmt::format("deadlock: rank {} waits for ever for its group: {}",
                                          rank, described(issued)));
  }

  const Program& program_;
  const RankLayout& layout_;
  std::vector<Cursor> cursors_;        // by stage
  std::vector<int> arrived_;           // messages that wait: from, to, direction
  std::vector<std::vector<int>> met_;  // by stage and group
};

}  // namespace

GroupStages stages_of(Group group, int stage, int stages) {
  if (group == Group::model || group == Group::all) return {0, stages - 1, 1};
  if (group == Group::tied_embedding) return {0, stages - 1, std::max(1, stages - 1)};
  if (group == Group::mirror) {
    const int first = std::min(stage, stages - 1 - stage);
    return {first, stages - 1 - first, std::max(1, stages - 1 - 2 * first)};
  }
  return {stage, stage, 1};
}

Expected<void> check_collectives(const Program& program, const RankLayout& layout) {
  for (const Group group : {Group::tied_embedding, Group::mirror, Group::model, Group::all}) {
    for (int stage = 0; stage < stage_count(program); ++stage) {
      const GroupStages stages = stages_of(group, stage, stage_count(program));
      if (stages.first != stage) continue;
      for (int other = stage + stages.step; other <= stages.last; other += stages.step) {
        auto compared = compare(program, layout, group, stage, other);
        if (!compared) return compared;
      }
    }
  }
  return {};
}

Expected<void> check_sends(const Program& program, const RankLayout& layout) {
  const int stages = stage_count(program);
  for (int from = 0; from < stages; ++from) {
    for (int to = 0; to < stages; ++to) {
      for (const Phase phase : {Phase::forward, Phase::input_gradient}) {
        auto compared = compare_way(program, layout, from, to, phase);
        if (!compared) return compared;
      }
    }
  }
  return {};
}

Expected<void> check_progress(const Program& program, const RankLayout& layout) {
  return Play(program, layout).run();
}

Expected<void> check(const Program& program, const RankLayout& layout) {
  for (const auto part : {check_buffers, check_collectives, check_sends, check_progress}) {
    auto checked = part(program, layout);
    if (!checked) return checked;
  }
  return {};
}

}  // namespace trainyard
