#include "model/cluster/crowding.h"

#include <algorithm>
#include <array>
#include <bit>

#include "model/cluster/tree_hops.h"
#include "model/inline_vector.h"

namespace trainyard {
namespace {

// A tier as a group sees it. The first one is the domain itself.
struct Unit {
  int domains = 1;     // of the group, in one subtree
  double all = 0;      // seconds while all its members send a byte out of it
  double one = 0;      // … while one of its domains' first members does
  double one_sum = 0;  // … while one of its domains sends a byte over the NICs of all its members
};

// Of a binomial broadcast to `far` further on: messages out of, or into, the subtree of `below`
// domains with most of them.
int most_in_tree(int all, int below, int far) {
  const int senders = std::min(far, all - far);
  const int out = std::min(below, senders) - std::max(0, below - far);
  const int end = far + senders;
  const int first = far / below * below;  // the subtree that the first receiver is in
  const int in = std::min({below, far, end - first}) - (far - first);
  const int in_next = std::min({below, far, end - first - below});
  return std::max({0, out, in, in_next});
}

using Units = InlineVector<Unit, 4>;  // more levels than a hierarchy has

// A binomial scatter splits its ranges of domains in two, so that at most one message of a round
// passes the end of a subtree. Whatever holds for one end holds for all where everything is halved.
constexpr int kMostRounds = 31;
using RoundTimes = std::array<double, kMostRounds>;
void add_scatter(int all, const Unit& unit, RoundTimes& longest) {
  const bool halves = std::has_single_bit(static_cast<unsigned>(all));
  const int last = halves ? unit.domains : all - unit.domains;
  for (int end = unit.domains; end <= last; end += unit.domains) {
    int first = 0;
    int blocks = all;
    for (std::size_t round = 0; blocks > 1; ++round) {
      const int given = blocks / 2;
      const int next = first + blocks - given;
      if (end <= next) longest[round] = std::max(longest[round], given * unit.one);
      if (end == next) break;
      first = end < next ? first : next;
      blocks = end < next ? blocks - given : given;
    }
  }
}

double scatter_time(const Units& units, int all) {
  RoundTimes longest{};
  int blocks = all;
  for (std::size_t round = 0; blocks > 1; ++round) {
    longest[round] = blocks / 2 * units[0].one;
    blocks -= blocks / 2;
  }
  for (std::size_t i = 1; i < units.size(); ++i) add_scatter(all, units[i], longest);
  double sum = 0;
  for (const double time : longest) sum += time;
  return sum / all;
}

// Every subtree but the first one of both trees hands on what all its domains have added up; of two
// subtrees each is the first one of one tree.
double trees_time(const Units& units, int all) {
  double longest = 0;
  for (const Unit& unit : units) {
    const bool is_half = all / unit.domains == 2 && all > 2;
    longest = std::max(longest, unit.domains * unit.one_sum * (is_half ? 0.5 : 1));
  }
  return longest;
}

template <typename Time>
double longest_of(const Units& units, Time time) {
  double longest = 0;
  for (const Unit& unit : units) longest = std::max(longest, time(unit));
  return longest;
}

}  // namespace

CrossingTimes crossing_times(const FabricTiers& tiers, GroupShape group, const GroupLinks& links) {
  const int members = links.ranks_per_domain;
  Units units;
  for (const Tier& tier : tiers.tiers) {
    const int below = members_within(group, tier.ranks);
    if (below == group.size) break;
    const int domains = std::max(1, below / members);
    const double all = 1 / tier.way_out.value();
    const double one_sum = all / (static_cast<double>(domains) * members);
    const bool own = units.empty() || tiers.rails;
    units.push_back({domains, all, own ? all / domains : one_sum, one_sum});
  }
  const int all = links.domains;
  CrossingTimes times;
  for (int far = 1; far < all; far *= 2) {
    const int blocks = std::min(far, all - far);
    const double shift = longest_of(units, [&](const Unit& unit) {
      return unit.all * std::min(unit.domains, blocks) / unit.domains;
    });
    times.halving += blocks * shift / links.size;
    times.doubling += shift;
    times.binomial += longest_of(
        units, [&](const Unit& unit) { return unit.one * most_in_tree(all, unit.domains, far); });
  }
  times.scatter = scatter_time(units, all);
  times.trees = trees_time(units, all);
  times.sums = longest_of(
      units, [&](const Unit& unit) { return &unit == &units[0] ? unit.all : unit.one_sum; });
  return times;
}

Crowding crowding(const CrossingTimes& times, const GroupLinks& links) {
  const double rounds = log2_ceil(links.domains);
  const double domains = links.domains;
  const double across = links.across.value();
  const double all_to_all = links.across_all_to_all.value();
  return {.halving = times.halving * all_to_all * links.size / (domains - 1),
          .doubling = times.doubling * all_to_all / rounds,
          .binomial = times.binomial * across / rounds,
          .scatter = times.scatter * across * domains / (domains - 1),
          .trees = times.trees * across * links.ranks_per_domain,
          .sums = times.sums * across};
}

}  // namespace trainyard
