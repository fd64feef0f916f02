#include "model/cost/messages/known_collectives.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "model/cluster/topology.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

struct PricedMessage {
  CollectiveOperation operation;
  GroupLinks links;
  Bytes message;
  CollectiveChoice choice;
};

// More messages than the table has room for, on groups inside a node, across nodes and both; some
// of the named algorithms exist for some operations only.
std::vector<PricedMessage> many_messages(const PreparedJob& job) {
  std::vector<PricedMessage> messages;
  for (const GroupShape& group : {GroupShape{1, 2}, {1, 8}, {1, 64}, {2, 4}, {8, 8}, {4, 16}}) {
    const GroupLinks links = group_links(job.tiers, group);
    for (const auto operation : {all_reduce, all_gather, reduce_scatter, all_to_all, send}) {
      for (const char* algorithm : {"", "ring", "hierarchical"}) {
        const CollectiveChoice choice{algorithm, job.job.cluster.device.collectives};
        for (int i = 1; i <= 60; ++i) {
          messages.push_back({operation, links, Bytes(i * 1e5), choice});
        }
      }
    }
  }
  return messages;
}

void expect_costs_of(const KnownCollectives& known, const std::vector<PricedMessage>& messages) {
  for (const auto& [operation, links, message, choice] : messages) {
    const CollectiveCost anew = collective_cost(operation, links, message, choice);
    const CollectiveCost kept = known.cost(operation, links, message, choice);
    ASSERT_EQ(kept.time, anew.time) << links.size << " ranks, " << message.value();
    ASSERT_EQ(kept.latency, anew.latency);
    ASSERT_EQ(kept.algorithm, anew.algorithm);
  }
}

TEST(KnownCollectives, AnswerAsIfPricedAnewEvenWhereThereIsNoRoom) {
  const PreparedJob job = llama_8b_on_h100(8);
  const std::vector<PricedMessage> messages = many_messages(job);
  ASSERT_GT(messages.size(), 4096U);
  const KnownCollectives known;
  expect_costs_of(known, messages);
  expect_costs_of(known, messages);
}

TEST(KnownCollectives, AreSharedByThreads) {
  const PreparedJob job = llama_8b_on_h100(8);
  const std::vector<PricedMessage> messages = many_messages(job);
  const KnownCollectives known;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { expect_costs_of(known, messages); });
  }
}

}  // namespace
}  // namespace trainyard
