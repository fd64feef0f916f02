// All-to-all in two levels: inside each domain, a member's data goes to the member on the target's
// rail; then along the rails, in messages r times as large.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// (r−1)α_i + (r−1)/r·S/B_i + (M−1)α_x + (M−1)/M·S/B_x
Seconds time(const GroupLinks& links, Bytes message) {
  const int r = links.ranks_per_domain;
  const int m = links.domains;
  return (r - 1) * (links.inside_latency + message / r / links.inside) +
         (m - 1) * (links.across_latency + message / m / links.across_all_to_all);
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  TransferRounds rounds;
  for (int place = 1; place < links.ranks_per_domain; ++place) {
    rounds.push_back(inside_shift(links, place, message / links.ranks_per_domain));
    rounds.back().way = Way::all_links;
  }
  for (int domain = 1; domain < links.domains; ++domain) {
    rounds.push_back(across_shift(links, domain, 0, message / links.domains));
  }
  return rounds;
}

// (M−1)/M · S
Bytes leaving(const GroupLinks& links, Bytes message) {
  const double m = links.domains;
  return (m - 1) / m * message;
}

}  // namespace

extern const CollectiveAlgorithm all_to_all_hierarchical = {
    .name = "hierarchical",
    .operation = CollectiveOperation::all_to_all,
    .applies = spans_domains,
    .time = time,
    .rounds = rounds,
    .pattern = TrafficPattern::all_to_all,
    .leaving = leaving,
};

}  // namespace trainyard::collectives
