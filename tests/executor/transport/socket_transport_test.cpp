// Ranks that use TCP: what they add up, and what a rank says when another has gone.
#include "executor/transport/socket_transport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "executor/transport/socket_peer.h"
#include "tests/executor/transport/socket_ranks.h"

namespace trainyard {
namespace {

// Five numbers among three ranks: parts of two, two and one.
TEST(SocketTransport, AddsUpPartsThatAreNotAlike) {
  on_socket_ranks(3, [](Transport& ranks) {
    std::vector<float> numbers = {1, 2, 3, 4, 5};
    for (float& number : numbers) number *= static_cast<float>(ranks.rank() + 1);
    ASSERT_TRUE(ranks.all_reduce(Group::all, numbers.data(), 5, Reduction::sum));
    EXPECT_EQ(numbers, (std::vector<float>{6, 12, 18, 24, 30}));  // times 1 + 2 + 3
  });
}

TEST(SocketTransport, AddsUpFewerNumbersThanThereAreRanks) {
  on_socket_ranks(3, [](Transport& ranks) {
    auto number = static_cast<float>(ranks.rank());
    ASSERT_TRUE(ranks.all_reduce(Group::all, &number, 1, Reduction::max));
    EXPECT_EQ(number, 2);
  });
}

// 16 MiB are more than a connection buffers. The rest moves while the sender computes.
TEST(SocketTransport, MovesAMessageOnBetweenOperations) {
  constexpr int kNumbers = 4 << 20;
  constexpr int kMoves = 20000;  // more than enough; so that a message that stays ends the test
  std::atomic<bool> sent{false}, arrived{false};
  on_socket_ranks(2, [&](Transport& ranks) {
    std::vector<float> numbers(kNumbers, 0);
    if (ranks.rank() == 1) {
      while (!sent) std::this_thread::yield();
      ASSERT_TRUE(ranks.receive(0, 0, numbers.data(), kNumbers));
      EXPECT_EQ(numbers, std::vector<float>(kNumbers, 3));
      arrived = true;
      return;
    }
    std::fill(numbers.begin(), numbers.end(), 3.F);
    ASSERT_TRUE(ranks.send(1, 0, numbers.data(), kNumbers));
    sent = true;
    for (int i = 0; i < kMoves && !arrived; ++i) {
      ranks.move_messages();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(arrived);
  });
}

// Otherwise the rank would wait for ever for a message that can no longer be sent.
TEST(SocketTransport, SaysWhoHasGoneWhenAMessageIsLeftOver) {
  on_socket_ranks(2, [](Transport& ranks) {
    if (ranks.rank() == 0) return;
    float number = 1;
    const auto received = ranks.receive(0, 0, &number, 1);
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().message, "receive failed: rank 0 has gone");
    ASSERT_TRUE(ranks.send(0, 0, &number, 1));
    const auto left = ranks.wait_for_messages();
    ASSERT_FALSE(left);
    EXPECT_EQ(left.error().message, "wait for messages failed: rank 0 has gone");
  });
}

// Closing a connection with unread data resets it. With much to send, the sender sees that first.
TEST(SocketTransport, SaysWhoHasGoneWhenTheConnectionIsResetUnderAMessage) {
  constexpr int kNumbers = 4 << 20;
  std::atomic<bool> sent{false};
  on_socket_ranks(2, [&](Transport& ranks) {
    if (ranks.rank() == 0) {
      while (!sent) std::this_thread::yield();
      return;
    }
    std::vector<float> numbers(kNumbers, 1);
    ASSERT_TRUE(ranks.send(0, 0, numbers.data(), 1));
    sent = true;
    const auto reduced = ranks.all_reduce(Group::all, numbers.data(), kNumbers, Reduction::sum);
    ASSERT_FALSE(reduced);
    EXPECT_EQ(reduced.error().message, "all-reduce failed: rank 0 has gone");
  });
}

// A size that no rank would send. The test writes to the other end of a peer's socket.
TEST(SocketPeer, RefusesASizeThatNoMessageHas) {
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{1} << 60}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    SocketPeer peer(ends[0]);
    const SocketPeer other(ends[1]);
    const MessageHead head{.tag = 0, .size = size};
    ASSERT_EQ(::send(ends[1], &head, sizeof(head), 0), static_cast<ssize_t>(sizeof(head)));
    const auto received = peer.receive_some();
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().message, fmt::format("sent a message of {} bytes", size));
    EXPECT_FALSE(peer.taken(0));
  }
}

}  // namespace
}  // namespace trainyard
