// Bytes that links carry, compared with the simulation of flows on the links that it keeps, and
// counted by hand.
#include "simulator/step/link_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/cluster/topology.h"
#include "tests/simulator/disturbed_step.h"

namespace trainyard {
namespace {

struct Carried {
  StepSimulation simulation;
  std::vector<LinkTraffic> links;
};

Carried carried(const PreparedJob& job, const PlanRequest& request, const StepOptions& options) {
  auto simulation = simulate(job, legal_plan(job, request), options);
  auto links = link_traffic(job, options.conditions, simulation->step);
  if (!links) ADD_FAILURE() << links.error().message;
  return {*std::move(simulation), *std::move(links)};
}

PlanRequest tensor_and_stages() {
  PlanRequest request;
  request.tensor_parallel = 2;
  request.pipeline_parallel = 2;
  return request;
}

class LinkTrafficAtGrain : public testing::TestWithParam<NetworkGrain> {};

TEST_P(LinkTrafficAtGrain, IsThatOfTheSimulatedFlows) {
  StepConditions uneven;
  uneven.links.push_back({.of = {VertexKind::nic, 1}, .rate = 0.5});
  uneven.sequences = SequenceMix{.lengths = {512, 1024, 4096}};
  const auto [simulation, links] =
      carried(job_of(4, 4, 32), tensor_and_stages(),
              {.grain = GetParam(), .fold = Fold::off, .conditions = uneven});
  ASSERT_FALSE(simulation.timeline.links.empty());
  for (const LinkTraffic& counted : simulation.timeline.links) {
    const LinkTraffic& link = links[static_cast<std::size_t>(counted.link)];
    EXPECT_EQ(link.capacity, counted.capacity);
    EXPECT_NEAR(link.carried / counted.carried, 1, 1e-9) << counted.link;
  }
}

INSTANTIATE_TEST_SUITE_P(LinkTraffic, LinkTrafficAtGrain,
                         testing::Values(NetworkGrain::collective, NetworkGrain::message));

TEST(LinkTraffic, OfAFoldedStepIsThatOfAllItsRanks) {
  const PreparedJob job = job_of(4, 4, 32);
  const auto folded = carried(job, tensor_and_stages(), {});
  const auto all = carried(job, tensor_and_stages(), {.fold = Fold::off});
  ASSERT_TRUE(folded.simulation.step.folded());
  ASSERT_EQ(folded.links.size(), all.links.size());
  for (std::size_t i = 0; i < all.links.size(); ++i) {
    EXPECT_NEAR(folded.links[i].carried.value(), all.links[i].carried.value(),
                1e-9 * all.links[i].carried.value());
  }
}

// Two devices on two nodes, one stage each. The activations of 16 sequences, 4,096 numbers of two
// bytes per token, go over every link of the only route, and their gradients come back.
TEST(LinkTraffic, OfTwoStagesIsTheActivationsOnEveryLinkOfTheWay) {
  Job job = job_of(2, 1, 16).job;
  job.cluster.inter.efficiency = 0.5;  // two bytes on the way for each
  const PreparedJob prepared = prepare(job);
  PlanRequest request;
  request.pipeline_parallel = 2;
  const auto [simulation, links] = carried(prepared, request, {});
  const double activations = 16.0 * static_cast<double>(job.training.sequence_length) * 4096 * 2;
  const double gradient_norm = 4;  // of an all-reduce of two ranks each sends all
  const double expected = 2 * (activations + gradient_norm);
  int used = 0;
  for (const LinkTraffic& link : links) {
    if (link.carried == Bytes(0)) continue;
    ++used;
    EXPECT_NEAR(link.carried.value() / expected, 1, 1e-9) << link.link;
  }
  EXPECT_EQ(used, 8);  // device, NIC, leaf, NIC, device: four links, both ways
}

TEST(LinkTraffic, IsGivenUpWhenItIsAskedTo) {
  const PreparedJob job = job_of(2, 2, 16);
  const auto simulation = simulate(job, legal_plan(job, tensor_and_stages()));
  const std::atomic<bool> asked = true;
  const auto links = link_traffic(job, {}, simulation->step, &asked);
  ASSERT_FALSE(links);
  EXPECT_EQ(links.error().message, "interrupted");
}

}  // namespace
}  // namespace trainyard
