#include "model/cluster/crowding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "model/cluster/tree_hops.h"
#include "model/inline_vector.h"

namespace trainyard {
namespace {

// Groups that cross the end of one subtree.
struct Crossers {
  std::int64_t groups = 0;
  double pairs = 0;  // of a member inside and one outside
  int members = 0;   // most members inside of one group
};

void add_groups(Crossers& all, int size, std::int64_t groups, std::int64_t members) {
  if (groups == 0 || members <= 0 || members >= size) return;
  all.groups += groups;
  all.pairs += static_cast<double>(groups * members * (size - members));
  all.members = std::max(all.members, static_cast<int>(members));
}

// Adds the groups with members from `first` to `end` of the stride·size ranks that `stride` groups
// share. With end = a·stride + α, ⌈(end − o)/stride⌉ members of the group at offset o lie before
// it: a, and one more where o < α.
void add_part(Crossers& all, GroupShape group, std::int64_t first, std::int64_t end) {
  const std::int64_t stride = group.stride;
  const std::int64_t members = end / stride - first / stride;
  const std::int64_t unlike = end % stride - first % stride;
  add_groups(all, group.size, stride - std::abs(unlike), members);
  add_groups(all, group.size, std::abs(unlike), members + (unlike > 0 ? 1 : -1));
}

Crossers crossers(GroupShape group, std::int64_t first, std::int64_t end, std::int64_t blocks) {
  const std::int64_t block = std::int64_t{group.stride} * group.size;
  Crossers all;
  const auto add = [&](std::int64_t of) {
    const std::int64_t start = of * block;
    const std::int64_t from = std::max(first, start), to = std::min(end, start + block);
    if (of < blocks && to - from < block) add_part(all, group, from - start, to - start);
  };
  const std::int64_t head = first / block, tail = (end - 1) / block;
  add(head);
  if (tail != head) add(tail);
  return all;
}

constexpr std::int64_t kMostSubtrees = 4096;

// A tier as a group crosses it; the first one is the domain itself. Times are seconds out of a
// subtree for each of its domains that sends:
struct CrossedTier {
  int domains = 1;      // of the group, in one subtree
  double each = 0;      // … if every member of the domain sends a byte
  double one = 0;       // … if its first member alone sends a byte
  double one_sum = 0;   // … if its members send one byte together, over all their NICs
  bool aligned = true;  // the group has exactly `domains` domains in every subtree that it meets
};

// The round of a binomial broadcast that sends `far` further on: messages out of the subtree of
// `below` domains, or into it, for the subtree with the most of them.
int most_in_tree(int all, int below, int far) {
  const int senders = std::min(far, all - far);
  const int out = std::min(below, senders) - std::max(0, below - far);
  const int end = far + senders;
  const int first = far < below ? 0 : far - far % below;  // of the first receiver's subtree
  const int in = std::min({below, far, end - first}) - (far - first);
  const int in_next = std::min({below, far, end - first - below});
  return std::max({0, out, in, in_next});
}

// The same for a tier; where it is not aligned, a bound wherever the subtree begins.
int most_in_tree(const CrossedTier& tier, int all, int far) {
  if (!tier.aligned) return std::min({tier.domains, far, all - far});
  return most_in_tree(all, tier.domains, far);
}

using CrossedTiers = InlineVector<CrossedTier, 4>;  // more levels than a hierarchy has

// A binomial scatter splits its ranges of domains in two, so at most one message of a round passes
// the end of a subtree. If the number of domains is a power of two, all ends are alike and one is
// enough.
constexpr int kMostRounds = 31;
using RoundTimes = std::array<double, kMostRounds>;
void add_scatter_past(int end, int all, double one, RoundTimes& longest) {
  int first = 0;
  int blocks = all;
  for (std::size_t round = 0; blocks > 1; ++round) {
    const int given = blocks / 2;
    const int next = first + blocks - given;
    if (end <= next) longest[round] = std::max(longest[round], given * one);
    if (end == next) return;
    first = end < next ? first : next;
    blocks = end < next ? blocks - given : given;
  }
}

void add_scatter(int all, const CrossedTier& tier, RoundTimes& longest) {
  if (!tier.aligned) {
    for (int end = 1; end < all; ++end) add_scatter_past(end, all, tier.one, longest);
    return;
  }
  const bool halves = std::has_single_bit(static_cast<unsigned>(all));
  const int last = halves ? tier.domains : all - tier.domains;
  for (int end = tier.domains; end <= last; end += tier.domains) {
    add_scatter_past(end, all, tier.one, longest);
  }
}

double scatter_time(const CrossedTiers& tiers, int all) {
  RoundTimes longest{};
  std::size_t rounds = 0;
  for (int blocks = all; blocks > 1; blocks -= blocks / 2) {
    const int given = blocks / 2;
    longest[rounds++] = given * tiers[0].one;
  }
  for (std::size_t i = 1; i < tiers.size(); ++i) add_scatter(all, tiers[i], longest);
  return std::accumulate(longest.begin(), longest.begin() + rounds, 0.0) / all;
}

// In each of the two trees every subtree but the tree's first one passes on what all its domains
// have added up. With only two subtrees, each is the first one of one tree, which halves its load.
double trees_time(const CrossedTiers& tiers, int all) {
  double longest = 0;
  for (const CrossedTier& tier : tiers) {
    const bool is_half = tier.aligned && all / tier.domains == 2 && all > 2;
    longest = std::max(longest, tier.domains * tier.one_sum * (is_half ? 0.5 : 1));
  }
  return longest;
}

template <typename Time>
double longest_of(const CrossedTiers& tiers, Time time) {
  double longest = 0;
  for (const CrossedTier& tier : tiers) longest = std::max(longest, time(tier));
  return longest;
}

}  // namespace

bool divide_each_other(GroupShape group, int ranks) {
  if (group.stride % ranks == 0) return true;
  return ranks % group.stride == 0 && group.size % (ranks / group.stride) == 0;
}

Straddling straddling(GroupShape group, int ranks, int devices) {
  const int within = members_within(group, ranks);
  const Straddling even{static_cast<double>(within), static_cast<double>(group.size - within),
                        within, true};
  if (!is_one_run(group) || divide_each_other(group, ranks)) return even;
  const std::int64_t block = std::int64_t{group.stride} * group.size;
  const std::int64_t repeat = std::lcm<std::int64_t>(block, ranks);
  const std::int64_t end = std::min<std::int64_t>(repeat, devices);
  if (end / ranks > kMostSubtrees) return even;
  Crossers most;
  for (std::int64_t first = 0; first < end; first += ranks) {
    const Crossers here = crossers(group, first, std::min(end, first + ranks), devices / block);
    most.groups = std::max(most.groups, here.groups);
    most.pairs = std::max(most.pairs, here.pairs);
    most.members = std::max(most.members, here.members);
  }
  if (most.groups == 0) return even;
  return {static_cast<double>(ranks) / static_cast<double>(most.groups), most.pairs / ranks,
          most.members, false};
}

Straddling straddling_of(const FabricTiers& fabric, const Tier& tier, GroupShape group) {
  const Tier& domain = fabric.tiers.front();
  const bool counted = !fabric.rails || divide_each_other(group, domain.ranks);
  if (&tier != &domain && counted) return straddling(group, tier.ranks, fabric.devices);
  const int within = members_within(group, tier.ranks);
  return {static_cast<double>(within), static_cast<double>(group.size - within), within, true};
}

CrossingTimes crossing_times(const FabricTiers& fabric, GroupShape group, const GroupLinks& links,
                             CrossedFrom from) {
  const int members = links.ranks_per_domain;
  CrossedTiers tiers;
  for (const Tier& tier : fabric.tiers) {
    const int below = members_within(group, tier.ranks);
    if (below == group.size) break;
    const Straddling met = straddling_of(fabric, tier, group);
    const int domains = std::max(1, (met.members + members - 1) / members);
    const double all_out = met.aligned ? 1 / (tier.way_out.value() * domains)
                                       : members / (tier.way_out.value() * met.share);
    const bool counts = !tiers.empty() || from == CrossedFrom::domains;
    const double each = counts ? all_out : 0;
    const bool own = tiers.empty() || fabric.rails;
    tiers.push_back({domains, each, own ? each : each / members, each / members, met.aligned});
  }
  const int all = links.domains;
  CrossingTimes times;
  for (int far = 1; far < all; far *= 2) {
    const int blocks = std::min(far, all - far);
    const double shift = longest_of(
        tiers, [&](const CrossedTier& tier) { return tier.each * std::min(tier.domains, blocks); });
    times.halving += blocks * shift / links.size;
    times.doubling += shift;
    times.binomial += longest_of(
        tiers, [&](const CrossedTier& tier) { return tier.one * most_in_tree(tier, all, far); });
  }
  times.scatter = scatter_time(tiers, all);
  times.trees = trees_time(tiers, all);
  times.sums = longest_of(tiers, [&](const CrossedTier& tier) {
    return &tier == &tiers[0] ? tier.each : tier.one_sum;
  });
  return in_the_mean(times, all, members);
}

CrossingTimes longer(const CrossingTimes& a, const CrossingTimes& b) {
  return {.halving = std::max(a.halving, b.halving),
          .doubling = std::max(a.doubling, b.doubling),
          .binomial = std::max(a.binomial, b.binomial),
          .scatter = std::max(a.scatter, b.scatter),
          .trees = std::max(a.trees, b.trees),
          .sums = std::max(a.sums, b.sums),
          .lanes = std::max(a.lanes, b.lanes)};
}

CrossingTimes in_the_mean(const CrossingTimes& sums, int domains, int members) {
  const double rounds = log2_ceil(domains);
  const double others = domains - 1;
  return {.halving = sums.halving * domains * members / others,
          .doubling = sums.doubling / rounds,
          .binomial = sums.binomial / rounds,
          .scatter = sums.scatter * domains / others,
          .trees = sums.trees * members,
          .sums = sums.sums,
          .lanes = sums.lanes};
}

Crowding crowding(const CrossingTimes& times, const GroupLinks& links) {
  const double across = links.across.value();
  const double all_to_all = links.across_all_to_all.value();
  return {.halving = times.halving * all_to_all,
          .doubling = times.doubling * all_to_all,
          .binomial = times.binomial * across,
          .scatter = times.scatter * across,
          .trees = times.trees * across,
          .sums = times.sums * across,
          .lanes = times.lanes > 0 ? times.lanes * across : 1};
}

}  // namespace trainyard
