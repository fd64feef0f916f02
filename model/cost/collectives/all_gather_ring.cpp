// All-gather around a ring.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// (n−1)α + (n−1)/n · S/B; over domains (n−M)α_i + (M−1)α_x
Seconds time(const GroupLinks& links, Bytes message) {
  const RingPace pace = ring_pace(links);
  return (links.size - 1) * (pace.latency + message / links.size / pace.bandwidth);
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  return {ring_round(links, links.size - 1, message / links.size)};
}

}  // namespace

extern const CollectiveAlgorithm all_gather_ring = {
    .name = "ring",
    .operation = CollectiveOperation::all_gather,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
};

}  // namespace trainyard::collectives
