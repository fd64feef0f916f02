// The hierarchical all-reduce, pipelined: one chunk crosses the domains while the next one is
// reduced inside (NCCL's trees over nodes). The slower of the two phases sets the pace; where a
// device does both over one link, that link carries the bytes of both.
#include <algorithm>
#include <cmath>

#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// 2(r−1)α_i + 2(M−1)α_x + inside(chunk) + across(chunk) + max(inside, across)(S − chunk), with
// inside(x) = 2(r−1)/r·x/B_i and across(x) = 2(M−1)/M·(x/r)/B_x. Where both use one link, the
// maximum has (2(r−1)/r·x + 2(M−1)/M·x/r)/B_i = 2(n−1)/n·x/B_i in place of inside(x).
Seconds time(const GroupLinks& links, Bytes message) {
  const double n = links.size;
  const double r = links.ranks_per_domain;
  const double m = links.domains;
  const auto inside = [&](Bytes bytes) { return 2 * (r - 1) / r * bytes / links.inside; };
  const auto across = [&](Bytes bytes) { return 2 * (m - 1) / m * bytes / r / links.across; };
  const Bytes first = std::min(message, kPipelineChunk);
  const Bytes rest = message - first;
  const Seconds own = links.one_link ? 2 * (n - 1) / n * rest / links.inside : inside(rest);
  return 2 * (r - 1) * links.inside_latency + 2 * (m - 1) * links.across_latency + inside(first) +
         links.crowding.lanes * across(first) + std::max(own, across(rest));
}

// The first chunk alone inside, then pairs of chunks side by side, then the last one across.
TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const int r = links.ranks_per_domain;
  const int m = links.domains;
  const Bytes first = std::min(message, kPipelineChunk);
  TransferRounds rounds = {inside_ring_round(links, 2 * (r - 1), first / r),
                           across_ring_round(links, 2 * (m - 1), first / r / m)};
  const int pairs = static_cast<int>(std::ceil((message - first) / kPipelineChunk));
  if (pairs == 0) return rounds;
  const Bytes chunk = (message - first) / pairs;
  TransferRound both = inside_ring_round(links, pairs, 2.0 * (r - 1) / r * chunk);
  const TransferRound across = across_ring_round(links, pairs, 2.0 * (m - 1) / m * chunk / r);
  both.latency = {};
  both.transfers.insert(both.transfers.end(), across.transfers.begin(), across.transfers.end());
  rounds.insert(rounds.begin() + 1, both);
  return rounds;
}

}  // namespace

extern const CollectiveAlgorithm all_reduce_hierarchical_pipelined = {
    .name = "hierarchical-pipelined",
    .operation = CollectiveOperation::all_reduce,
    .applies = spans_domains,
    .time = time,
    .rounds = rounds,
};

}  // namespace trainyard::collectives
