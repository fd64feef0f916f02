// Broadcast down a binomial tree (Thakur et al. 2005), across the domains first.
#include "model/cost/collective.h"
#include "model/cost/collective_steps.h"

namespace trainyard::collectives {
namespace {

// ⌈log₂n⌉(α + S/B)
Seconds time(const GroupLinks& links, Bytes message) {
  return logarithmic_latency(links) +
         transfer(log2_ceil(links.ranks_per_domain) * message, links.inside_pair) +
         transfer(log2_ceil(links.domains) * message, links.across);
}

// Who has it sends it on, across the domains from their first members, then inside all of them.
TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const int r = links.ranks_per_domain;
  TransferRounds rounds;
  for (int far = 1; far < links.domains; far *= 2) {
    rounds.push_back({.latency = links.across_latency});
    for (int domain = 0; domain < far && domain + far < links.domains; ++domain) {
      rounds.back().transfers.push_back({domain * r, (domain + far) * r, message});
    }
  }
  for (int far = 1; far < r; far *= 2) {
    rounds.push_back({.latency = links.inside_latency});
    for (int member = 0; member < links.size; ++member) {
      const int place = member % r;
      if (place < far && place + far < r) {
        rounds.back().transfers.push_back({member, member + far, message});
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
