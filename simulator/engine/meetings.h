// Where ranks wait for each other. Calls match by order: the n-th collective of a group starts when
// its last member has reached its n-th one; the n-th receive of a group takes the n-th message.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/expected.h"
#include "simulator/graph/task_graph.h"

namespace trainyard {

// Identifies a stream of a rank: rank · kStreams + stream.
using StreamId = std::uint32_t;
inline StreamId stream_id(std::int32_t rank, std::int32_t stream) {
  return static_cast<StreamId>(rank * kStreams + stream);
}
inline std::int32_t rank_of(StreamId id) { return static_cast<std::int32_t>(id) / kStreams; }
inline std::int32_t stream_of(StreamId id) { return static_cast<std::int32_t>(id) % kStreams; }

// A collective or message that some rank has reached, and the streams that it holds until it ends.
struct Meeting {
  std::int32_t group = 0;
  std::int32_t call = 0;
  double load = 0;  // factor on its bytes: the largest of its members
  std::vector<StreamId> held;
};

class Meetings {
 public:
  using Id = std::uint32_t;

  explicit Meetings(const TaskGraph& graph);

  // A rank has reached its next collective on the task's channel. Returns the meeting if everyone
  // is there now. Fails if another member reached a different call.
  Expected<std::optional<Id>> join(StreamId who, const Task& task);
  // The sender has started a message.
  Id send(StreamId who, const Task& task);
  // A rank has reached a receive. True: its message has arrived already; false: the receive waits.
  bool receive(StreamId who, const Task& task);

  const Meeting& at(Id meeting) const { return meetings_[meeting]; }
  // A message of the group has arrived. Returns the stream of the receive that waits for it, if
  // any.
  std::optional<StreamId> deliver(std::int32_t group);
  // The call is over; its id is used again.
  void close(Id meeting);

  // The collective that a stream waits in: its group, its number among the group's collectives, and
  // the members that have not come.
  struct Waiting {
    std::int32_t group = 0;
    std::int32_t ordinal = 0;
    std::vector<std::int32_t> missing;
  };
  Waiting collective_of(StreamId who, const Task& task) const;
  std::int32_t messages_taken(std::int32_t group) const {
    return groups_[static_cast<std::size_t>(group)].taken;
  }

 private:
  struct Group {
    std::int32_t first_open = 0;  // number of the first collective that members are missing from
    std::vector<Id> open;
    std::int32_t arrived = 0, taken = 0;  // number of messages so far
    std::vector<StreamId> receiving;
  };

  Id make(std::int32_t group, std::int32_t call);
  std::int32_t group_of(StreamId who, const Task& task) const;
  std::int32_t& joined(std::int32_t rank, std::int32_t channel);

  const TaskGraph& graph_;
  std::vector<Meeting> meetings_;
  std::vector<Id> free_;
  std::vector<Group> groups_;
  std::vector<std::int32_t> joined_;  // number of collectives a rank has reached on a channel
  std::vector<std::size_t> first_channel_;
};

}  // namespace trainyard
