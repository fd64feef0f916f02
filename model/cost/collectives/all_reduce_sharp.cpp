// All-reduce in the switches of the fabric (SHARP). The links do not tell whether the fabric can do
// that, so it runs only by name.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

bool crosses_fabric(const GroupLinks& links) { return links.domains > 1; }

// 2α + S/B, with B of a member's NICs or, if these are slower, of the links between switches, which
// carry one sum for all members of a leaf.
Seconds time(const GroupLinks& links, Bytes message) {
  return 2 * links.across_latency + links.crowding.sums * message / links.across;
}

// Up, where the switches add, then down. Between switches the sum goes once each way, however many
// members hang on them: from domain to domain, spread over the switches of a domain's members.
TransferRounds rounds(const GroupLinks& links, Bytes message) {
  TransferRound half = switch_round(links, Way::switch_across, message / 2);
  const TransferRound on = across_shift(links, 1, 0, message / 2 / links.ranks_per_domain);
  half.transfers.insert(half.transfers.end(), on.transfers.begin(), on.transfers.end());
  return {half, half};
}

}  // namespace

extern const CollectiveAlgorithm all_reduce_sharp = {
    .name = "sharp",
    .operation = CollectiveOperation::all_reduce,
    .applies = crosses_fabric,
    .time = time,
    .rounds = rounds,
    .only_by_name = applies_always,
};

}  // namespace trainyard::collectives
