// Events of the simulation. An event has 8 bytes, so that an entry of the queue has 16.
#pragma once

#include <cstdint>

#include "simulator/engine/event_queue.h"

namespace trainyard {

enum class EventKind : std::uint32_t {
  task_ends,      // index: rank and stream
  call_ends,      // index: a call under way
  latency_ends,   // index: a round or message of the network that waits for its latency
  transfer_ends,  // index: a path of the network
};

// An outdated event stays in the queue and is dropped when it comes up: its version is then not the
// current one of the task or path that its index names.
class Event {
 public:
  Event(EventKind kind, std::uint32_t index, std::uint32_t version = 0)
      : index_(index), kind_and_version_(static_cast<std::uint32_t>(kind) | version << kKindBits) {}

  EventKind kind() const { return static_cast<EventKind>(kind_and_version_ & kKindMask); }
  std::uint32_t index() const { return index_; }
  bool is_version(std::uint32_t version) const {
    return kind_and_version_ >> kKindBits == (version & kVersionMask);
  }

 private:
  static constexpr int kKindBits = 3;
  static constexpr std::uint32_t kKindMask = (1U << kKindBits) - 1;
  static constexpr std::uint32_t kVersionMask = (1U << (32 - kKindBits)) - 1;

  std::uint32_t index_;
  std::uint32_t kind_and_version_;
};

using Events = EventQueue<Event>;

}  // namespace trainyard
