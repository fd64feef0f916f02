// A slow NIC or switch, or a degraded cable: links of the topology below their bandwidth.
#pragma once

#include <optional>

namespace trainyard {

enum class VertexKind;  // model/cluster/topology.h

// A device, NIC or switch of the topology.
struct TopologyPlace {
  VertexKind kind{};
  int index = 0;  // within its kind
};

// All links of a place, or those to one other, at `rate` times their bandwidth.
struct DegradedLinks {
  TopologyPlace of;
  std::optional<TopologyPlace> to;  // none: all
  double rate = 1;
};

}  // namespace trainyard
