// Reduce-scatter by recursive halving (Thakur et al. 2005), partners in other domains last, when
// messages are small. It runs only by name where its mirror image does
// (all_gather_recursive_doubling.cpp).
#include <algorithm>

#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// ⌈log₂n⌉α + (n−1)/n · S/B
Seconds time(const GroupLinks& links, Bytes message) { return recursive_time(links, message); }

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  TransferRounds rounds = recursive_rounds(links, message);
  std::reverse(rounds.begin(), rounds.end());
  return rounds;
}

}  // namespace

extern const CollectiveAlgorithm reduce_scatter_recursive_halving = {
    .name = "recursive-halving",
    .operation = CollectiveOperation::reduce_scatter,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
    .pattern = TrafficPattern::halving,
    .leaving = recursive_leaving,
    .crowded = &Crowding::halving,
    .only_by_name = shares_domains,
};

}  // namespace trainyard::collectives
