// All-reduce over two complementary binary trees (Sanders, Speck & Träff 2009; NCCL's tree): each
// carries half of the tensor up and down, in chunks that follow each other.
#include <algorithm>

#include "model/cost/collective.h"
#include "model/cost/collective_steps.h"

namespace trainyard::collectives {
namespace {

// 2⌈log₂n⌉α + 2·S/B·(1 + fill), fill = (⌈log₂n⌉ − 1)·chunk/S: the first chunk passes every level
// before the last ones can.
Seconds time(const GroupLinks& links, Bytes message) {
  const Bytes filling = (log2_ceil(links.size) - 1) * std::min(message, kPipelineChunk);
  return 2 * logarithmic_latency(links) +
         2 * (message + filling) / slowest_ring_hop(links).bandwidth;
}

}  // namespace

extern const CollectiveAlgorithm all_reduce_double_binary_tree = {
    .name = "double-binary-tree",
    .operation = CollectiveOperation::all_reduce,
    .applies = applies_always,
    .time = time,
};

}  // namespace trainyard::collectives
