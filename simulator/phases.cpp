#include "simulator/phases.h"

#include <algorithm>
#include <span>

#include "model/cost/collective_steps.h"

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

// Both levels at a time: to the members of the own domain, and to those of like place in the others
// (DeepSeek-V3 report, §3.2.2).
TransferRound two_level_round(const GroupLinks& links, Bytes message, double leaving) {
  TransferRound all{.latency = std::max((links.ranks_per_domain - 1) * links.inside_latency,
                                        (links.domains - 1) * links.across_latency)};
  const auto append = [&](const TransferRound& round) {
    all.transfers.insert(all.transfers.end(), round.transfers.begin(), round.transfers.end());
  };
  for (int place = 1; place < links.ranks_per_domain; ++place) {
    append(inside_shift(links, place, message / links.ranks_per_domain));
  }
  for (int domain = 1; domain < links.domains; ++domain) {
    append(across_shift(links, domain, 0, message * leaving / links.domains));
  }
  return all;
}

}  // namespace

Seconds two_level_time(const GroupLinks& links, Bytes message, double leaving) {
  const double r = links.ranks_per_domain;
  const double m = links.domains;
  const Seconds inside = transfer((r - 1) / r * message, links.inside);
  const Seconds across = transfer((m - 1) / m * leaving * message, links.across_all_to_all);
  return two_level_round(links, Bytes(0), 0).latency + std::max(inside, across);
}

TransferRounds rounds_of(const GroupLinks& links, const Call& call) {
  if (call.leaving > 0 && links.domains > 1) {
    return {two_level_round(links, call.message, call.leaving)};
  }
  return algorithm_on(links, call)->rounds(links, call.message);
}

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
  const TransferRounds rounds = rounds_of(links, call);
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
