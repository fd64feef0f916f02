// A task list made ready to be played: the tasks of every stream in order, and dependencies as
// places on streams. A rank's state is then one number a stream, how many tasks of it are done.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/graph/task_graph.h"

namespace trainyard {

struct StreamPlace {
  std::int32_t stream = 0;
  std::int32_t position = 0;  // on the stream
};

class Playlist {
 public:
  explicit Playlist(const TaskList& list);

  std::span<const std::int32_t> stream(std::size_t stream) const { return streams_[stream]; }
  StreamPlace place(std::int32_t task) const { return places_[static_cast<std::size_t>(task)]; }
  // What a task waits for beside the tasks before it on its own stream.
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
