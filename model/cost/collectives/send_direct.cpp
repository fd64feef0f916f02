// One message between neighbours of the group, over the sender's own share of the NICs where a
// neighbour is in another domain.
#include "model/cost/collective.h"
#include "model/cost/collective_steps.h"

namespace trainyard::collectives {
namespace {

// α + S/B
Seconds time(const GroupLinks& links, Bytes message) {
  if (links.domains == 1) return links.inside_latency + message / links.inside_pair;
  return links.across_latency + message / links.across;
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const bool inside = links.domains == 1;
  return {{.latency = inside ? links.inside_latency : links.across_latency,
           .transfers = {{0, 1, message}}}};
}

}  // namespace

extern const CollectiveAlgorithm send_direct = {
    .name = "direct",
    .operation = CollectiveOperation::send,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
};

}  // namespace trainyard::collectives
