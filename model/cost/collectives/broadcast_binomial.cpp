// Broadcast down a binomial tree (Thakur et al. 2005), across the domains first.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// ⌈log₂n⌉(α + S/B)
Seconds time(const GroupLinks& links, Bytes message) {
  return logarithmic_latency(links) +
         transfer_time(log2_ceil(links.ranks_per_domain) * message, links.inside_pair) +
         links.crowding.binomial *
             transfer_time(log2_ceil(links.domains) * message, across_from_first(links));
}

// All that have the message send it on: first across the domains, between their first members, then
// inside all domains.
TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const int r = links.ranks_per_domain;
  TransferRounds rounds;
  for (const TreeHops& hops : binomial_hops(links.domains)) {
    rounds.push_back({.latency = links.across_latency});
    for (const TreeHop& hop : hops) {
      rounds.back().transfers.push_back({hop.from * r, hop.to * r, message});
    }
  }
  for (const TreeHops& hops : binomial_hops(r)) {
    rounds.push_back({.latency = links.inside_latency});
    for (int first = 0; first < links.size; first += r) {
      for (const TreeHop& hop : hops) {
        rounds.back().transfers.push_back({first + hop.from, first + hop.to, message});
      }
    }
  }
  return rounds;
}

}  // namespace

extern const CollectiveAlgorithm broadcast_binomial = {
    .name = "binomial",
    .operation = CollectiveOperation::broadcast,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
};

}  // namespace trainyard::collectives
