#include "simulator/engine/meetings.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard {

Meetings::Meetings(const TaskGraph& graph) : graph_(graph), groups_(graph.groups.size()) {
  std::size_t channels = 0;
  for (const TaskRank& rank : graph.ranks) {
    first_channel_.push_back(channels);
    channels += rank.groups.size();
  }
  joined_.resize(channels);
}

std::int32_t Meetings::group_of(StreamId who, const Task& task) const {
  return graph_.ranks[static_cast<std::size_t>(rank_of(who))]
      .groups[static_cast<std::size_t>(task.channel)];
}

std::int32_t& Meetings::joined(std::int32_t rank, std::int32_t channel) {
  return joined_[first_channel_[static_cast<std::size_t>(rank)] +
                 static_cast<std::size_t>(channel)];
}

Meetings::Id Meetings::make(std::int32_t group, std::int32_t call) {
  if (free_.empty()) {
    free_.push_back(static_cast<Id>(meetings_.size()));
    meetings_.emplace_back();
  }
  const Id id = free_.back();
  free_.pop_back();
  meetings_[id].group = group;
  meetings_[id].call = call;
  meetings_[id].load = 0;
  meetings_[id].held.clear();
  return id;
}

Expected<std::optional<Meetings::Id>> Meetings::join(StreamId who, const Task& task) {
  const std::int32_t index = group_of(who, task);
  Group& group = groups_[static_cast<std::size_t>(index)];
  const std::int32_t ordinal = joined(rank_of(who), task.channel)++;
  const auto place = static_cast<std::size_t>(ordinal - group.first_open);
  while (place >= group.open.size()) group.open.push_back(make(index, task.call));
  const Id id = group.open[place];
  Meeting& meeting = meetings_[id];
  const auto call = [&](std::int32_t i) { return graph_.calls[static_cast<std::size_t>(i)]; };
  if (meeting.held.empty()) meeting.call = task.call;
  if (meeting.call != task.call && call(meeting.call) != call(task.call)) {
    return failure(fmt::format("group {}", index),
                   fmt::format("collective {} is not the same on rank {} and rank {}", ordinal,
                               rank_of(meeting.held.front()), rank_of(who)));
  }
  meeting.held.push_back(who);
  meeting.load = std::max(meeting.load, graph_.load_of(rank_of(who), task));
  if (meeting.held.size() < graph_.groups[static_cast<std::size_t>(index)].size()) {
    return std::optional<Id>();
  }
  // Members reach a group's calls in order, so the first open meeting is the first to be complete.
  group.open.erase(group.open.begin());
  ++group.first_open;
  return std::optional<Id>(id);
}

Meetings::Id Meetings::send(StreamId who, const Task& task) {
  const Id id = make(group_of(who, task), task.call);
  meetings_[id].held.push_back(who);
  meetings_[id].load = graph_.load_of(rank_of(who), task);
  return id;
}

bool Meetings::receive(StreamId who, const Task& task) {
  Group& group = groups_[static_cast<std::size_t>(group_of(who, task))];
  if (group.arrived > group.taken) {
    ++group.taken;
    return true;
  }
  group.receiving.push_back(who);
  return false;
}

std::optional<StreamId> Meetings::deliver(std::int32_t index) {
  Group& group = groups_[static_cast<std::size_t>(index)];
  ++group.arrived;
  if (group.receiving.empty()) return std::nullopt;
  const StreamId receiver = group.receiving.front();
  group.receiving.erase(group.receiving.begin());
  ++group.taken;
  return receiver;
}

void Meetings::close(Id meeting) { free_.push_back(meeting); }

Meetings::Waiting Meetings::collective_of(StreamId who, const Task& task) const {
  Waiting waiting{.group = group_of(who, task)};
  const Group& group = groups_[static_cast<std::size_t>(waiting.group)];
  for (std::size_t i = 0; i < group.open.size(); ++i) {
    const std::vector<StreamId>& held = meetings_[group.open[i]].held;
    if (std::find(held.begin(), held.end(), who) == held.end()) continue;
    waiting.ordinal = group.first_open + static_cast<std::int32_t>(i);
    for (const std::int32_t member : graph_.groups[static_cast<std::size_t>(waiting.group)]) {
      const bool there = std::any_of(held.begin(), held.end(),
                                     [&](StreamId stream) { return rank_of(stream) == member; });
      if (!there) waiting.missing.push_back(member);
    }
    return waiting;
  }
  return waiting;
}

}  // namespace trainyard
