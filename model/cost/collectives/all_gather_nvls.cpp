// All-gather in the NVLink switch (NVLS): each device writes its part once, to all of them.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// α + (n−1)/n · S/B
Seconds time(const GroupLinks& links, Bytes message) {
  const double n = links.size;
  return links.inside_latency + (n - 1) / n * message / multicast_bandwidth(links);
}

TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const double n = links.size;
  return {switch_round(links, Way::switch_inside, (n - 1) / n * message)};
}

}  // namespace

extern const CollectiveAlgorithm all_gather_nvls = {
    .name = "nvls",
    .operation = CollectiveOperation::all_gather,
    .applies = has_multicast_switch,
    .time = time,
    .rounds = rounds,
};

}  // namespace trainyard::collectives
