#include "simulator/step/graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "model/program/check.h"
#include "model/program/lower.h"
#include "simulator/step/calls.h"
#include "simulator/step/list.h"
#include "simulator/step/loads.h"

namespace trainyard {
namespace {

constexpr std::int32_t kNew = -1;  // no group yet

bool is_message(const StepChannel& channel) { return channel.kind != TaskKind::collective; }

// Makes the groups behind the channels of every rank.
class Grouping {
 public:
  Grouping(const RankLayout& layout, const std::vector<std::vector<StepChannel>>& channels,
           int ranks)
      : layout_(layout), channels_(channels), ranks_(ranks) {
    for (std::size_t stage = 0; stage < channels.size(); ++stage) {
      tables_.emplace_back();
      for (const StepChannel& channel : channels[stage]) {
        tables_.back().push_back(&table_of(channel, static_cast<int>(stage)));
      }
    }
  }

  void unfolded(TaskGraph& graph) {
    graph.ranks.reserve(static_cast<std::size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      const int stage = layout_.coordinates(rank).stage;
      TaskRank of{stage, {}};
      const std::vector<StepChannel>& channels = channels_of(stage);
      of.groups.reserve(channels.size());
      for (std::size_t i = 0; i < channels.size(); ++i) {
        if (known(stage, i, rank) == kNew) {
          set_members(graph.groups.emplace_back(), channels[i], rank);
          set_known(stage, i, graph.groups.back(),
                    static_cast<std::int32_t>(graph.groups.size()) - 1);
        }
        of.groups.push_back(known(stage, i, rank));
      }
      graph.ranks.push_back(std::move(of));
    }
  }

  // Folds stage s into rank s, whose groups are those of the stage's first rank that has one.
  void folded(TaskGraph& graph) {
    for (std::size_t stage = 0; stage < channels_.size(); ++stage) {
      graph.ranks.push_back({static_cast<std::int32_t>(stage), {}});
      graph.ranks.back().groups.resize(channels_[stage].size(), kNew);
    }
    TaskGroup members;
    for (int rank = 0; rank < ranks_; ++rank) {
      const int stage = layout_.coordinates(rank).stage;
      const std::vector<StepChannel>& channels = channels_of(stage);
      for (std::size_t i = 0; i < channels.size(); ++i) {
        const std::int32_t copy = known(stage, i, rank);
        std::int32_t& into = graph.ranks[static_cast<std::size_t>(stage)].groups[i];
        if (into == kNew) into = copy;
        if (copy != kNew) continue;
        set_members(members, channels[i], rank);
        if (into == kNew) {
          into = static_cast<std::int32_t>(graph.groups.size());
          graph.groups.push_back(stages_of(members));
          graph.copies.emplace_back();
        }
        set_known(stage, i, members, into);
        graph.copies[static_cast<std::size_t>(into)].add(members);
      }
    }
  }

 private:
  // The members in order; for a message its sender and its receiver.
  void set_members(TaskGroup& group, const StepChannel& channel, int rank) const {
    if (is_message(channel)) {
      group = {rank, layout_.in_stage(rank, channel.peer)};
      if (channel.kind == TaskKind::receive) std::swap(group.front(), group.back());
      return;
    }
    const GroupMembers members = layout_.members(channel.group, rank);
    group.resize(static_cast<std::size_t>(members.size()));
    for (int i = 0; i < members.size(); ++i) group[static_cast<std::size_t>(i)] = members[i];
  }

  // The table from member to group for the groups of a channel.
  std::vector<std::int32_t>& table_of(const StepChannel& channel, int stage) {
    std::array<int, 4> key = {static_cast<int>(channel.group), static_cast<int>(channel.stream), 0,
                              0};
    if (is_message(channel)) {
      const bool sends = channel.kind == TaskKind::send;
      key = {-1, static_cast<int>(channel.phase), sends ? stage : channel.peer,
             sends ? channel.peer : stage};
    }
    std::vector<std::int32_t>& table = known_[key];
    table.resize(static_cast<std::size_t>(ranks_), kNew);
    return table;
  }

  const std::vector<StepChannel>& channels_of(int stage) const {
    return channels_[static_cast<std::size_t>(stage)];
  }

  // The group behind a rank's channel.
  std::int32_t known(int stage, std::size_t channel, int rank) const {
    return (*tables_[static_cast<std::size_t>(stage)][channel])[static_cast<std::size_t>(rank)];
  }
  void set_known(int stage, std::size_t channel, const TaskGroup& members, std::int32_t group) {
    std::vector<std::int32_t>& table = *tables_[static_cast<std::size_t>(stage)][channel];
    for (const std::int32_t member : members) table[static_cast<std::size_t>(member)] = group;
  }

  // The folded ranks of a group's members, each once, in the order of the group.
  TaskGroup stages_of(const TaskGroup& group) const {
    TaskGroup stages;
    for (const std::int32_t rank : group) {
      const int stage = layout_.coordinates(rank).stage;
      if (std::find(stages.begin(), stages.end(), stage) == stages.end()) stages.push_back(stage);
    }
    return stages;
  }

  const RankLayout& layout_;
  const std::vector<std::vector<StepChannel>>& channels_;
  int ranks_ = 0;
  std::map<std::array<int, 4>, std::vector<std::int32_t>> known_;  // member → group
  std::vector<std::vector<std::vector<std::int32_t>*>> tables_;    // by stage and channel
};

// Gives ranks their loads. A folded rank stands for ranks that all have the same row.
void set_loads(StepLoads loads, StepGraph& step) {
  step.tokens = loads.tokens;
  step.flop = loads.flop;
  if (loads.rows.empty()) return;
  const bool folded = step.folded();
  for (std::size_t rank = 0; rank < step.graph.ranks.size(); ++rank) {
    step.graph.ranks[rank].loads = folded ? 0 : loads.of_rank[rank];
  }
  step.graph.loads = std::move(loads.rows);
}

// Makes the list of every stage; returns their channels.
std::vector<std::vector<StepChannel>> add_lists(const StepSite& site, const Plan& plan,
                                                const StepCalls& calls, const StepLoads& loads,
                                                StepGraph& step) {
  std::vector<std::vector<StepChannel>> channels;
  int stage = 0;
  for (const StageGroup& group : site.groups) {
    const StepTimes times(*group.own, plan, *step.program);
    step.kernel_stretch = times.kernel_stretch();  // the stack's, so the same for all groups
    for (const int end = stage + group.stages; stage < end; ++stage) {
      StepList list = step_list(*step.program, stage, times, calls, loads);
      step.graph.lists.push_back(std::move(list.list));
      step.tasks.push_back(std::move(list.tasks));
      channels.push_back(std::move(list.channels));
    }
  }
  return channels;
}

}  // namespace

Expected<StepGraph> step_graph(const StepSite& site, const Plan& plan, bool folded,
                               const StepConditions& conditions) {
  const Job& job = site.any().job;
  const RankLayout layout(plan, job.model.kv_heads);
  auto loads = step_loads(site.any(), plan, layout, conditions);
  if (!loads) return tl::unexpected(loads.error());
  if (folded && !loads->unlike_because.empty()) return failure("fold", loads->unlike_because);
  Plan dealt = plan;
  dealt.microbatches = loads->microbatches;
  auto program = lower(job.model, job.training, dealt);
  if (!program) return tl::unexpected(program.error());
  StepGraph step;
  step.program = std::make_unique<const Program>(*std::move(program));
  const StepCalls calls(site, dealt, *step.program, layout);
  const auto channels = add_lists(site, dealt, calls, *loads, step);
  step.graph.calls = calls.all().calls;
  step.alone = calls.all().alone;
  step.loads = calls.all().loads;
  Grouping grouping(layout, channels, plan.devices());
  if (folded) {
    grouping.folded(step.graph);
  } else {
    grouping.unfolded(step.graph);
  }
  set_loads(*std::move(loads), step);
  return step;
}

std::string described(const StepTask& task) {
  std::string text = described(task.issued);
  switch (task.kind) {
    case StepTaskKind::operation:
      return text;
    case StepTaskKind::launch: {
      const auto of = text.find(" of ");
      return "launch" + (of == std::string::npos ? std::string() : text.substr(of));
    }
    case StepTaskKind::update_overhead:
      break;
  }
  return "serial part of the sharded update";
}

}  // namespace trainyard
