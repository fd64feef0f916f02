// All-reduce in the switches of the fabric (SHARP). Links do not tell whether the fabric can, so it
// has to be asked for.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

bool crosses_fabric(const GroupLinks& links) { return links.domains > 1; }

// 2α + S/B, B of a member's NICs, or of the links between switches, where all members of a leaf
// have one sum.
Seconds time(const GroupLinks& links, Bytes message) {
  return 2 * links.across_latency + links.crowding.sums * message / links.across;
}

// Up while it is added, then down. Between switches the sum goes once each way, whatever hangs on
// them: from domain to domain, spread over the switches of a domain's members.
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
