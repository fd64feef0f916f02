// All-gather by recursive doubling (Thakur et al. 2005), partners in other domains first, while
// messages are small. NCCL has a logarithmic all-gather (PAT) only for one rank a node; where a
// domain has several members, its tuner picks between ring, NVLS and CollNet
// (src/graph/tuning.cc), so there this algorithm runs only by name.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// ⌈log₂n⌉α + (n−1)/n · S/B
Seconds time(const GroupLinks& links, Bytes message) { return recursive_time(links, message); }

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  return recursive_rounds(links, message);
}

}  // namespace

extern const CollectiveAlgorithm all_gather_recursive_doubling = {
    .name = "recursive-doubling",
    .operation = CollectiveOperation::all_gather,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
    .pattern = TrafficPattern::halving,
    .leaving = recursive_leaving,
    .crowded = &Crowding::halving,
    .only_by_name = shares_domains,
};

}  // namespace trainyard::collectives
