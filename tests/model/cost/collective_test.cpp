// Which algorithm or measured curve prices a collective, and the bus bandwidth that nccl-tests
// prints.
#include "model/cost/collective.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/model/cluster/clusters.h"
#include "tests/model/cost/collectives/example_links.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;
using namespace literals;

// Curves of an all-reduce that were fitted for two group sizes, 2 and 8 devices.
const std::array<CollectiveCurve, 2> kCurves = {
    CollectiveCurve{all_reduce, 2, 6.0_us, 320.0_GBps, 1e-9, {}},
    CollectiveCurve{all_reduce, 8, 15.0_us, 280.0_GBps, 3e-9, {}}};

double curve_time(const CollectiveCurve& curve, double bytes) {
  return curve.latency.value() + bytes / curve.bandwidth.value() + curve.root * std::sqrt(bytes);
}

double time_on(const GroupLinks& links, double bytes, std::string_view algorithm = {}) {
  return collective_time(all_reduce, links, Bytes(bytes), {algorithm, kCurves}).value();
}

TEST(CollectiveTime, IsTheDevicesCurveAtAFittedSize) {
  for (const CollectiveCurve& curve : kCurves) {
    const GroupLinks links = one_domain(curve.gpus, 450.0_GBps, 3.0_us);
    EXPECT_DOUBLE_EQ(time_on(links, 1e8), curve_time(curve, 1e8));
  }
}

TEST(CollectiveTime, IsARingsBetweenFittedSizes) {
  // (n−1)/n is 1/2, 3/4, 7/8 for 2, 4, 8, so the part of four devices that grows with the bytes
  // lies two thirds of the way. They take n−1 steps, so their latency lies one third of the way.
  const double moving =
      (curve_time(kCurves[0], 1e8) - 6e-6) / 3 + (curve_time(kCurves[1], 1e8) - 15e-6) * 2 / 3;
  const double expected = 9e-6 + moving;
  EXPECT_NEAR(time_on(one_domain(4, 450.0_GBps, 3.0_us), 1e8), expected, 1e-12 * expected);
}

TEST(CollectiveTime, OfAReductionInTheSwitchHardlyGrowsWithTheDevices) {
  // From 8 to 72 devices: the latency grows by ⌈log₂⌉, 7/3; the √S term by √(72/8) = 3; the bytes'
  // term stays.
  const double expected = 15e-6 * 7 / 3 + 1e8 / 280e9 + 3 * 3e-9 * 1e4;
  EXPECT_NEAR(time_on(one_domain(72, 900.0_GBps, 3.0_us), 1e8), expected, 1e-12 * expected);
}

TEST(CollectiveTime, GrowsBeyondTheFittedSizesAsARingsPartsDo) {
  // All-gather from 8 to 72 devices: the latency grows by 7/3. A ring also copies its own share, at
  // a rate that makes the copy 0.45 of a step, so the bytes' part grows by (71.45/72)/(7.45/8).
  const std::array<CollectiveCurve, 1> curves = {
      CollectiveCurve{all_gather, 8, 15.0_us, 280.0_GBps, 3e-9, {}}};
  const GroupLinks links = one_domain(72, 900.0_GBps, 3.0_us);
  const double moving = 1e8 / 280e9 + 3e-9 * 1e4;
  const double expected = 15e-6 * 7 / 3 + moving * (71.45 / 72) / (7.45 / 8);
  const double time = collective_time(all_gather, links, Bytes(1e8), {{}, curves}).value();
  EXPECT_NEAR(time, expected, 1e-12 * expected);
}

TEST(CollectiveTime, TakesAsMuchLongerAsItsCurvesResidualSays) {
  CollectiveCurve curve{all_gather, 8, 15.0_us, 280.0_GBps, 3e-9, {}};
  curve.residual = {{{20, 22, 24}}, {0, 0.1, 0.3}};
  const GroupLinks links = one_domain(8, 450.0_GBps, 3.0_us);
  const double bytes = std::exp2(23);
  const double time =
      collective_time(all_gather, links, Bytes(bytes), {{}, std::span(&curve, 1)}).value();
  EXPECT_NEAR(time, curve_time(curve, bytes) * std::exp(0.2), 1e-12 * time);
}

// Sixteen nodes of one device: a ring has 2·15 steps of S/16 bytes each. With the protocol for
// small messages a step has 4 µs of the 20 µs and a tenth of the 50 GB/s. For 10 MB the other
// protocol is faster.
TEST(CollectiveTime, AcrossDomainsIsOfTheFasterProtocol) {
  GroupLinks links = over_domains(1, 16, 50.0_GBps, 20.0_us);
  const auto ring = [&](double bytes) {
    return collective_time(all_reduce, links, Bytes(bytes), {.algorithm = "ring"}).value();
  };
  const double bulk_of_small = ring(1e3);
  links.small_latency = 4.0_us;
  links.small_share = 0.1;
  EXPECT_NEAR(ring(1e3), 30 * (4e-6 + 1e3 / 16 / 5e9), 1e-12);
  EXPECT_NEAR(ring(1e7), 30 * (20e-6 + 1e7 / 16 / 50e9), 1e-12);
  EXPECT_LT(ring(1e3), bulk_of_small);
  links.domains = 1;  // inside a domain there is no such protocol
  links.ranks_per_domain = 16;
  EXPECT_NEAR(ring(1e3), 30 * (3e-6 + 1e3 / 16 / 450e9), 1e-12);
}

TEST(CollectiveTime, OfOneRankIsNothing) {
  EXPECT_EQ(time_on(one_domain(1, 450.0_GBps, 3.0_us), 1e8), 0);
}

TEST(CollectiveTime, OfANamedAlgorithmIsItsOwn) {
  const GroupLinks links = one_domain(8, 450.0_GBps, 3.0_us);
  EXPECT_DOUBLE_EQ(time_on(links, 1e8, "ring"), 14 * 3e-6 + 2 * 7.0 / 8 * 1e8 / 450e9);
  // No all-reduce is called "pairwise", so the name has no effect.
  EXPECT_DOUBLE_EQ(time_on(links, 1e8, "pairwise"), time_on(links, 1e8));
}

TEST(CollectiveTime, IsTheFastestOfTheAlgorithmsWithoutCurves) {
  for (const GroupLinks& links :
       {one_domain(8, 450.0_GBps, 3.0_us), over_domains(8, 16, 50.0_GBps, 10.0_us)}) {
    for (const double bytes : {1e3, 1e6, 1e10}) {
      double least = 1e9;
      for (const auto* algorithm : collective_algorithms()) {
        if (algorithm->operation != all_reduce || algorithm->name == "sharp") continue;
        if (algorithm->name == "recursive-halving-doubling") continue;
        if (!algorithm->applies(links)) continue;
        least = std::min(least, algorithm->time(links, Bytes(bytes)).value());
      }
      EXPECT_EQ(collective_time(all_reduce, links, Bytes(bytes), {}).value(), least);
    }
  }
}

TEST(CollectiveTime, PrefersFewRoundsForSmallMessages) {
  const GroupLinks links = over_domains(1, 64, 50.0_GBps, 10.0_us);
  EXPECT_EQ(collective_time(all_reduce, links, Bytes(8), {}),
            named_time("recursive-doubling", all_reduce, links, Bytes(8)));
}

// NCCL's tuner has tree, ring, CollNet and NVLS for all-reduce (src/graph/tuning.cc), but not
// halving and doubling. On sixty-four nodes of one device it would be the fastest, because it has
// the rounds of a tree and the bytes of a ring; it is chosen only if it is named.
TEST(CollectiveTime, ReducesByHalvingAndDoublingWhereItIsAskedToAlone) {
  const GroupLinks links = over_domains(1, 64, 50.0_GBps, 10.0_us);
  const std::string_view halving = "recursive-halving-doubling";
  for (const double bytes : {3e6, 1e7, 1e8}) {
    EXPECT_LT(named_time(halving, all_reduce, links, Bytes(bytes)),
              collective_time(all_reduce, links, Bytes(bytes), {}));
  }
  EXPECT_EQ(collective_algorithm(all_reduce, links, Bytes(1e7), {})->name, "double-binary-tree");
  EXPECT_EQ(collective_algorithm(all_reduce, links, Bytes(1e10), {})->name, "ring");
  EXPECT_EQ(collective_algorithm(all_reduce, links, Bytes(1e7), {.algorithm = halving})->name,
            halving);
}

// For all-gather and reduce-scatter NCCL's tuner has ring, NVLS and CollNet, and PAT only if each
// node has one rank (src/graph/tuning.cc). So 60 nodes of eight take a ring of 479 hops.
TEST(CollectiveTime, GathersInLogarithmicRoundsUnaskedFromOneRankANodeAlone) {
  const GroupLinks many = over_domains(8, 60, 50.0_GBps, 12.0_us);
  const GroupLinks lone = over_domains(1, 60, 50.0_GBps, 12.0_us);
  for (const auto& [operation, name] :
       {std::pair{all_gather, "recursive-doubling"}, {reduce_scatter, "recursive-halving"}}) {
    EXPECT_EQ(collective_algorithm(operation, many, 1.0_GB, {})->name, "ring");
    EXPECT_EQ(collective_algorithm(operation, many, 1.0_GB, {.algorithm = name})->name, name);
    EXPECT_EQ(collective_algorithm(operation, lone, Bytes(1e6), {})->name, name);
    EXPECT_NEAR(collective_time(operation, many, Bytes(0), {}).value(), 420 * 3e-6 + 59 * 12e-6,
                1e-12);
  }
}

TEST(CollectiveTime, InTheFabricIsNeverChosenUnasked) {
  const GroupLinks links = over_domains(1, 16, 50.0_GBps, 10.0_us);
  EXPECT_LT(named_time("sharp", all_reduce, links, 1.0_GB),
            collective_time(all_reduce, links, 1.0_GB, {}));
}

TEST(CollectiveTime, OverDomainsHasTheRateInsideFromTheCurve) {
  // Two nodes of 8 devices whose NICs are faster than NVLink. The pipelined hierarchy takes its
  // steps, the bytes' part of the 8-device curve, and the time of one chunk (512 KiB) across the
  // network, S/r at a member's share of the NICs.
  const GroupLinks links = over_domains(8, 2, 100.0_GBps, 10.0_us);
  const double moving = curve_time(kCurves[1], 1e10) - 15e-6;
  const double expected = moving + 14 * 3e-6 + 2 * 10e-6 + 524288 / 8.0 / 100e9;
  EXPECT_NEAR(time_on(links, 1e10), expected, 1e-12 * expected);
}

// ---- Links that the curves were not measured on -------------------------------------------------

// Nodes of eight devices whose curves were measured on a switch of 450 GB/s.
Cluster nodes_of(IntraNodeKind kind, double bandwidth, int nodes = 1) {
  Cluster cluster = fat_tree_cluster(nodes, nodes, 1);
  cluster.intra.kind = kind;
  cluster.intra.bandwidth = BytesPerSecond(bandwidth);
  cluster.device.link_bandwidth = 450.0_GBps;
  cluster.device.link_kind = IntraNodeKind::nvswitch;
  cluster.device.collectives.assign(kCurves.begin(), kCurves.end());
  return cluster;
}

double time_in(const Cluster& cluster, int n, double bytes) {
  const GroupLinks links = group_links(tiers_of(cluster), {1, n});
  return collective_time(all_reduce, links, Bytes(bytes), collective_choice({}, cluster)).value();
}

TEST(CollectiveTime, OnASwitchOfAnotherBandwidthScalesWhatBytesTake) {
  for (const CollectiveCurve& curve : kCurves) {
    const double latency = curve.latency.value();
    const double moving = curve_time(curve, 1e8) - latency;
    for (const double bandwidth : {90e9, 450e9, 900e9}) {
      const double expected = latency + 450e9 / bandwidth * moving;
      EXPECT_NEAR(time_in(nodes_of(IntraNodeKind::nvswitch, bandwidth), curve.gpus, 1e8), expected,
                  1e-12 * expected);
    }
  }
}

TEST(CollectiveTime, NeverGrowsWithTheBandwidthInsideNorFallsWithTheBytes) {
  for (const IntraNodeKind kind : {IntraNodeKind::nvswitch, IntraNodeKind::pcie}) {
    for (const int n : {2, 5, 8}) {
      for (double bytes = 1; bytes < 1e11; bytes *= 10) {
        double before = std::numeric_limits<double>::infinity();
        for (const double bandwidth : {1e9, 25e9, 300e9, 449e9, 450e9, 451e9, 3e12}) {
          const double now = time_in(nodes_of(kind, bandwidth), n, bytes);
          EXPECT_LE(now, before);
          EXPECT_LE(now, time_in(nodes_of(kind, bandwidth), n, 2 * bytes));
          before = now;
        }
      }
    }
  }
}

TEST(CollectiveTime, BelowTheLatencyOfACurveIsNoneOfTheLinks) {
  Cluster cluster = nodes_of(IntraNodeKind::nvswitch, 4.5e9);
  for (CollectiveCurve& curve : cluster.device.collectives) {
    curve.residual = {.knots = {{0, 10}}, .values = {std::log(0.5), std::log(0.5)}};
  }
  EXPECT_NEAR(time_in(cluster, 8, 8), curve_time(kCurves[1], 8) / 2, 1e-12);
}

// Curves of a switch, declared to be those of a mesh of seven links of 450/7 GB/s each. Two devices
// of the mesh share only one link, so the curve of two is too fast for them.
TEST(CollectiveTime, OfTwoInAMeshIsNoShorterThanTheirLinkTakes) {
  Cluster cluster = nodes_of(IntraNodeKind::nvlink_mesh, 450e9);
  cluster.device.link_kind = IntraNodeKind::nvlink_mesh;
  constexpr double kBytes = 1e10;
  EXPECT_NEAR(time_in(cluster, 2, kBytes), 6e-6 + kBytes / (450e9 / 7), 1e-9);
}

// Eight devices on PCIe of 25 GB/s: a ring of 32 MiB takes 2·7·3 us + 2·7/8·33.55 MB / 25 GB/s.
TEST(CollectiveTime, OnLinksOfAnotherKindIsOfTheFormulas) {
  const Cluster cluster = nodes_of(IntraNodeKind::pcie, 25e9);
  EXPECT_NEAR(time_in(cluster, 8, 33554432), 42e-6 + 1.75 * 33554432 / 25e9, 1e-9);
  Cluster of_any = cluster;
  of_any.device.link_kind.reset();
  EXPECT_DOUBLE_EQ(time_in(of_any, 8, 33554432), curve_time(kCurves[1], 33554432));
}

TEST(CollectiveTime, OverDomainsHasTheScaledRateInside) {
  Cluster cluster = nodes_of(IntraNodeKind::nvswitch, 225e9, 2);
  cluster.inter.bandwidth = 100.0_GBps;
  const double moving = 2 * (curve_time(kCurves[1], 1e10) - 15e-6);
  const double expected = moving + 14 * 3e-6 + 2 * 10e-6 + 524288 / 8.0 / 100e9;
  EXPECT_NEAR(time_in(cluster, 16, 1e10), expected, 1e-9 * expected);
}

TEST(CollectiveTime, HalvesWithTwiceTheRatesOfItsCurve) {  // handbook §12.4, with the c of c·√S
  auto twice = kCurves;
  for (CollectiveCurve& curve : twice) {
    curve.latency /= 2;
    curve.bandwidth *= 2;
    curve.root /= 2;
  }
  for (const int n : {2, 4, 8, 72}) {
    const GroupLinks links = one_domain(n, 450.0_GBps, 3.0_us);
    const double before = time_on(links, 1e7);
    const double after = collective_time(all_reduce, links, Bytes(1e7), {{}, twice}).value();
    EXPECT_NEAR(after, before / 2, 1e-12 * before);
  }
}

TEST(CollectiveTime, IsInvariantToRenamingInsideANodeAndNotAcrossNodes) {  // handbook §12.7
  const FabricTiers tiers = tiers_of(fat_tree_cluster(4, 4, 1));
  const auto time = [&](int stride) {
    return collective_time(all_reduce, group_links(tiers, {stride, 2}), Bytes(1e8), {});
  };
  EXPECT_EQ(time(1), time(2));
  EXPECT_EQ(time(1), time(4));
  EXPECT_GT(time(8), time(4));
}

TEST(BusBandwidth, IsWhatNcclTestsPrint) {
  // nccl-tests PERFORMANCE.md: factors 2(n−1)/n; (n−1)/n; 1. 8 ranks, 1 GB in 10 ms: 100 GB/s.
  const auto bus = [](CollectiveOperation operation) {
    return bus_bandwidth(operation, 8, 1.0_GB, 10.0_ms).value();
  };
  EXPECT_DOUBLE_EQ(bus(all_reduce), 175e9);
  EXPECT_DOUBLE_EQ(bus(all_gather), 87.5e9);
  EXPECT_DOUBLE_EQ(bus(reduce_scatter), 87.5e9);
  EXPECT_DOUBLE_EQ(bus(all_to_all), 87.5e9);
  EXPECT_DOUBLE_EQ(bus(broadcast), 100e9);
}

TEST(BusBandwidth, OfARingIsTheLinksRate) {
  const GroupLinks links = one_domain(8, 450.0_GBps, 0.0_s);
  for (const CollectiveOperation operation : {all_reduce, all_gather, reduce_scatter}) {
    const Seconds time = named_time("ring", operation, links, 1.0_GB);
    EXPECT_DOUBLE_EQ(bus_bandwidth(operation, 8, 1.0_GB, time).value(), 450e9);
  }
}

// Compute loses the latency, and the time that the bytes take at the rate inside a node (7/8 of a
// GB at 450 GB/s), no matter how long the network takes for them.
TEST(ContendingShare, IsOfTheSameSecondsOnEveryNetwork) {
  for (const BytesPerSecond nic : {10.0_GBps, 25.0_GBps, 50.0_GBps, 100.0_GBps}) {
    const GroupLinks links = over_domains(4, 2, nic, 12.0_us);
    const CollectiveChoice choice{.algorithm = "ring"};
    const CollectiveCost cost = collective_cost(all_gather, links, 1.0_GB, choice);
    const double share = contending_share(all_gather, links, 1.0_GB, cost);
    EXPECT_NEAR((share * cost.time - cost.latency).value(), 0.875e9 / 450e9, 1e-9);
    EXPECT_GT(cost.latency, Seconds(0));
  }
}

TEST(ContendingShare, InsideADomainIsAllOfIt) {
  const GroupLinks links = one_domain(8, 450.0_GBps, 3.0_us);
  const CollectiveCost cost = collective_cost(all_gather, links, 1.0_GB, {.algorithm = "ring"});
  EXPECT_EQ(contending_share(all_gather, links, 1.0_GB, cost), 1);
}

}  // namespace
}  // namespace trainyard
