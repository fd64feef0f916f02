#include "simulator/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "model/interrupted.h"
#include "simulator/engine/compute_clock.h"
#include "simulator/engine/event.h"
#include "simulator/engine/meetings.h"
#include "simulator/engine/standstill.h"
#include "simulator/graph/graph_check.h"
#include "simulator/graph/playlist.h"

namespace trainyard {
namespace {

class Player {
 public:
  Player(const TaskGraph& graph, const Conditions& conditions)
      : graph_(graph),
        conditions_(conditions),
        lists_(graph.lists.begin(), graph.lists.end()),
        streams_(graph.ranks.size() * kStreams),
        waiting_(streams_.size()),
        meetings_(graph),
        clock_(conditions, graph.ranks.size(), events_) {
    timeline_.first.push_back(0);
    for (const TaskRank& rank : graph.ranks) {
      timeline_.first.push_back(timeline_.first.back() + list_of(rank).tasks.size());
    }
    timeline_.times.resize(timeline_.first.back());
    left_ = static_cast<std::int64_t>(timeline_.first.back());
  }

  Expected<void> connect() {
    if (!conditions_.network) return {};
    const NetworkModel& model = *conditions_.network;
    auto fabrics = Fabrics::make(model.groups, model.boundary);
    if (!fabrics) return tl::unexpected(fabrics.error());
    auto network = Network::make(graph_, *std::move(fabrics), model.grain, events_);
    if (!network) return tl::unexpected(network.error());
    network_ = *std::move(network);
    return {};
  }

  Expected<Timeline> run() {
    for (StreamId id = 0; id < streams_.size(); ++id) {
      if (has_next(id)) start_next(id);
    }
    while (!error_ && timeline_.makespan < kEndOfClock) {
      if (network_ && !events_.has_event_now()) network_->settle();
      if (events_.empty()) break;
      handle(events_.pop().event);
    }
    if (error_) return tl::unexpected(*error_);
    if (timeline_.makespan == kEndOfClock) return tl::unexpected(beyond_clock("a longer step"));
    if (left_ > 0) return tl::unexpected(explain({graph_, lists_, streams_, meetings_}));
    if (network_) timeline_.links = network_->traffic();
    return std::move(timeline_);
  }

 private:
  bool is_interrupted() const { return is_set(conditions_.interrupted); }
  const TaskList& list_of(const TaskRank& rank) const {
    return graph_.lists[static_cast<std::size_t>(rank.list)];
  }

  bool has_next(StreamId id) const {
    return static_cast<std::size_t>(streams_[id].next) <
           lists_[graph_.list_of(rank_of(id))]
               .stream(static_cast<std::size_t>(stream_of(id)))
               .size();
  }
  // Starts the stream's next task if all its dependencies are done; else it is tried again when the
  // first unmet one has ended. Requires: the stream is idle and has a next task.
  void start_next(StreamId id) {
    StreamState& stream = streams_[id];
    const std::size_t list = graph_.list_of(rank_of(id));
    const auto tasks = lists_[list].stream(static_cast<std::size_t>(stream_of(id)));
    const std::int32_t task = tasks[static_cast<std::size_t>(stream.next)];
    for (const StreamPlace wait : lists_[list].waits(task)) {
      const StreamId other = stream_id(rank_of(id), wait.stream);
      if (streams_[other].next > wait.position) continue;
      waiting_[other].streams |= 1U << stream_of(id);
      waiting_[other].position = std::min(waiting_[other].position, wait.position);
      return;
    }
    stream.busy = true;
    times(id).start = events_.now();
    begin(id, task, graph_.lists[list].tasks[static_cast<std::size_t>(task)]);
  }

  void begin(StreamId id, std::int32_t index, const Task& task) {
    switch (task.kind) {
      case TaskKind::compute:
        return clock_.begin(id, index, duration_of(id, task));
      case TaskKind::copy:
        return events_.push_after(duration_of(id, task), Event(EventKind::task_ends, id));
      case TaskKind::collective:
        return join(id, task);
      case TaskKind::send:
        return call(meetings_.send(id, task));
      case TaskKind::receive:
        if (meetings_.receive(id, task)) end_now(id);
        return;
    }
  }

  Picoseconds duration_of(StreamId id, const Task& task) const {
    if (task.load < 0) return task.duration;
    const double load = graph_.load_of(rank_of(id), task);
    return rounded_picoseconds(static_cast<double>(task.duration.count()) * load);
  }

  void join(StreamId id, const Task& task) {
    const auto meeting = meetings_.join(id, task);
    if (!meeting) {
      error_ = meeting.error();
    } else if (*meeting) {
      call(**meeting);
    }
  }

  void call(Meetings::Id id) {
    on_ranks_of(id, [&](std::int32_t rank, double contention) {
      clock_.communication_begins(rank, contention);
    });
    if (!network_) return events_.push(events_.now(), Event(EventKind::call_ends, id));
    const Meeting& meeting = meetings_.at(id);
    network_->start(meeting.group, meeting.call, meeting.load, id);
  }

  // Visits every rank that takes part in a call, also the receiver of a message, to slow its
  // compute.
  template <typename Visit>
  void on_ranks_of(Meetings::Id id, Visit visit) {
    if (conditions_.overlap_slowdown == 0) return;
    const Meeting& meeting = meetings_.at(id);
    const double contention = graph_.calls[static_cast<std::size_t>(meeting.call)].contention;
    if (contention == 0) return;
    for (const StreamId stream : meeting.held) visit(rank_of(stream), contention);
    if (is_message(meeting)) {
      visit(graph_.groups[static_cast<std::size_t>(meeting.group)].back(), contention);
    }
  }

  bool is_message(const Meeting& meeting) const {
    return graph_.calls[static_cast<std::size_t>(meeting.call)].operation ==
           CollectiveOperation::send;
  }

  void end_now(StreamId id) { events_.push(events_.now(), Event(EventKind::task_ends, id)); }

  void handle(Event event) {
    constexpr std::int64_t kBetweenLooks = 4096;  // events
    if (++timeline_.events % kBetweenLooks == 0) {
      if (is_interrupted()) {
        error_ = Error{"", "interrupted"};
        return;
      }
      if (conditions_.progress) {
        const auto all = static_cast<double>(timeline_.times.size());
        conditions_.progress(1 - static_cast<double>(left_) / all);
      }
    }
    switch (event.kind()) {
      case EventKind::task_ends:
        if (event.is_version(0) || clock_.ends(event)) end(event.index());
        return;
      case EventKind::call_ends:
        return end_call(event.index());
      case EventKind::latency_ends:
      case EventKind::transfer_ends:
        ended_calls_.clear();
        network_->handle(event, ended_calls_);
        for (const std::uint32_t call : ended_calls_) end_call(call);
        return;
    }
  }

  void end_call(Meetings::Id id) {
    const Meeting& meeting = meetings_.at(id);
    on_ranks_of(id, [&](std::int32_t rank, double contention) {
      clock_.communication_ends(rank, contention);
    });
    if (is_message(meeting)) {
      if (const auto receiver = meetings_.deliver(meeting.group)) end_now(*receiver);
    }
    ended_.assign(meeting.held.begin(), meeting.held.end());
    meetings_.close(id);
    for (const StreamId stream : ended_) end(stream);
  }

  void end(StreamId id) {
    times(id).end = timeline_.makespan = events_.now();
    streams_[id].busy = false;
    ++streams_[id].next;
    --left_;
    std::uint32_t ready = has_next(id) ? 1U << stream_of(id) : 0;
    if (streams_[id].next > waiting_[id].position) {
      ready |= std::exchange(waiting_[id], Waiting{}).streams;
    }
    for (; ready != 0; ready &= ready - 1) {
      start_next(stream_id(rank_of(id), std::countr_zero(ready)));
    }
  }

  TaskTimes& times(StreamId id) {
    const auto rank = static_cast<std::size_t>(rank_of(id));
    const std::size_t list = graph_.list_of(rank_of(id));
    const std::int32_t task = lists_[list].stream(
        static_cast<std::size_t>(stream_of(id)))[static_cast<std::size_t>(streams_[id].next)];
    return timeline_.times[timeline_.first[rank] + static_cast<std::size_t>(task)];
  }

  const TaskGraph& graph_;
  const Conditions& conditions_;
  std::vector<Playlist> lists_;
  std::vector<StreamState> streams_;
  // What waits for a stream: a bit for each waiting stream of its rank, and the first position on
  // the stream that one of them waits for.
  struct Waiting {
    std::uint32_t streams = 0;
    std::int32_t position = std::numeric_limits<std::int32_t>::max();
  };
  std::vector<Waiting> waiting_;
  Meetings meetings_;
  Events events_;
  ComputeClock clock_;
  Timeline timeline_;
  std::int64_t left_ = 0;
  std::unique_ptr<Network> network_;  // none: communication takes no time
  std::vector<std::uint32_t> ended_calls_;
  std::vector<StreamId> ended_;
  std::optional<Error> error_;
};

}  // namespace

Expected<Timeline> simulate(const TaskGraph& graph, const Conditions& conditions) {
  if (auto checked = check_graph(graph); !checked) return tl::unexpected(checked.error());
  const auto ranks = static_cast<std::int32_t>(graph.ranks.size());
  if (auto checked = check(conditions, ranks); !checked) return tl::unexpected(checked.error());
  Player player(graph, conditions);
  if (auto connected = player.connect(); !connected) return tl::unexpected(connected.error());
  return player.run();
}

Error beyond_clock(std::string_view found) {
  using Days = std::chrono::duration<std::int64_t, std::ratio<86400>>;
  return {"simulation", fmt::format("found {}, allowed up to {} days, the range of its clock",
                                    found, std::chrono::floor<Days>(kEndOfClock).count())};
}

}  // namespace trainyard
