// The order of the queue, compared with a sort that is stable by construction.
#include "simulator/engine/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace trainyard {
namespace {

using Queue = EventQueue<int>;

TEST(EventQueue, GivesEventsByTime) {
  Queue queue;
  queue.push(Picoseconds(30), 3);
  queue.push(Picoseconds(10), 1);
  queue.push(Picoseconds(20), 2);
  EXPECT_EQ(queue.pop().event, 1);
  EXPECT_EQ(queue.now(), Picoseconds(10));
  EXPECT_EQ(queue.pop().event, 2);
  EXPECT_EQ(queue.pop().event, 3);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, GivesEventsOfOneTimeInTheOrderTheyWerePutIn) {
  Queue queue;
  for (int i = 0; i < 5; ++i) queue.push(Picoseconds(7), i);
  EXPECT_EQ(queue.pop().event, 0);
  queue.push(Picoseconds(7), 5);  // while the events of that time are handled
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(queue.pop().event, i);
}

TEST(EventQueue, KnowsWhetherTheClockIsAboutToMove) {
  Queue queue;
  queue.push(Picoseconds(0), 0);
  queue.push(Picoseconds(1), 1);
  EXPECT_TRUE(queue.has_event_now());
  queue.pop();
  EXPECT_FALSE(queue.has_event_now());
  EXPECT_EQ(queue.size(), 1U);
}

TEST(EventQueue, HoldsTheWholeRangeOfTheClock) {
  Queue queue;
  const Picoseconds last = kEndOfClock;
  queue.push_after(last, 1);
  queue.push(Picoseconds(1), 0);
  EXPECT_EQ(queue.pop().event, 0);
  EXPECT_EQ(queue.pop().event, 1);
  EXPECT_EQ(queue.now(), last);
  queue.push_after(last, 2);
  EXPECT_EQ(queue.pop().time, last);
}

// Random pushes between pops, often many at one time. A sequence number gives the expected order.
TEST(EventQueue, AgreesWithASortByTimeAndSequence) {
  std::mt19937 random{1};
  Queue queue;
  std::vector<std::pair<std::int64_t, int>> pending;
  int sequence = 0;
  for (int step = 0; step < 20000; ++step) {
    const bool push = pending.empty() || random() % 2 == 0;
    if (push) {
      const int spread = random() % 4 == 0 ? 100000 : 5;
      const std::int64_t time = queue.now().count() + static_cast<int>(random()) % spread;
      const std::int64_t later = std::max(time, queue.now().count());
      pending.emplace_back(later, sequence);
      queue.push(Picoseconds(later), sequence++);
      continue;
    }
    const auto next = std::min_element(pending.begin(), pending.end());
    const auto popped = queue.pop();
    ASSERT_EQ(popped.time.count(), next->first);
    ASSERT_EQ(popped.event, next->second);
    pending.erase(next);
  }
}

}  // namespace
}  // namespace trainyard
