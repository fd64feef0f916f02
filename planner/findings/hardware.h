// Makes jobs whose hardware is better by a factor, one figure at a time, for remedies and marginal
// values.
#pragma once

#include <string_view>

#include "model/job.h"

namespace trainyard {

void raise_flops(Job& job, double factor);
void raise_memory_capacity(Job& job, double factor);
void raise_memory_bandwidth(Job& job, double factor);
// Bandwidth of a device's link to the memory of its host.
void raise_host_bandwidth(Job& job, double factor);
// Bandwidth of the hosts' own memory, where an offloaded optimizer is updated.
void raise_host_memory_bandwidth(Job& job, double factor);
// Bandwidth of a node's drives.
void raise_nvme_bandwidth(Job& job, double factor);
// Bandwidth inside the node; the fitted curves of collectives inside a domain change with it.
void raise_link_bandwidth(Job& job, double factor);
// Bandwidth of the NICs and of the links between switches.
void raise_network_bandwidth(Job& job, double factor);

struct HardwareChange {
  std::string_view name;
  void (*apply)(Job& job, double factor);
  bool of_links = false;  // false: the topology and its tiers stay as they are
};

// The job with one figure better.
PreparedJob changed(const PreparedJob& job, const HardwareChange& change, double factor);

}  // namespace trainyard
