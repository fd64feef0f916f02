// All-reduce in the NVLink switch (NVLS): the switch adds up what the devices hold and writes the
// sum to all of them.
#include "model/cost/collective.h"
#include "model/cost/messages/collective_steps.h"

namespace trainyard::collectives {
namespace {

// 2α + (n+1)/n · S/B
Seconds time(const GroupLinks& links, Bytes message) {
  const double n = links.size;
  return 2 * links.inside_latency + (n + 1) / n * message / multicast_bandwidth(links);
}

// Up to the switch, which adds, then down.
TransferRounds rounds(const GroupLinks& links, Bytes message) {
  const double n = links.size;
  const Bytes half = (n + 1) / n * message / 2;
  return {switch_round(links, Way::switch_inside, half),
          switch_round(links, Way::switch_inside, half)};
}

}  // namespace

extern const CollectiveAlgorithm all_reduce_nvls = {
    .name = "nvls",
    .operation = CollectiveOperation::all_reduce,
    .applies = has_multicast_switch,
    .time = time,
    .rounds = rounds,
};

}  // namespace trainyard::collectives
