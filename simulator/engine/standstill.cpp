#include "simulator/engine/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

namespace trainyard {
namespace {

constexpr std::size_t kNamed = 8;  // tasks of a cycle that the sentence names

class Explanation {
 public:
  explicit Explanation(const Standstill& state) : state_(state) {}

  Error error() {
    std::vector<StreamId> way = {first_blocked()};
    for (;;) {
      const std::optional<StreamId> next = waits_for(way.back());
      if (!next) return {"task graph", chain(way) + link(way.size()) + end_};
      const auto seen = std::find(way.begin(), way.end(), *next);
      if (seen != way.end()) {
        way.erase(way.begin(), seen);
        const std::string back = way.size() == 1 ? "itself" : name(way.front());
        return {"task graph", "a deadlock: " + chain(way) + link(way.size()) + back};
      }
      way.push_back(*next);
    }
  }

 private:
  const TaskRank& rank(StreamId id) const {
    return state_.graph.ranks[static_cast<std::size_t>(rank_of(id))];
  }
  const TaskList& list(StreamId id) const {
    return state_.graph.lists[static_cast<std::size_t>(rank(id).list)];
  }
  std::span<const std::int32_t> tasks(StreamId id) const {
    return state_.lists[static_cast<std::size_t>(rank(id).list)].stream(
        static_cast<std::size_t>(stream_of(id)));
  }
  bool blocked(StreamId id) const {
    return static_cast<std::size_t>(state_.streams[id].next) < tasks(id).size();
  }
  std::int32_t head(StreamId id) const {
    return tasks(id)[static_cast<std::size_t>(state_.streams[id].next)];
  }
  const Task& task(StreamId id) const { return list(id).tasks[static_cast<std::size_t>(head(id))]; }
  std::string name(StreamId id) const {
    return fmt::format("{} of rank {}", list(id).name_of(head(id)), rank_of(id));
  }

  StreamId first_blocked() const {
    StreamId id = 0;
    while (!blocked(id)) ++id;
    return id;
  }

  // The words between the n-th task of a chain and the next.
  static std::string link(std::size_t n) { return n == 1 ? " waits for " : ", which waits for "; }

  std::string chain(const std::vector<StreamId>& way) const {
    std::string text = name(way.front());
    for (std::size_t i = 1; i < std::min(way.size(), kNamed); ++i) {
      text += link(i) + name(way[i]);
    }
    if (way.size() > kNamed) text += fmt::format(", and so on over {} more", way.size() - kNamed);
    return text;
  }

  // The stream whose next task must end or begin before this one's can; none: `end_` says why.
  std::optional<StreamId> waits_for(StreamId id) {
    if (!state_.streams[id].busy) return unmet_dependency(id);
    if (task(id).kind == TaskKind::receive) return sender(id);
    return missing_member(id);
  }

  StreamId unmet_dependency(StreamId id) const {
    const Playlist& playlist = state_.lists[static_cast<std::size_t>(rank(id).list)];
    for (const StreamPlace wait : playlist.waits(head(id))) {
      const StreamId other = stream_id(rank_of(id), wait.stream);
      if (state_.streams[other].next <= wait.position) return other;
    }
    return id;  // a task that waits for itself
  }

  std::optional<StreamId> missing_member(StreamId id) {
    const Meetings::Waiting waiting = state_.meetings.collective_of(id, task(id));
    const std::int32_t member = waiting.missing.front();
    end_ = fmt::format("rank {}, which never joins it", member);
    return nth_call(member, waiting.group, TaskKind::collective, waiting.ordinal);
  }

  std::optional<StreamId> sender(StreamId id) {
    const std::int32_t group = rank(id).groups[static_cast<std::size_t>(task(id).channel)];
    const std::int32_t from = state_.graph.groups[static_cast<std::size_t>(group)].front();
    end_ = fmt::format("rank {}, which never sends it", from);
    return nth_call(from, group, TaskKind::send, state_.meetings.messages_taken(group));
  }

  // The stream on which `member` has its n-th call of a group.
  std::optional<StreamId> nth_call(std::int32_t member, std::int32_t group, TaskKind kind,
                                   std::int32_t n) const {
    const StreamId any = stream_id(member, 0);
    const std::vector<std::int32_t>& groups = rank(any).groups;
    for (const Task& candidate : list(any).tasks) {
      const bool is_one =
          candidate.kind == kind && groups[static_cast<std::size_t>(candidate.channel)] == group;
      if (is_one && n-- == 0) return stream_id(member, static_cast<std::int32_t>(candidate.stream));
    }
    return std::nullopt;
  }

  const Standstill& state_;
  std::string end_;
};

}  // namespace

Error explain(const Standstill& state) { return Explanation(state).error(); }

}  // namespace trainyard
