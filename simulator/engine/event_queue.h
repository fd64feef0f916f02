// Pending events, taken out in the order of time and, at equal times, in the order in which they
// were put in: the (time, sequence) order, without a stored sequence number.
//
// A radix heap (Ahuja, Mehlhorn, Orlin & Tarjan 1990): an event lies in the bucket numbered by the
// highest bit in which its time differs from the clock; at time 12 = 01100b, an event at 13 =
// 01101b lies in bucket 1 and one at 20 = 10100b in bucket 5. When the clock moves, the events of
// the first bucket that holds any are dealt out to lower buckets, in order. Assumes that time never
// runs backwards. A binary heap is simpler and as fast on a few thousand scattered events, but 8
// times slower where all ranks act at the same times, and 10 times on a million events
// (docs/performance.md).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/virtual_time.h"

namespace trainyard {

template <typename Event>
class EventQueue {
 public:
  struct Entry {
    Picoseconds time;
    Event event;
  };

  // The time of the event that was popped last.
  Picoseconds now() const { return now_; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // Whether another event is pending at the current time.
  bool has_event_now() const { return next_ < buckets_[0].size(); }

  // Requires: time >= now().
  void push(Picoseconds time, Event event) {
    assert(time >= now_ && "an event in the past");
    put({time, std::move(event)});
    ++size_;
  }

  // Requires: delay >= 0.
  void push_after(Picoseconds delay, Event event) { push(later(now_, delay), std::move(event)); }

  // Requires: not empty.
  Entry pop() {
    if (!has_event_now()) advance();
    --size_;
    return std::move(buckets_[0][next_++]);
  }

 private:
  void put(Entry entry) {
    const auto differing =
        static_cast<std::uint64_t>(entry.time.count()) ^ static_cast<std::uint64_t>(now_.count());
    const auto bucket = static_cast<std::size_t>(std::bit_width(differing));
    occupied_ |= std::uint64_t{1} << bucket;
    buckets_[bucket].push_back(std::move(entry));
  }

  // Moves the clock to the next event: all events of that time end up in bucket 0.
  void advance() {
    buckets_[0].clear();
    next_ = 0;
    occupied_ &= ~std::uint64_t{1};
    const int first = std::countr_zero(occupied_);
    occupied_ &= ~(std::uint64_t{1} << first);
    std::vector<Entry>& dealt = buckets_[static_cast<std::size_t>(first)];
    now_ = std::min_element(dealt.begin(), dealt.end(), [](const Entry& a, const Entry& b) {
             return a.time < b.time;
           })->time;
    for (Entry& entry : dealt) put(std::move(entry));
    dealt.clear();
  }

  // A time is below 2^63, so a difference has 63 bits at most.
  std::array<std::vector<Entry>, 64> buckets_;
  std::uint64_t occupied_ = 0;  // one bit for each bucket that is not empty
  std::size_t next_ = 0;        // index of the next event in bucket 0
  std::size_t size_ = 0;
  Picoseconds now_{0};
};

}  // namespace trainyard
