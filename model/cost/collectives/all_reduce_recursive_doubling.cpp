// All-reduce by recursive doubling (Thakur et al. 2005): the whole tensor in every round.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// ⌈log₂n⌉(α + S/B)
Seconds time(const GroupLinks& links, Bytes message) {
  return logarithmic_latency(links) +
         transfer_time(log2_ceil(links.ranks_per_domain) * message, links.inside_pair) +
         links.crowding.doubling *
             transfer_time(log2_ceil(links.domains) * message, links.across_all_to_all);
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  TransferRounds rounds;
  for (int far = 1; far < links.ranks_per_domain; far *= 2) {
    rounds.push_back(inside_shift(links, far, message));
  }
  for (int far = 1; far < links.domains; far *= 2) {
    rounds.push_back(across_shift(links, far, 0, message));
  }
  return rounds;
}

// ⌈log₂M⌉ · S
Bytes leaving(const GroupLinks& links, Bytes message) { return log2_ceil(links.domains) * message; }

}  // namespace

extern const CollectiveAlgorithm all_reduce_recursive_doubling = {
    .name = "recursive-doubling",
    .operation = CollectiveOperation::all_reduce,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
    .pattern = TrafficPattern::halving,
    .leaving = leaving,
    .crowded = &Crowding::doubling,
};

}  // namespace trainyard::collectives
