// Broadcast as a binomial scatter and a ring all-gather (Thakur et al. 2005; van de Geijn).
#include <algorithm>
#include <vector>

#include "model/cost/collective.h"
#include "model/cost/collective_steps.h"

namespace trainyard::collectives {
namespace {

// The root hands out halves of what is left, across the domains first.
Seconds scatter(const GroupLinks& links, Bytes message) {
  const double r = links.ranks_per_domain;
  const double m = links.domains;
  return logarithmic_latency(links) + transfer((m - 1) / m * message, links.across) +
         transfer((r - 1) / r * message / m, links.inside_pair);
}

// (⌈log₂n⌉ + n−1)α + 2(n−1)/n · S/B
Seconds time(const GroupLinks& links, Bytes message) {
  const Hop hop = slowest_ring_hop(links);
  return scatter(links, message) +
         (links.size - 1) * (hop.latency + message / links.size / hop.bandwidth);
}

// Members `stride` apart hand out halves of the blocks they have, down to one block each.
struct Holder {
  int member = 0;
  int blocks = 1;
};
void add_scatter(TransferRounds& rounds, std::vector<Holder> holders, int stride, Bytes block,
                 Seconds latency) {
  while (std::any_of(holders.begin(), holders.end(), [](Holder h) { return h.blocks > 1; })) {
    rounds.push_back({.latency = latency});
    const std::size_t count = holders.size();
    for (std::size_t i = 0; i < count; ++i) {
      const int given = holders[i].blocks / 2;
      if (given == 0) continue;
      holders[i].blocks -= given;
      const Holder next = {holders[i].member + holders[i].blocks * stride, given};
      rounds.back().transfers.push_back({holders[i].member, next.member, given * block});
      holders.push_back(next);
    }
  }
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const int r = links.ranks_per_domain;
  const int m = links.domains;
  TransferRounds rounds;
  add_scatter(rounds, {{0, m}}, r, message / m, links.across_latency);
  std::vector<Holder> first_members;
  first_members.reserve(static_cast<std::size_t>(m));
  for (int domain = 0; domain < m; ++domain) first_members.push_back({domain * r, r});
  add_scatter(rounds, first_members, 1, message / links.size, links.inside_latency);
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
