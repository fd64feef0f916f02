// Where ranks wait for each other: the n-th collective of a group meets when its last member has
// come, and the n-th message of a group is taken by the n-th receive.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/expected.h"
#include "simulator/graph/task_graph.h"

namespace trainyard {

// A rank's stream: rank · kStreams + stream.
using StreamId = std::uint32_t;
inline StreamId stream_id(std::int32_t rank, std::int32_t stream) {
  return static_cast<StreamId>(rank * kStreams + stream);
}
inline std::int32_t rank_of(StreamId id) { return static_cast<std::int32_t>(id) / kStreams; }
inline std::int32_t stream_of(StreamId id) { return static_cast<std::int32_t>(id) % kStreams; }

// A call that has begun: which streams it holds until it ends.
struct Meeting {
  std::int32_t group = 0;
  std::int32_t call = 0;
  double load = 0;  // of its bytes: that of the busiest member (TaskGraph::loads)
  std::vector<StreamId> held;
};

class Meetings {
 public:
  using Id = std::uint32_t;

  explicit Meetings(const TaskGraph& graph);

  // A rank has come to its next collective on `channel`. The meeting, once everyone is there. Fails
  // when another member came to another call.
  Expected<std::optional<Id>> join(StreamId who, const Task& task);
  // A message is on its way.
  Id send(StreamId who, const Task& task);
  // True: the message has been there. False: the receive waits for it.
  bool receive(StreamId who, const Task& task);

  const Meeting& at(Id meeting) const { return meetings_[meeting]; }
  // A message is there: the receive that waits for it, if one does.
  std::optional<StreamId> deliver(std::int32_t group);
  // The meeting is over; its number is used again.
  void close(Id meeting);

  // A collective that a stream waits in: its group, and its number among those of the group.
  struct Waiting {
    std::int32_t group = 0;
    std::int32_t ordinal = 0;
    std::vector<std::int32_t> missing;  // members
  };
  Waiting collective_of(StreamId who, const Task& task) const;
  std::int32_t messages_taken(std::int32_t group) const {
    return groups_[static_cast<std::size_t>(group)].taken;
  }

 private:
  struct Group {
    std::int32_t first_open = 0;  // number of the first meeting that is not complete
    std::vector<Id> open;
    std::int32_t arrived = 0, taken = 0;  // messages
    std::vector<StreamId> receiving;
  };

  Id make(std::int32_t group, std::int32_t call);
  std::int32_t group_of(StreamId who, const Task& task) const;
  std::int32_t& joined(std::int32_t rank, std::int32_t channel);

  const TaskGraph& graph_;
  std::vector<Meeting> meetings_;
  std::vector<Id> free_;
  std::vector<Group> groups_;
  std::vector<std::int32_t> joined_;  // collectives that a rank has come to on a channel
  std::vector<std::size_t> first_channel_;
};

}  // namespace trainyard
