// All-reduce by recursive doubling (Thakur et al. 2005): the whole tensor in every round.
#include "model/cost/collective.h"
#include "model/cost/collective_steps.h"

namespace trainyard::collectives {
namespace {

// ⌈log₂n⌉(α + S/B)
Seconds time(const GroupLinks& links, Bytes message) {
  return logarithmic_latency(links) +
         transfer(log2_ceil(links.ranks_per_domain) * message, links.inside_pair) +
         transfer(log2_ceil(links.domains) * message, links.across_all_to_all);
}

}  // namespace

extern const CollectiveAlgorithm all_reduce_recursive_doubling = {
    .name = "recursive-doubling",
    .operation = CollectiveOperation::all_reduce,
    .applies = applies_always,
    .time = time,
};

}  // namespace trainyard::collectives
