#include "simulator/engine/phases.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "model/cost/messages/collective_steps.h"

namespace trainyard {
namespace {

constexpr double kLastBits = 1e-14;  // relative difference of products that should be equal

// One round with both levels at the same time: transfers to the members of the own domain, and to
// the members at the same place in the other domains (DeepSeek-V3 report, §3.2.2).
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

// Merges consecutive rounds of the same way and latency. Requires: rounds are not repeated.
TransferRounds joined(const TransferRounds& rounds) {
  TransferRounds result;
  Seconds latency;  // of a round merged into the last result
  for (const TransferRound& round : rounds) {
    if (result.empty() || round.way != result.back().way || round.latency != latency) {
      result.push_back(round);
      latency = round.latency;
      continue;
    }
    TransferRound& into = result.back();
    into.latency += round.latency;
    into.transfers.insert(into.transfers.end(), round.transfers.begin(), round.transfers.end());
  }
  return result;
}

}  // namespace

Seconds two_level_time(const GroupLinks& links, Bytes message, double leaving) {
  const double r = links.ranks_per_domain;
  const double m = links.domains;
  const Seconds inside = transfer_time((r - 1) / r * message, links.inside);
  const Seconds across = transfer_time((m - 1) / m * leaving * message, links.across_all_to_all);
  return two_level_round(links, Bytes(0), 0).latency + std::max(inside, across);
}

TransferRounds rounds_of(const GroupLinks& links, const Call& call) {
  if (call.leaving > 0 && links.domains > 1) {
    return {two_level_round(links, call.message, call.leaving)};
  }
  TransferRounds rounds = algorithm_on(links, call)->rounds(links, call.message);
  return call.operation == CollectiveOperation::all_to_all ? joined(rounds) : rounds;
}

const CollectiveAlgorithm* algorithm_on(const GroupLinks& links, const Call& call) {
  for (const CollectiveAlgorithm* algorithm : {call.algorithm, call.otherwise}) {
    if (algorithm != nullptr && algorithm->applies(links)) return algorithm;
  }
  return nullptr;
}

PhasedCall::PhasedCall(const GroupLinks& links, const Call& call)
    : links_(links), stretch_(call.stretch) {
  if (links.size < 2) return;
  rounds_ = rounds_of(links, call);
  for (const TransferRound& round : rounds_) parts_.push_back(part_of(round));
}

// A round as one flow of the bytes that its busiest member sends.
PhasedCall::Part PhasedCall::part_of(const TransferRound& round) const {
  std::vector<double> sent(static_cast<std::size_t>(links_.size));
  for (const Transfer& transfer : round.transfers) {
    sent[static_cast<std::size_t>(transfer.from)] += round.repeats * transfer.bytes.value();
  }
  return {.latency = round.repeats * round.latency,
          .bytes = Bytes(*std::max_element(sent.begin(), sent.end()))};
}

bool PhasedCall::moves_alike(std::size_t phase, const PhasedCall& other,
                             std::size_t other_phase) const {
  const Part& a = parts_[phase];
  const Part& b = other.parts_[other_phase];
  const TransferRound& x = rounds_[phase];
  const TransferRound& y = other.rounds_[other_phase];
  return links_.ranks_per_domain == other.links_.ranks_per_domain && x.way == y.way &&
         x.overhead == y.overhead &&
         std::ranges::equal(x.transfers, y.transfers, [&](const Transfer& s, const Transfer& t) {
           // Cross-multiplied, to compare shares of messages of different sizes.
           const double mine = x.repeats * s.bytes.value() * b.bytes.value();
           const double theirs = y.repeats * t.bytes.value() * a.bytes.value();
           return s.from == t.from && s.to == t.to && std::abs(mine - theirs) <= kLastBits * theirs;
         });
}

void PhasedCall::append_links(std::size_t phase, Fabrics& fabric, GroupView group,
                              std::vector<LinkUse>& uses) const {
  const Bytes most = parts_[phase].bytes;
  const double all = most.value() > 0 ? most.value() : 1;
  const TransferRound& round = rounds_[phase];
  for (const Transfer& transfer : round.transfers) {
    const double bytes = round.repeats * transfer.bytes.value();
    std::size_t use = uses.size();
    fabric.append_way(group, links_.ranks_per_domain, round, transfer, uses);
    for (; use < uses.size(); ++use) uses[use].share = uses[use].share * bytes / all;
  }
}

std::vector<CallPhase> phases_of(Fabrics& fabric, GroupView group, const Call& call) {
  const PhasedCall phased(fabric.links_of(group), call);
  std::vector<CallPhase> phases;
  for (std::size_t phase = 0; phase < phased.size(); ++phase) {
    phases.push_back({phased.latency(phase), phased.bytes(phase), {}});
    phased.append_links(phase, fabric, group, phases.back().links);
  }
  return phases;
}

}  // namespace trainyard
