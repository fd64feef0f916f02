// Time of a collective by the alpha–beta model, one algorithm a file in model/cost/collectives/
// (handbook §6: Thakur, Rabenseifner & Gropp 2005; Patarasuk & Yuan 2009; NCCL). The build
// generates `collective_algorithms()` from that folder.
//
// S is the tensor for all-reduce and broadcast, the whole (gathered) tensor for all-gather and
// reduce-scatter, what one rank holds to send for all-to-all, the message for send.
#pragma once

#include <span>
#include <string_view>

#include "model/cluster/device.h"
#include "model/cluster/group.h"
#include "model/units.h"

namespace trainyard {

struct CollectiveAlgorithm {
  std::string_view name;  // "ring", "recursive-doubling", …: unique within an operation
  CollectiveOperation operation;
  bool (*applies)(const GroupLinks& links);
  // Requires: applies(links), links.size > 1.
  Seconds (*time)(const GroupLinks& links, Bytes message);
};

std::span<const CollectiveAlgorithm* const> collective_algorithms();

// Which algorithm, and what is known of the device's own collectives inside a domain.
struct CollectiveChoice {
  std::string_view algorithm;               // empty: the fastest that applies
  std::span<const CollectiveCurve> curves;  // fitted curves inside a domain; may be empty
};

// 0 for one rank. A group inside one domain uses the device's fitted curve of that operation where
// there is one (between two fitted sizes: interpolated in (n−1)/n) and no algorithm is named.
Seconds collective_time(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                        const CollectiveChoice& choice);

// Bytes of bus bandwidth a second, as nccl-tests print it.
BytesPerSecond bus_bandwidth(CollectiveOperation operation, int ranks, Bytes message, Seconds time);

}  // namespace trainyard
