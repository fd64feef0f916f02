// All-reduce by recursive halving, then recursive doubling (Rabenseifner; Thakur et al. 2005). MPI
// and Gloo have it; NCCL has rings, trees, NVLS and CollNet (src/graph/tuning.cc).
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// 2⌈log₂n⌉α + 2(n−1)/n · S/B
Seconds time(const GroupLinks& links, Bytes message) { return 2 * recursive_time(links, message); }

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const TransferRounds gather = recursive_rounds(links, message);
  TransferRounds rounds(gather.rbegin(), gather.rend());
  rounds.insert(rounds.end(), gather.begin(), gather.end());
  return rounds;
}

// 2(n−r)/(n·r) · S
Bytes leaving(const GroupLinks& links, Bytes message) {
  return 2 * recursive_leaving(links, message);
}

}  // namespace

extern const CollectiveAlgorithm all_reduce_recursive_halving_doubling = {
    .name = "recursive-halving-doubling",
    .operation = CollectiveOperation::all_reduce,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
    .pattern = TrafficPattern::halving,
    .leaving = leaving,
    .crowded = &Crowding::halving,
    .only_by_name = applies_always,
};

}  // namespace trainyard::collectives
