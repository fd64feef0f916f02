// How far a device has come in the operations of a step, while the host hands over further ones or
// waits. Another thread asks: a host that waits for a collective that never ends cannot say which
// one it is, and it is seldom the operation that was handed over last.
//
// An operation is under way when everything before it on its lane, and every event that the lane
// was told to wait for, is done but the operation itself is not. If a device hangs, an operation
// under way is the cause: operations that wait for it have not begun.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "executor/backend.h"

namespace trainyard {

class DeviceProgress {
 public:
  // `reached` says whether an event was reached; it is called from any thread.
  explicit DeviceProgress(std::function<bool(Backend::Event)> reached)
      : reached_(std::move(reached)) {}

  // Call it before the events of the last step are reused.
  void begin_step();
  // The next operation, which lies between two events of its lane.
  void begins(const Lane& lane, Backend::Event begin);
  void ends(const Lane& lane, Backend::Event end);

  struct Look {
    std::int64_t steps = 0;  // steps begun
    // operations of the current step that began since the last look
    std::vector<std::int64_t> begun;
    std::int64_t done = 0;                // events found reached since the start
    std::vector<std::int64_t> under_way;  // operations of the step, at most one of each lane
  };
  Look look();

 private:
  struct Handed {
    std::int64_t number = 0;
    Backend::Event begin = 0;
    std::optional<Backend::Event> end;  // nothing: the host is still handing it over
    bool has_begun = false;
  };
  bool has_ended(Handed& operation);

  std::function<bool(Backend::Event)> reached_;
  std::mutex mutex_;
  std::map<Lane, std::deque<Handed>> lanes_;  // operations not yet found done
  std::vector<std::int64_t> begun_;           // since the last look
  std::int64_t steps_ = 0, next_ = 0, done_ = 0;
};

}  // namespace trainyard
