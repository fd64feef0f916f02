// Which parts of the cluster a change of the hardware reaches, on fabrics whose links have their
// own figures.
#include "planner/findings/hardware.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/findings/explain.h"
#include "tests/model/cluster/clusters.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

BytesPerSecond ring_rate(const Cluster& cluster) {
  return group_links(tiers_of(cluster), {1, cluster.devices()}).across;
}

// A ring over NICs of 50 GB/s is limited by links of 10 GB/s between switches.
TEST(RaiseNetworkBandwidth, ReachesTheLinksBetweenSwitches) {
  constexpr BytesPerSecond kNarrow(10e9);
  for (const Cluster& cluster :
       {torus_cluster({8}, kNarrow), dragonfly_cluster(8, 4, 1, kNarrow), drawn_cluster(kNarrow)}) {
    Job job;
    job.cluster = cluster;
    raise_network_bandwidth(job, 1.1);
    EXPECT_NEAR(ring_rate(job.cluster) / ring_rate(cluster), 1.1, 1e-12)
        << static_cast<int>(cluster.inter.kind);
  }
}

TEST(RaiseNetworkBandwidth, ReachesTheNics) {
  Job job;
  job.cluster = torus_cluster({8}, BytesPerSecond(1e12));
  const BytesPerSecond before = ring_rate(job.cluster);
  raise_network_bandwidth(job, 1.1);
  EXPECT_NEAR(ring_rate(job.cluster) / before, 1.1, 1e-12);
}

// A tenth less of 33 µs: 33/1.1 = 30.
TEST(HardwareRemedies, LowerTheLatencyOfBothProtocols) {
  Job job = small_dense_job();
  job.cluster.inter.latency = Seconds(22e-6);
  job.cluster.inter.small_latency = Seconds(11e-6);
  Candidate plan;
  plan.estimate.step_time = Seconds(33e-6);
  const auto remedies = hardware_remedies(prepare(job), plan, [](const PreparedJob& j) {
    return [&inter = j.job.cluster.inter](const Plan&, Estimate& out) {
      out.step_time = inter.latency + inter.small_latency;
    };
  });
  const auto lower = std::find_if(remedies.begin(), remedies.end(), [](const Remedy& remedy) {
    return remedy.change == "10 % less network latency";
  });
  ASSERT_NE(lower, remedies.end());
  EXPECT_NEAR(lower->saved.value(), 3e-6, 1e-15);
}

}  // namespace
}  // namespace trainyard
