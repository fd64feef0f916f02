// A measured machine as documents that a scenario can name: its node, which refers to a device
// document beside it, the fabric that connects such nodes, and the software stack that was
// measured.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/workload/stack.h"

namespace trainyard {

struct MeasuredNode {
  std::string name, source;
  std::string device;  // path of its document, relative to the node's
  int devices = 1;
  IntraNode intra;
  BytesPerSecond nic_bandwidth;  // of one NIC
  BytesPerSecond host_memory_bandwidth;
};
std::string node_document(const MeasuredNode& node);

struct MeasuredFabric {
  std::string name, source;
  InterNode inter;
  std::string figures;  // where its latency a step and attained share come from
};
std::string fabric_document(const MeasuredFabric& fabric);

// The origin of figures: pairs of key and text.
using FigureSources = std::vector<std::pair<std::string, std::string>>;
std::string measured_stack_document(const Stack& stack, const FigureSources& sources);

}  // namespace trainyard
