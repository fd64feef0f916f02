#include "simulator/phases.h"

#include <algorithm>
#include <span>

namespace trainyard {
namespace {

// What the rounds together put on each link, as one flow of as many bytes as the busiest member
// sends.
CallPhase phase_of(Fabric& fabric, const TaskGroup& group, int ranks_per_domain,
                   std::span<const TransferRound> rounds) {
  CallPhase phase;
  std::vector<double> sent(group.size());
  for (const TransferRound& round : rounds) {
    phase.latency += round.repeats * round.latency;
    for (const Transfer& transfer : round.transfers) {
      const double bytes = round.repeats * transfer.bytes.value();
      sent[static_cast<std::size_t>(transfer.from)] += bytes;
      for (const LinkUse& use : fabric.way(group, ranks_per_domain, round, transfer)) {
        phase.links.push_back({use.link, use.share * bytes});
      }
    }
  }
  phase.bytes = Bytes(*std::max_element(sent.begin(), sent.end()));
  if (phase.bytes.value() > 0) {
    for (LinkUse& load : phase.links) load.share /= phase.bytes.value();
  }
  return phase;
}

}  // namespace

const CollectiveAlgorithm* algorithm_on(const GroupLinks& links, const Call& call) {
  for (const CollectiveAlgorithm* algorithm : {call.algorithm, call.otherwise}) {
    if (algorithm != nullptr && algorithm->applies(links)) return algorithm;
  }
  return nullptr;
}

std::vector<CallPhase> phases_of(Fabric& fabric, const TaskGroup& group, const Call& call) {
  std::vector<CallPhase> phases;
  const GroupLinks links = fabric.links_of(group);
  if (links.size < 2) return phases;
  const TransferRounds rounds = algorithm_on(links, call)->rounds(links, call.message);
  // The rounds of an all-to-all do not wait for each other: those of one kind are one phase.
  const bool all_to_all = call.operation == CollectiveOperation::all_to_all;
  for (auto first = rounds.begin(); first != rounds.end();) {
    const auto end = std::find_if(first + 1, rounds.end(), [&](const TransferRound& round) {
      return !all_to_all || round.way != first->way || round.latency != first->latency;
    });
    phases.push_back(phase_of(fabric, group, links.ranks_per_domain, {first, end}));
    phases.back().latency *= call.stretch;
    phases.back().bytes *= call.stretch;
    first = end;
  }
  return phases;
}

}  // namespace trainyard
