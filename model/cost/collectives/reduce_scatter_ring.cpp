// Reduce-scatter around a ring.
#include "model/cost/collective.h"
#include "model/cost/collective_steps.h"

namespace trainyard::collectives {
namespace {

// (n−1)α + (n−1)/n · S/B
Seconds time(const GroupLinks& links, Bytes message) {
  const Hop hop = slowest_ring_hop(links);
  return (links.size - 1) * (hop.latency + message / links.size / hop.bandwidth);
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  return {ring_round(links, links.size - 1, message / links.size)};
}

}  // namespace

extern const CollectiveAlgorithm reduce_scatter_ring = {
    .name = "ring",
    .operation = CollectiveOperation::reduce_scatter,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
};

}  // namespace trainyard::collectives
