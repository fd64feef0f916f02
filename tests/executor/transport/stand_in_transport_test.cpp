// What a rank receives without its peers: tokens that differ from each other and from message to
// message.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "executor/random.h"
#include "executor/transport/transport.h"

namespace trainyard {
namespace {

constexpr int kReceivedTokens = 64, kReceivedWidth = 48;

std::vector<float> message_to(Transport& transport) {
  std::vector<float> numbers(kReceivedTokens * kReceivedWidth);
  EXPECT_TRUE(transport.receive(0, 0, numbers.data(), static_cast<int>(numbers.size())));
  return numbers;
}

// Which of eight experts with random weights a token scores highest.
int expert_of(const float* token) {
  int best = 0;
  double most = -INFINITY;
  for (int expert = 0; expert < 8; ++expert) {
    double score = 0;
    for (int i = 0; i < kReceivedWidth; ++i) {
      const auto place = static_cast<std::uint64_t>(1000000 + expert * kReceivedWidth + i);
      score += static_cast<double>(token[i]) * uniform_signed(place);
    }
    if (score <= most) continue;
    most = score;
    best = expert;
  }
  return best;
}

TEST(StandInTransport, ReceivesTokensThatGoToAllExperts) {
  const RankLayout layout({.pipeline_parallel = 2}, 1);
  const auto transport = make_stand_in_transport(layout, 1);
  const std::vector<float> first = message_to(*transport), second = message_to(*transport);
  std::set<int> experts;
  for (int token = 0; token < kReceivedTokens; ++token)
    experts.insert(expert_of(&first[static_cast<std::size_t>(token) * kReceivedWidth]));
  EXPECT_EQ(experts.size(), 8U);
  EXPECT_NE(first, second);
}

TEST(StandInTransport, RepeatsWhatItReceives) {
  const RankLayout layout({.pipeline_parallel = 2}, 1);
  const auto one = make_stand_in_transport(layout, 1), other = make_stand_in_transport(layout, 1);
  EXPECT_EQ(message_to(*one), message_to(*other));
  EXPECT_EQ(message_to(*one), message_to(*other));
}

}  // namespace
}  // namespace trainyard
