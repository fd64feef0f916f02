// A task list prepared for playing: the tasks of each stream in order, and dependencies as places
// on streams. Because a stream runs in order, one number for each stream, how many of its tasks are
// done, is the whole state of a rank.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/graph/task_graph.h"

namespace trainyard {

struct StreamPlace {
  std::int32_t stream = 0;
  std::int32_t position = 0;  // index on the stream
};

class Playlist {
 public:
  explicit Playlist(const TaskList& list);

  std::span<const std::int32_t> stream(std::size_t stream) const { return streams_[stream]; }
  StreamPlace place(std::int32_t task) const { return places_[static_cast<std::size_t>(task)]; }
  // The dependencies of a task, without those that its stream's order fulfils anyway.
  std::span<const StreamPlace> waits(std::int32_t task) const {
    const auto first = first_wait_[static_cast<std::size_t>(task)];
    return std::span(waits_).subspan(first,
                                     first_wait_[static_cast<std::size_t>(task) + 1] - first);
  }

 private:
  std::array<std::vector<std::int32_t>, kStreams> streams_;
  std::vector<StreamPlace> places_;
  std::vector<StreamPlace> waits_;
  std::vector<std::size_t> first_wait_;
};

}  // namespace trainyard
