// Long work takes a pointer to a flag that its caller may set, from another thread or a signal
// handler, to end the work early. Null: the work cannot be interrupted.
#pragma once

#include <atomic>

namespace trainyard {

inline bool is_set(const std::atomic<bool>* interrupted) {
  return interrupted != nullptr && *interrupted;
}

}  // namespace trainyard
