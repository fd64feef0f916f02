#include "simulator/graph/playlist.h"

namespace trainyard {

Playlist::Playlist(const TaskList& list) {
  const auto count = static_cast<std::int32_t>(list.tasks.size());
  places_.reserve(list.tasks.size());
  first_wait_.reserve(list.tasks.size() + 1);
  waits_.reserve(list.dependencies.size());
  for (std::int32_t task = 0; task < count; ++task) {
    const auto stream = static_cast<std::size_t>(list.tasks[static_cast<std::size_t>(task)].stream);
    places_.push_back(
        {static_cast<std::int32_t>(stream), static_cast<std::int32_t>(streams_[stream].size())});
    streams_[stream].push_back(task);
  }
  first_wait_.push_back(0);
  for (std::int32_t task = 0; task < count; ++task) {
    const StreamPlace own = place(task);
    for (const std::int32_t other : list.dependencies_of(task)) {
      const StreamPlace wait = place(other);
      const bool always_before = wait.stream == own.stream && wait.position < own.position;
      if (!always_before) waits_.push_back(wait);
    }
    first_wait_.push_back(waits_.size());
  }
}

}  // namespace trainyard
