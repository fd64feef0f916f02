// How far a device has come in the operations of a step, while the host hands over further ones or
// waits. Asked from a thread of its own: a host that waits for a collective that never ends cannot
// say which one it is, and the last operation that was handed over is seldom that one.
//
// An operation is under way when what comes before it on its lane, and what the lane was told to
// wait for, is done and it is not. Of a device that hangs that is what hangs: whatever waits for it
// has not begun.
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
  // `reached`: of an event, from any thread.
  explicit DeviceProgress(std::function<bool(Backend::Event)> reached)
      : reached_(std::move(reached)) {}

  // Before events of the step before are recorded anew.
  void begin_step();
  // Operations in their order, each between two events of its lane.
  void begins(const Lane& lane, Backend::Event begin);
  void ends(const Lane& lane, Backend::Event end);

  struct Look {
    std::int64_t steps = 0;               // begun
    std::vector<std::int64_t> begun;      // operations of the last of them that were not found so
                                          // before
    std::int64_t done = 0;                // events that were found reached since the start
    std::vector<std::int64_t> under_way;  // operations of the step: of each lane at most one
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
  std::map<Lane, std::deque<Handed>> lanes_;  // without those that were found done
  std::vector<std::int64_t> begun_;           // since the last look
  std::int64_t steps_ = 0, next_ = 0, done_ = 0;
};

}  // namespace trainyard
