// Reduce-scatter by recursive halving (Thakur et al. 2005), far partners last, when messages are
// small.
#include "model/cost/collective.h"
#include "model/cost/collective_steps.h"

namespace trainyard::collectives {
namespace {

// ⌈log₂n⌉α + (n−1)/n · S/B
Seconds time(const GroupLinks& links, Bytes message) { return recursive_time(links, message); }

}  // namespace

extern const CollectiveAlgorithm reduce_scatter_recursive_halving = {
    .name = "recursive-halving",
    .operation = CollectiveOperation::reduce_scatter,
    .applies = applies_always,
    .time = time,
};

}  // namespace trainyard::collectives
