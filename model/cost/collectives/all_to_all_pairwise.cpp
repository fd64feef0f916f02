// All-to-all in rounds of pairs (Thakur et al. 2005): r − 1 rounds inside the domain, the others
// across.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// (n−1)α + (n−1)/n · S/B
Seconds time(const GroupLinks& links, Bytes message) {
  const int inside = links.ranks_per_domain - 1;
  const int across = links.size - links.ranks_per_domain;
  const Bytes part = message / links.size;
  return inside * links.inside_latency + across * links.across_latency +
         transfer_time(inside * part, links.inside) +
         transfer_time(across * part, links.across_all_to_all);
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const Bytes part = message / links.size;
  TransferRounds rounds;
  for (int place = 1; place < links.ranks_per_domain; ++place) {
    rounds.push_back(inside_shift(links, place, part));
    rounds.back().way = Way::all_links;
  }
  for (int domain = 1; domain < links.domains; ++domain) {
    for (int place = 0; place < links.ranks_per_domain; ++place) {
      rounds.push_back(across_shift(links, domain, place, part));
    }
  }
  return rounds;
}

}  // namespace

extern const CollectiveAlgorithm all_to_all_pairwise = {
    .name = "pairwise",
    .operation = CollectiveOperation::all_to_all,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
    .pattern = TrafficPattern::all_to_all,
};

}  // namespace trainyard::collectives
