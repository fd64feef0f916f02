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

}  // namespace

extern const CollectiveAlgorithm broadcast_binomial = {
    .name = "binomial",
    .operation = CollectiveOperation::broadcast,
    .applies = applies_always,
    .time = time,
};

}  // namespace trainyard::collectives
