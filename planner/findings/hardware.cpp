#include "planner/findings/hardware.h"

#include <utility>

namespace trainyard {

void raise_flops(Job& job, double factor) {
  for (FlopsPerSecond& peak : job.cluster.device.peak) {
    peak *= factor;
  }
  job.cluster.device.rates.sustained_clock *= factor;
}

void raise_memory_capacity(Job& job, double factor) { job.cluster.device.memory *= factor; }

void raise_memory_bandwidth(Job& job, double factor) {
  job.cluster.device.memory_bandwidth *= factor;
}

void raise_host_bandwidth(Job& job, double factor) { job.cluster.device.host_bandwidth *= factor; }

void raise_host_memory_bandwidth(Job& job, double factor) {
  job.cluster.host_memory_bandwidth *= factor;
}

void raise_nvme_bandwidth(Job& job, double factor) { job.cluster.nvme_bandwidth *= factor; }

void raise_link_bandwidth(Job& job, double factor) {
  job.cluster.device.link_bandwidth *= factor;
  job.cluster.intra.bandwidth *= factor;
  for (CollectiveCurve& curve : job.cluster.device.collectives) {
    curve.bandwidth *= factor;
    curve.root /= factor;
  }
}

void raise_network_bandwidth(Job& job, double factor) {
  InterNode& inter = job.cluster.inter;
  inter.bandwidth *= factor;
  inter.link_bandwidth *= factor;
  for (FabricLink& link : inter.links) {
    link.bandwidth *= factor;
  }
}

PreparedJob changed(const PreparedJob& job, const HardwareChange& change, double factor) {
  Job better = job.job;
  change.apply(better, factor);
  return change.of_links ? prepare(std::move(better)) : prepare(std::move(better), job.tiers);
}

}  // namespace trainyard
