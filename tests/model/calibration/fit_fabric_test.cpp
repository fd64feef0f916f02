#include "model/calibration/fit_fabric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/cluster/clusters.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

// Nodes of eight on eight NICs of 25 GB/s, so that the NICs, not the links inside, set the pace.
FabricProblem problem() {
  FabricProblem fabric{rail_cluster(1, 32, 1), ""};
  fabric.cluster.inter.bandwidth = BytesPerSecond(25e9);
  return fabric;
}

FabricProblem with(double efficiency, double latency) {
  FabricProblem fabric = problem();
  fabric.cluster.inter.efficiency = efficiency;
  fabric.cluster.inter.latency = Seconds(latency);
  return fabric;
}

// The times that the fabric predicts for all-reduces: `sizes` messages, the first of `least` bytes,
// each four times as large as the one before.
std::vector<FabricSample> measured(const FabricProblem& fabric, int nodes, double least,
                                   int sizes) {
  std::vector<FabricSample> samples;
  for (int i = 0; i < sizes; ++i) {
    samples.push_back({all_reduce, nodes, Bytes(least * std::exp2(2 * i)), {}});
    samples.back().time = fabric_sample_time(fabric, samples.back());
  }
  return samples;
}

TEST(FitFabric, FindsTheFiguresThatTheTimesWereMadeWith) {
  const auto inter = fit_fabric(problem(), measured(with(0.8, 20e-6), 4, 1e5, 8));
  ASSERT_TRUE(inter.has_value());
  EXPECT_NEAR(inter->efficiency, 0.8, 0.001);
  EXPECT_NEAR(inter->latency.value(), 20e-6, 0.02e-6);
  EXPECT_EQ(inter->small_share, 0);
}

TEST(FitFabric, TellsTwoProtocolsApart) {
  FabricProblem two = with(0.9, 300e-6);
  two.cluster.inter.small_latency = Seconds(50e-6);
  two.cluster.inter.small_share = 0.1;
  const auto inter = fit_fabric(problem(), measured(two, 2, 1024, 13));
  ASSERT_TRUE(inter.has_value());
  EXPECT_NEAR(inter->efficiency, 0.9, 0.01);
  EXPECT_NEAR(inter->latency / Seconds(300e-6), 1, 0.02);
  EXPECT_NEAR(inter->small_latency / Seconds(50e-6), 1, 0.02);
  EXPECT_NEAR(inter->small_share, 0.1, 0.005);
}

// The formulas contain the number of nodes, so a fit on two nodes predicts sixteen.
TEST(FitFabric, SpeaksOfNumbersOfNodesThatItDidNotSee) {
  const FabricProblem truth = with(0.7, 15e-6);
  FabricProblem fitted = problem();
  fitted.cluster.inter = fit_fabric(problem(), measured(truth, 2, 1e5, 8)).value();
  for (const FabricSample& sample : measured(truth, 16, 1e5, 8)) {
    EXPECT_NEAR(fabric_sample_time(fitted, sample) / sample.time, 1, 0.01);
  }
}

// A ring of 16 ranks on two nodes whose NICs give 200 GB/s per node. Expected: 2·(15·S/16/B +
// 14·α_i + α_x), because one of the ring's steps leaves the first node (NCCL, src/graph/tuning.cc:
// of the steps, those between nodes have the latency of the network).
TEST(FitFabric, PricesTheAlgorithmThatRan) {
  FabricProblem ring = with(1, 10e-6);
  ring.algorithm = "ring";
  const double inside = ring.cluster.intra.latency.value();
  const double expected = 2 * (15 * 1e9 / 16 / 200e9 + 14 * inside + 10e-6);
  EXPECT_NEAR(fabric_sample_time(ring, {all_reduce, 2, Bytes(1e9), {}}).value(), expected,
              1e-9 * expected);
}

TEST(FitFabric, RefusesTooFewSamples) {
  const auto inter = fit_fabric(problem(), measured(with(0.8, 20e-6), 2, 1e5, 3));
  ASSERT_FALSE(inter.has_value());
  EXPECT_EQ(inter.error().message, "found too few collectives across nodes; allowed: 4 or more");
}

}  // namespace
}  // namespace trainyard
