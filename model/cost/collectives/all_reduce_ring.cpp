// All-reduce around a ring (Patarasuk & Yuan 2009): reduce-scatter, then all-gather.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// 2(n−1)α + 2(n−1)/n · S/B; over domains 2(n−M)α_i + 2(M−1)α_x
Seconds time(const GroupLinks& links, Bytes message) {
  const RingPace pace = ring_pace(links);
  const int steps = 2 * (links.size - 1);
  return steps * (pace.latency + message / links.size / pace.bandwidth);
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  return {ring_round(links, 2 * (links.size - 1), message / links.size)};
}

}  // namespace

extern const CollectiveAlgorithm all_reduce_ring = {
    .name = "ring",
    .operation = CollectiveOperation::all_reduce,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
};

}  // namespace trainyard::collectives
