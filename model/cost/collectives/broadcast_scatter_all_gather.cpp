// Broadcast as a binomial scatter and a ring all-gather (Thakur et al. 2005; van de Geijn).
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// Binomial scatter: each holder sends on half of what it holds, across the domains first.
Seconds scatter(const GroupLinks& links, Bytes message) {
  const double r = links.ranks_per_domain;
  const double m = links.domains;
  return logarithmic_latency(links) +
         links.crowding.scatter * transfer_time((m - 1) / m * message, across_from_first(links)) +
         transfer_time((r - 1) / r * message / m, links.inside_pair);
}

// (⌈log₂n⌉ + n−1)α + 2(n−1)/n · S/B
Seconds time(const GroupLinks& links, Bytes message) {
  const RingPace pace = ring_pace(links);
  return scatter(links, message) +
         (links.size - 1) * (pace.latency + message / links.size / pace.bandwidth);
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const int r = links.ranks_per_domain;
  TransferRounds rounds;
  for (const TreeHops& hops : scatter_hops(links.domains)) {
    rounds.push_back({.latency = links.across_latency});
    for (const TreeHop& hop : hops) {
      rounds.back().transfers.push_back({hop.from * r, hop.to * r, hop.share * message});
    }
  }
  for (const TreeHops& hops : scatter_hops(r)) {
    rounds.push_back({.latency = links.inside_latency});
    for (int first = 0; first < links.size; first += r) {
      for (const TreeHop& hop : hops) {
        rounds.back().transfers.push_back(
            {first + hop.from, first + hop.to, hop.share * message / links.domains});
      }
    }
  }
  rounds.push_back(ring_round(links, links.size - 1, message / links.size));
  return rounds;
}

}  // namespace

extern const CollectiveAlgorithm broadcast_scatter_all_gather = {
    .name = "scatter-all-gather",
    .operation = CollectiveOperation::broadcast,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
};

}  // namespace trainyard::collectives
