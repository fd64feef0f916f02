// All-reduce in two levels: reduce-scatter inside each domain, all-reduce of every member's part
// around a ring across the domains, all-gather inside. The three phases follow each other.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// 2(r−1)α_i + 2(r−1)/r·S/B_i + 2(M−1)α_x + 2(M−1)/M·(S/r)/B_x
Seconds time(const GroupLinks& links, Bytes message) {
  const int r = links.ranks_per_domain;
  const int m = links.domains;
  const Bytes part = message / r;
  return 2 * (r - 1) * (links.inside_latency + part / links.inside) +
         2 * (m - 1) * (links.across_latency + links.crowding.lanes * part / m / links.across);
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const int r = links.ranks_per_domain;
  const int m = links.domains;
  const Bytes part = message / r;
  return {inside_ring_round(links, r - 1, part), across_ring_round(links, 2 * (m - 1), part / m),
          inside_ring_round(links, r - 1, part)};
}

// 2(M−1)/M · S/r
Bytes leaving(const GroupLinks& links, Bytes message) {
  const double m = links.domains;
  return 2 * (m - 1) / m * message / links.ranks_per_domain;
}

}  // namespace

extern const CollectiveAlgorithm all_reduce_hierarchical = {
    .name = "hierarchical",
    .operation = CollectiveOperation::all_reduce,
    .applies = spans_domains,
    .time = time,
    .rounds = rounds,
    .leaving = leaving,
    .crowded = &Crowding::lanes,
};

}  // namespace trainyard::collectives
