#include "simulator/phases.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "model/cost/collective_steps.h"

namespace trainyard {
namespace {

constexpr double kLastBits = 1e-14;  // in which equal products differ

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

PhasedCall::PhasedCall(const GroupLinks& links, const Call& call)
    : links_(links), stretch_(call.stretch) {
  if (links.size < 2) return;
  rounds_ = rounds_of(links, call);
  // The rounds of an all-to-all do not wait for each other: those of one kind are one phase.
  const bool all_to_all = call.operation == CollectiveOperation::all_to_all;
  for (std::size_t first = 0; first < rounds_.size();) {
    std::size_t end = first + 1;
    while (all_to_all && end < rounds_.size() && rounds_[end].way == rounds_[first].way &&
           rounds_[end].latency == rounds_[first].latency) {
      ++end;
    }
    parts_.push_back(part_of(first, end));
    first = end;
  }
}

// As one flow of as many bytes as the busiest member sends.
PhasedCall::Part PhasedCall::part_of(std::size_t first, std::size_t last) const {
  Part part{.first = first, .last = last, .latency = {}, .bytes = {}};
  std::vector<double> sent(static_cast<std::size_t>(links_.size));
  for (std::size_t i = first; i < last; ++i) {
    const TransferRound& round = rounds_[i];
    part.latency += round.repeats * round.latency;
    for (const Transfer& transfer : round.transfers) {
      sent[static_cast<std::size_t>(transfer.from)] += round.repeats * transfer.bytes.value();
    }
  }
  part.bytes = Bytes(*std::max_element(sent.begin(), sent.end()));
  return part;
}

bool PhasedCall::moves_alike(std::size_t phase, const PhasedCall& other,
                             std::size_t other_phase) const {
  const Part& a = parts_[phase];
  const Part& b = other.parts_[other_phase];
  const auto alike = [&](const TransferRound& x, const TransferRound& y) {
    return x.way == y.way && x.overhead == y.overhead &&
           std::ranges::equal(x.transfers, y.transfers, [&](const Transfer& s, const Transfer& t) {
             // Cross-multiplied: shares of messages of unlike sizes.
             const double mine = x.repeats * s.bytes.value() * b.bytes.value();
             const double theirs = y.repeats * t.bytes.value() * a.bytes.value();
             return s.from == t.from && s.to == t.to &&
                    std::abs(mine - theirs) <= kLastBits * theirs;
           });
  };
  return links_.ranks_per_domain == other.links_.ranks_per_domain &&
         std::equal(rounds_.begin() + static_cast<std::ptrdiff_t>(a.first),
                    rounds_.begin() + static_cast<std::ptrdiff_t>(a.last),
                    other.rounds_.begin() + static_cast<std::ptrdiff_t>(b.first),
                    other.rounds_.begin() + static_cast<std::ptrdiff_t>(b.last), alike);
}

void PhasedCall::append_links(std::size_t phase, Fabric& fabric, const TaskGroup& group,
                              std::vector<LinkUse>& uses) const {
  const Part& part = parts_[phase];
  const double all = part.bytes.value() > 0 ? part.bytes.value() : 1;
  for (std::size_t i = part.first; i < part.last; ++i) {
    const TransferRound& round = rounds_[i];
    for (const Transfer& transfer : round.transfers) {
      const double bytes = round.repeats * transfer.bytes.value();
      std::size_t use = uses.size();
      fabric.append_way(group, links_.ranks_per_domain, round, transfer, uses);
      for (; use < uses.size(); ++use) uses[use].share = uses[use].share * bytes / all;
    }
  }
}

std::vector<CallPhase> phases_of(Fabric& fabric, const TaskGroup& group, const Call& call) {
  const PhasedCall phased(fabric.links_of(group), call);
  std::vector<CallPhase> phases;
  for (std::size_t phase = 0; phase < phased.size(); ++phase) {
    phases.push_back({phased.latency(phase), phased.bytes(phase), {}});
    phased.append_links(phase, fabric, group, phases.back().links);
  }
  return phases;
}

}  // namespace trainyard
