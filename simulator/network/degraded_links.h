// Links of the topology below their bandwidth: a slow NIC or switch, or a degraded cable.
#pragma once

#include <optional>

namespace trainyard {

enum class VertexKind;  // model/cluster/topology.h

// A vertex of the topology: a device, NIC or switch.
struct TopologyPlace {
  VertexKind kind{};
  int index = 0;  // within its kind
};

// All links of a place, or only those to one other place, with `rate` times their bandwidth.
struct DegradedLinks {
  TopologyPlace of;
  std::optional<TopologyPlace> to;  // none: all links of `of`
  double rate = 1;
};

}  // namespace trainyard
