// One message from every member to the next one, over the sender's own NICs where that is in
// another domain. The time is that of the slowest message.
#include <algorithm>

#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// α + S/B
Seconds time(const GroupLinks& links, Bytes message) {
  const Seconds inside = links.inside_latency + transfer_time(message, links.inside_pair);
  if (links.domains == 1) return inside;
  const Seconds across = links.across_latency + transfer_time(message, links.passing);
  return links.ranks_per_domain == 1 ? across : std::max(inside, across);
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
    .pattern = TrafficPattern::passing,
};

}  // namespace trainyard::collectives
