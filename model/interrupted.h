// Long work takes a flag that its caller sets, from another thread or a signal handler, to end it
// early; null: nothing does.
#pragma once

#include <atomic>

namespace trainyard {

inline bool is_set(const std::atomic<bool>* interrupted) {
  return interrupted != nullptr && *interrupted;
}

}  // namespace trainyard
