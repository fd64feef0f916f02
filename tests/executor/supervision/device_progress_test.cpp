// The operation in which a device hangs: all before it on its lane are done, and it has begun.
#include "executor/supervision/device_progress.h"

#include <gtest/gtest.h>

#include <set>

#include "executor/supervision/whereabouts.h"

namespace trainyard {
namespace {

const Lane kComputeLane{};
const Lane kCommunicationLane{.stream = ProgramStream::data_parallel};

// The progress of a device whose events are reached when the test says so.
struct FakeDevice {
  std::set<Backend::Event> events;
  DeviceProgress progress{[this](Backend::Event event) { return events.count(event) > 0; }};
  Backend::Event next = 0;

  // The n-th operation has the events 2n for its begin and 2n + 1 for its end.
  void hands_over(const Lane& lane) {
    progress.begins(lane, next++);
    progress.ends(lane, next++);
  }
};

using Operations = std::vector<std::int64_t>;

TEST(DeviceProgress, IsNowhereBeforeAnythingHasBegun) {
  FakeDevice device;
  EXPECT_TRUE(device.progress.look().under_way.empty());
  device.hands_over(kComputeLane);
  EXPECT_TRUE(device.progress.look().under_way.empty());
}

// Enqueued are compute 0, collective 1, compute 2 that waits for it, and compute 3 after that.
TEST(DeviceProgress, IsAtTheCollectiveThatOthersWaitForAndNotAtTheLastOneHandedOver) {
  FakeDevice device;
  for (const Lane& lane : {kComputeLane, kCommunicationLane, kComputeLane, kComputeLane})
    device.hands_over(lane);
  device.events = {0, 1, 2};
  EXPECT_EQ(device.progress.look().under_way, Operations{1});
  EXPECT_EQ(device.progress.look().done, 3);
  device.events.insert({3, 4});
  EXPECT_EQ(device.progress.look().under_way, Operations{2});
  device.events.insert({5, 6, 7});
  EXPECT_TRUE(device.progress.look().under_way.empty());
  EXPECT_EQ(device.progress.look().done, 8);
}

TEST(DeviceProgress, IsAtOneOperationOfEachLaneInTheirOrder) {
  FakeDevice device;
  for (const Lane& lane : {kCommunicationLane, kComputeLane, kComputeLane, kCommunicationLane}) {
    device.hands_over(lane);
  }
  device.events = {0, 2, 3, 4};
  EXPECT_EQ(device.progress.look().under_way, (Operations{0, 2}));
}

// Ranks that take part in the operation ask which have begun; each is reported once.
TEST(DeviceProgress, TellsWhatHasBegunInWhichStep) {
  FakeDevice device;
  device.progress.begin_step();
  for (const Lane& lane : {kComputeLane, kCommunicationLane}) device.hands_over(lane);
  device.events = {0};
  EXPECT_EQ(device.progress.look().begun, Operations{0});
  device.events = {0, 1, 2};
  EXPECT_EQ(device.progress.look().begun, Operations{1});
  EXPECT_TRUE(device.progress.look().begun.empty());
  device.progress.begin_step();
  EXPECT_EQ(device.progress.look().steps, 2);
}

// The host is still in the call that enqueues this operation.
TEST(DeviceProgress, IsAtWhatIsStillHandedOver) {
  FakeDevice device;
  device.hands_over(kComputeLane);
  device.progress.begins(kComputeLane, 2);
  device.events = {0, 1, 2};
  EXPECT_EQ(device.progress.look().under_way, Operations{1});
}

TEST(DeviceProgress, CountsAStepsOperationsFromItsFirst) {
  FakeDevice device;
  device.hands_over(kComputeLane);
  device.events = {0, 1};
  EXPECT_EQ(device.progress.look().done, 2);
  device.progress.begin_step();
  device.next = 0;
  device.events.clear();
  device.hands_over(kCommunicationLane);
  device.events = {0};
  EXPECT_EQ(device.progress.look().under_way, Operations{0});
  EXPECT_EQ(device.progress.look().done, 3);
}

TEST(Whereabouts, NamesWhatADeviceIsAtInsteadOfWhatWasHandedOverLast) {
  BoardHead head;
  head.rank = 1;
  head.state = RankState::running;
  head.steps_done = 3;
  head.operation = 9;
  set_text(head.host, "node");
  const DescribeOperation describe = [](int, std::int64_t operation) {
    return "operation " + std::to_string(operation);
  };
  EXPECT_EQ(sentence_of(head, "hangs", describe), "rank 1 on node hangs: step 3, operation 9");
  head.under_way[0] = 4;
  head.under_way[1] = 6;
  EXPECT_EQ(sentence_of(head, "hangs", describe),
            "rank 1 on node hangs: step 3, operation 4 and operation 6");
  EXPECT_EQ(operations_at(head), (Operations{4, 6}));
}

// A rank with a device is in the operations of its streams, whatever call the host is in. Without a
// device, or with nothing under way, the host decides whether it computes or waits.
TEST(Whereabouts, KnowsWhetherARankComputes) {
  BoardHead head;
  EXPECT_TRUE(computes(head));
  head.call = RankCall::receive;
  EXPECT_FALSE(computes(head));
  head.under_way[0] = 38;
  head.computes = true;
  EXPECT_TRUE(computes(head));
  head.computes = false;
  head.call = RankCall::none;
  EXPECT_FALSE(computes(head));
}

}  // namespace
}  // namespace trainyard
