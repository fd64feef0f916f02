// The algorithms are compared with golden.md, with the table of handbook §6 typed a second time,
// and with a round-by-round count over explicit pairs of ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "tests/model/cost/collectives/example_links.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;
using namespace literals;

// ---- golden.md ----------------------------------------------------------------------------------

TEST(GoldenCollectives, OneGibibyteOverEightRanks) {
  const GroupLinks links = one_domain(8, 450.0_GBps, 3.0_us);
  EXPECT_NEAR(named_time("ring", all_reduce, links, 1.0_GiB).value(), 4.21766e-3, 5e-9);
  EXPECT_NEAR(named_time("ring", all_gather, links, 1.0_GiB).value(), 2.10883e-3, 5e-9);
  EXPECT_NEAR(named_time("recursive-doubling", all_gather, links, 1.0_GiB).value(), 2.09683e-3,
              5e-9);
}

TEST(GoldenCollectives, OneGibibyteOverEightBySixteen) {
  const GroupLinks links = over_domains(8, 16, 50.0_GBps, 10.0_us);
  EXPECT_NEAR(named_time("hierarchical", all_reduce, links, 1.0_GiB).value(), 9.55083e-3, 5e-9);
  const GroupLinks flat = over_domains(1, 128, 50.0_GBps, 10.0_us);
  EXPECT_NEAR(named_time("ring", all_reduce, flat, 1.0_GiB).value(), 45.154e-3, 5e-7);
  // All hops of this ring have the same α. Eight members per domain share 50 GB/s.
  GroupLinks through = over_domains(8, 16, 50.0_GBps / 8, 10.0_us);
  through.inside_latency = 10.0_us;
  EXPECT_NEAR(named_time("ring", all_reduce, through, 1.0_GiB).value(), 45.154e-3, 5e-7);
}

TEST(GoldenCollectives, OneGigabyteOverOneNicOrAllRails) {
  const auto ring = [](const GroupLinks& links) {
    GroupLinks free = links;  // the golden values have no latency
    free.inside_latency = Seconds(0);
    return free;
  };
  const GroupLinks rails = ring(over_domains(8, 16, 50.0_GBps, 0.0_s));
  EXPECT_NEAR(named_time("hierarchical", all_reduce, rails, 1.0_GB).value(), 8.58e-3, 5e-6);
  EXPECT_NEAR(named_time("hierarchical-pipelined", all_reduce, rails, 1.0_GB).value(), 4.69e-3,
              5e-6);
  EXPECT_NEAR(named_time("ring", all_reduce, rails, 1.0_GB).value(), 4.96e-3, 5e-6);
  const GroupLinks one_nic = ring(over_domains(8, 16, 50.0_GBps / 8, 0.0_s));
  EXPECT_NEAR(named_time("ring", all_reduce, one_nic, 1.0_GB).value(), 39.7e-3, 5e-5);
}

TEST(GoldenCollectives, LatencyStepsOfEightBySixteen) {
  // Messages without bytes: a step inside a domain costs 1 s, a step across 1000 s.
  GroupLinks links = over_domains(8, 16, 50.0_GBps, 1000.0_s);
  links.inside_latency = 1.0_s;
  EXPECT_EQ(named_time("hierarchical", all_reduce, links, Bytes(0)), Seconds(14 + 30 * 1000));
  links.inside_latency = links.across_latency;
  EXPECT_EQ(named_time("ring", all_reduce, links, Bytes(0)), Seconds(254 * 1000));
  EXPECT_EQ(named_time("double-binary-tree", all_reduce, links, Bytes(0)), Seconds(14 * 1000));
}

// ---- handbook §6's table ------------------------------------------------------------------------

struct TableRow {
  CollectiveOperation operation;
  const char* name;
  std::function<double(double n, double log, double a, double s, double b)> time;
};

std::vector<TableRow> handbook_table() {
  const auto ring = [](double n, double, double a, double s, double b) {
    return (n - 1) * a + (n - 1) / n * s / b;
  };
  const auto logarithmic = [](double n, double log, double a, double s, double b) {
    return log * a + (n - 1) / n * s / b;
  };
  const auto whole_each_round = [](double, double log, double a, double s, double b) {
    return log * (a + s / b);
  };
  return {
      {all_reduce, "ring",
       [](double n, double, double a, double s, double b) {
         return 2 * (n - 1) * a + 2 * (n - 1) / n * s / b;
       }},
      {all_reduce, "recursive-halving-doubling",
       [](double n, double log, double a, double s, double b) {
         return 2 * log * a + 2 * (n - 1) / n * s / b;
       }},
      {all_reduce, "recursive-doubling", whole_each_round},
      {all_reduce, "double-binary-tree",
       [](double, double log, double a, double s, double b) {  // chunks of 512 KiB
         return 2 * log * a + 2 * s / b * (1 + (log - 1) * std::min(1.0, 524288 / s));
       }},
      {all_gather, "ring", ring},
      {all_gather, "recursive-doubling", logarithmic},
      {reduce_scatter, "ring", ring},
      {reduce_scatter, "recursive-halving", logarithmic},
      {broadcast, "binomial", whole_each_round},
      {broadcast, "scatter-all-gather",
       [](double n, double log, double a, double s, double b) {
         return (log + n - 1) * a + 2 * (n - 1) / n * s / b;
       }},
      {all_to_all, "pairwise", ring},
      {send, "direct", [](double, double, double a, double s, double b) { return a + s / b; }},
  };
}

TEST(Collectives, EqualTheHandbooksTableInOneDomain) {
  for (const TableRow& row : handbook_table()) {
    for (const int n : {2, 3, 6, 8, 72}) {
      const GroupLinks links = one_domain(n, 450.0_GBps, 3.0_us);
      const double expected = row.time(n, std::ceil(std::log2(n)), 3e-6, 1e8, 450e9);
      EXPECT_NEAR(named_time(row.name, row.operation, links, Bytes(1e8)).value(), expected,
                  1e-12 * expected)
          << row.name << " over " << n;
    }
  }
}

// NCCL's tuner (src/graph/tuning.cc, commit b647562) computes (nsteps − nInterSteps)·intraLat +
// nInterSteps·interLat with nsteps = n − 1 and nInterSteps = M − 1 for an all-gather or
// reduce-scatter. With Hopper's 3.4 us for NVLink and 14 us for the network, 8 × 16 ranks take
// 112·3.4 + 15·14 us. An all-reduce takes both of them.
TEST(Collectives, ARingHasTheLatencyOfItsHops) {
  GroupLinks links = over_domains(8, 16, 50.0_GBps, 14.0_us);
  links.inside_latency = 3.4_us;
  const auto latency = [&](CollectiveOperation operation) {
    return named_time("ring", operation, links, Bytes(0)).value();
  };
  EXPECT_NEAR(latency(all_gather), 590.8e-6, 1e-12);
  EXPECT_NEAR(latency(reduce_scatter), 590.8e-6, 1e-12);
  EXPECT_NEAR(latency(all_reduce), 1181.6e-6, 1e-12);
  // The ring comes after a scatter of four rounds across and three inside.
  EXPECT_NEAR(named_time("scatter-all-gather", broadcast, links, Bytes(0)).value(),
              590.8e-6 + 4 * 14e-6 + 3 * 3.4e-6, 1e-12);
}

// All members pass a message on at once. It takes 3 µs + 90 MB at 450 GB/s inside a domain, and 12
// µs + 90 MB at 25 GB/s out of it. With links of 10 GB/s inside, those are slower.
TEST(Collectives, ASendLastsAsLongAsTheSlowestBetweenNeighbours) {
  GroupLinks links = over_domains(2, 2, 10.0_GBps, 12.0_us);
  links.passing = 25.0_GBps;
  const auto sent = [&] {
    return named_time("direct", CollectiveOperation::send, links, Bytes(90e6)).value();
  };
  EXPECT_NEAR(sent(), 12e-6 + 90e6 / 25e9, 1e-12);
  links.inside_pair = 10.0_GBps;
  EXPECT_NEAR(sent(), 3e-6 + 90e6 / 10e9, 1e-12);
}

TEST(Collectives, EqualTheHandbooksTableWithOneMemberADomain) {
  for (const TableRow& row : handbook_table()) {
    for (const int n : {2, 5, 16, 2048}) {
      const GroupLinks links = over_domains(1, n, 25.0_GBps, 12.0_us);
      const double expected = row.time(n, std::ceil(std::log2(n)), 12e-6, 1e8, 25e9);
      EXPECT_NEAR(named_time(row.name, row.operation, links, Bytes(1e8)).value(), expected,
                  1e-12 * expected)
          << row.name << " over " << n;
    }
  }
}

TEST(Collectives, InNetworkEqualTheHandbooksTable) {
  // NVLS all-reduces in 2α + (n+1)/n·S/B at B = 450/1.6 GB/s; it gathers and scatters in α +
  // (n−1)/n·S/B.
  const GroupLinks links = one_domain(8, 450.0_GBps, 3.0_us);
  const double moved = 1e9 / (450e9 / 1.6);
  EXPECT_NEAR(named_time("nvls", all_reduce, links, 1.0_GB).value(), 6e-6 + 9.0 / 8 * moved, 1e-12);
  EXPECT_NEAR(named_time("nvls", all_gather, links, 1.0_GB).value(), 3e-6 + 7.0 / 8 * moved, 1e-12);
  EXPECT_NEAR(named_time("nvls", reduce_scatter, links, 1.0_GB).value(), 3e-6 + 7.0 / 8 * moved,
              1e-12);
  const GroupLinks fabric = over_domains(1, 16, 50.0_GBps, 10.0_us);
  EXPECT_NEAR(named_time("sharp", all_reduce, fabric, 1.0_GB).value(), 20e-6 + 20e-3, 1e-12);
}

TEST(Collectives, HierarchicalAllToAllIsTheNodesThenTheRails) {
  // 7·3 µs + 7/8·S/450 + 15·10 µs + 15/16·S/50, S = 1 GB.
  const GroupLinks links = over_domains(8, 16, 50.0_GBps, 10.0_us);
  EXPECT_NEAR(named_time("hierarchical", all_to_all, links, 1.0_GB).value(),
              21e-6 + 7.0 / 8 / 450 + 150e-6 + 15.0 / 16 / 50, 1e-12);
}

TEST(Collectives, ThePipelineHasNothingToOverlapInOneChunk) {
  const GroupLinks links = over_domains(8, 16, 50.0_GBps, 10.0_us);
  const Bytes chunk(512 * 1024);
  EXPECT_NEAR(named_time("hierarchical-pipelined", all_reduce, links, chunk).value(),
              named_time("hierarchical", all_reduce, links, chunk).value(), 1e-15);
}

// 128 MiB over 2 × 4 devices with PCIe of 32 GB/s and 25 GB/s of a NIC each. A device's PCIe link
// carries 2·7/8 of the bytes, except for the first chunk of 512 KiB, which crosses PCIe and then
// the NIC with nothing beside it.
TEST(Collectives, ThePhasesOfAPipelineShareOneLink) {
  GroupLinks links = over_domains(4, 2, 25.0_GBps, 0.0_s);
  links.inside = links.inside_pair = 32.0_GBps;
  links.inside_latency = 0.0_s;
  links.one_link = true;
  const double s = 134217728, chunk = 524288;
  const double expected = 1.75 * (s - chunk) / 32e9 + 1.5 * chunk / 32e9 + 0.25 * chunk / 25e9;
  EXPECT_NEAR(named_time("hierarchical-pipelined", all_reduce, links, Bytes(s)).value(), expected,
              1e-12);
  // Over both trees, the first member receives S from its own node and S from the other one.
  const double filling = 2 * chunk;
  EXPECT_NEAR(named_time("double-binary-tree", all_reduce, links, Bytes(s)).value(),
              4 * (s + filling) / 32e9, 1e-12);
}

TEST(Collectives, NvlsNeedsASwitchAndOneDomain) {
  const auto* nvls = find_collective_algorithm(all_reduce, "nvls");
  ASSERT_NE(nvls, nullptr);
  GroupLinks mesh = one_domain(8, 140.0_GBps, 3.0_us);
  EXPECT_TRUE(nvls->applies(mesh));
  mesh.switched = false;
  EXPECT_FALSE(nvls->applies(mesh));
  EXPECT_FALSE(nvls->applies(over_domains(8, 2, 50.0_GBps, 10.0_us)));
}

// ---- round by round over explicit pairs ---------------------------------------------------------

// The time of a round in which rank i exchanges `bytes` with rank i xor `distance`: that of its
// slowest pair.
double round_time(const GroupLinks& links, int distance, double bytes) {
  double slowest = 0;
  for (int rank = 0; rank < links.size; ++rank) {
    const int partner = rank ^ distance;
    const bool inside = rank / links.ranks_per_domain == partner / links.ranks_per_domain;
    const double latency = (inside ? links.inside_latency : links.across_latency).value();
    const double rate = (inside ? links.inside_pair : links.across_all_to_all).value();
    slowest = std::max(slowest, latency + bytes / rate);
  }
  return slowest;
}

class RoundsOverDomains : public testing::TestWithParam<GroupLinks> {};

TEST_P(RoundsOverDomains, RecursiveDoublingGathersFarPartnersFirst) {
  const GroupLinks links = GetParam();
  double time = 0;
  double held = 1e9 / links.size;
  for (int distance = links.size / 2; distance >= 1; distance /= 2, held *= 2) {
    time += round_time(links, distance, held);
  }
  const auto same = [&](const char* name, CollectiveOperation operation, double factor) {
    EXPECT_NEAR(named_time(name, operation, links, 1.0_GB).value(), factor * time, 1e-12 * time);
  };
  same("recursive-doubling", all_gather, 1);
  same("recursive-halving", reduce_scatter, 1);  // the mirror image
  same("recursive-halving-doubling", all_reduce, 2);
}

TEST_P(RoundsOverDomains, RecursiveDoublingReducesTheWholeTensorEveryRound) {
  const GroupLinks links = GetParam();
  double time = 0;
  for (int distance = 1; distance < links.size; distance *= 2) {
    time += round_time(links, distance, 1e9);
  }
  EXPECT_NEAR(named_time("recursive-doubling", all_reduce, links, 1.0_GB).value(), time,
              1e-12 * time);
}

TEST_P(RoundsOverDomains, PairwiseMeetsEveryPartnerOnce) {
  const GroupLinks links = GetParam();
  double time = 0;
  for (int partner = 1; partner < links.size; ++partner) {
    time += round_time(links, partner, 1e9 / links.size);
  }
  EXPECT_NEAR(named_time("pairwise", all_to_all, links, 1.0_GB).value(), time, 1e-12 * time);
}

INSTANTIATE_TEST_SUITE_P(Groups, RoundsOverDomains,
                         testing::Values(one_domain(8, 450.0_GBps, 3.0_us),
                                         over_domains(8, 16, 50.0_GBps, 10.0_us),
                                         over_domains(2, 4, 25.0_GBps, 12.0_us),
                                         over_domains(1, 64, 50.0_GBps, 10.0_us)));

}  // namespace
}  // namespace trainyard
