// All-reduce over two complementary binary trees (Sanders, Speck & Träff 2009; NCCL's tree): each
// carries half of the tensor up and down, in chunks that follow each other.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// Bandwidth of the slowest hop, both trees together: inside a domain over all links of a member;
// between domains over the links of all their members. The first member of the first domain
// receives S from its own domain and S from others; where both come over one link, each has half of
// it.
BytesPerSecond slowest_hop(const GroupLinks& links) {
  if (links.domains == 1) return links.inside;
  const BytesPerSecond across = links.across * links.ranks_per_domain / links.crowding.trees;
  if (links.ranks_per_domain == 1) return across;
  return std::min(links.one_link ? links.inside / 2 : links.inside, across);
}

// 2⌈log₂n⌉α + 2·S/B·(1 + fill), fill = (⌈log₂n⌉ − 1)·chunk/S: the time until the first chunk has
// come to the last level.
Seconds time(const GroupLinks& links, Bytes message) {
  const Bytes filling = (log2_ceil(links.size) - 1) * std::min(message, kPipelineChunk);
  return 2 * logarithmic_latency(links) + 2 * (message + filling) / slowest_hop(links);
}

// The hops of both trees over `count` members, `stride` apart from `first`.
void add_trees(std::vector<Transfer>& transfers, int first, int count, int stride, Bytes bytes) {
  for (const TreeHop& hop : double_tree_hops(count)) {
    transfers.push_back({first + hop.from * stride, first + hop.to * stride, hop.share * bytes});
  }
}

// Up, then down. All hops pass on chunks at the same time, those that fill the trees included, so α
// is paid once for each level.
TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const int r = links.ranks_per_domain;
  const Bytes chunk = std::min(message, kPipelineChunk);
  const Bytes passed = message + (log2_ceil(links.size) - 1) * chunk;
  const int chunks = std::max(1, static_cast<int>(std::ceil(passed / kPipelineChunk)));
  TransferRound up{.latency = logarithmic_latency(links), .way = Way::all_links};
  for (int domain = 0; domain < links.domains; ++domain) {
    add_trees(up.transfers, domain * r, r, 1, passed / chunks);
  }
  add_trees(up.transfers, 0, links.domains, r, passed / chunks);
  TransferRound down = up;
  for (Transfer& hop : down.transfers) std::swap(hop.from, hop.to);
  TransferRounds rounds = {up, down};
  if (chunks == 1) return rounds;
  TransferRound rest_up = up;
  TransferRound rest_down = down;
  for (TransferRound* rest : {&rest_up, &rest_down}) {
    rest->latency = {};
    rest->repeats = chunks - 1;
  }
  return {up, rest_up, down, rest_down};
}

}  // namespace

extern const CollectiveAlgorithm all_reduce_double_binary_tree = {
    .name = "double-binary-tree",
    .operation = CollectiveOperation::all_reduce,
    .applies = applies_always,
    .time = time,
    .rounds = rounds,
    .pattern = TrafficPattern::trees,
};

}  // namespace trainyard::collectives
