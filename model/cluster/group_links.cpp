#include <algorithm>
#include <cmath>
#include <limits>

#include "model/cluster/crowding.h"
#include "model/cluster/routed_groups.h"
#include "model/cluster/straddling_groups.h"
#include "model/cluster/topology.h"

namespace trainyard {
namespace {

// In a mesh a member reaches the others of its group over one link each.
BytesPerSecond inside_of(const FabricTiers& tiers, int members) {
  return members == 1 ? tiers.inside : std::min(tiers.inside, (members - 1) * tiers.inside_pair);
}

// Whether ranks have less bandwidth out of this subtree than out of their domains.
bool is_narrow(const Tier& tier, const Tier& domain) {
  constexpr double kLastBits = 1e-9;  // relative: sums of equal links may differ in the last bits
  return tier.way_out < (1 - kLastBits) * domain.way_out;
}

// Bandwidth out of a subtree for messages that members pass on over their own NICs: that of a ring;
// but on rails the rails of the other members stay idle.
BytesPerSecond passed_out(const FabricTiers& tiers, const GroupLinks& links, BytesPerSecond ring,
                          int on_nics) {
  const double used = tiers.rails ? static_cast<double>(on_nics) / links.ranks_per_domain : 1;
  return used * ring;
}

// Whether a group and its siblings have unequal shares of a domain's NICs.
bool shares_unlike(const FabricTiers& tiers, GroupShape group) {
  return tiers.unlike_nics || straddles(group, tiers.tiers.front().ranks);
}

// Rates that were counted link by link; null: the tiers are enough.
const GroupRates* counted_rates(const FabricTiers& tiers, GroupShape group, int members,
                                RankRange among) {
  if (tiers.routed != nullptr) return &tiers.routed->rates(group, members);
  if (tiers.straddling == nullptr || !shares_unlike(tiers, group)) return nullptr;
  return tiers.straddling->rates(group, members, among);
}

// Bandwidth that subtrees and NICs leave a group (GroupRates).
struct Passed {
  BytesPerSecond ring{std::numeric_limits<double>::infinity()};
  BytesPerSecond passing = ring, all_to_all = ring;
};
Passed least(const Passed& a, const Passed& b) {
  return {std::min(a.ring, b.ring), std::min(a.passing, b.passing),
          std::min(a.all_to_all, b.all_to_all)};
}

// Bandwidth out of domains whose NICs were counted one by one. Under PCIe each of the `members`
// also has to pass its own link to the NICs.
Passed counted_out(const FabricTiers& tiers, const GroupRates& rates, int members) {
  const Passed nics{rates.ring, rates.passing, rates.all_to_all};
  if (!tiers.one_link) return nics;
  return least(nics, {members * tiers.nics.alone, tiers.nics.alone, tiers.nics.alone});
}

// Bandwidth out of the subtrees that the group leaves. Where `nics_are_counted`, only narrow tiers
// matter: the domains were counted, and other tiers pass on all that their domains send.
Passed passed_by_tiers(const FabricTiers& tiers, GroupShape group, bool nics_are_counted,
                       GroupLinks& links) {
  Passed passed;
  const int members = links.ranks_per_domain;
  const int on_nics = members_within(group, tiers.nics.ranks);
  if (!nics_are_counted) {
    passed.passing = std::min(tiers.nics.alone, on_nics * tiers.nics.way_out);
  }
  for (const Tier& tier : tiers.tiers) {
    if (members_within(group, tier.ranks) == group.size) break;
    const bool narrow = is_narrow(tier, tiers.tiers.front());
    links.across_latency = tier.latency;
    if (narrow) ++links.narrow_levels;
    if (nics_are_counted && !narrow) continue;
    const Straddling met = straddling_of(tiers, tier, group);
    const BytesPerSecond out = met.share * tier.way_out;
    passed = least(passed, {out, passed_out(tiers, links, out, on_nics),
                            tier.way_out * (group.size - members) / met.outside});
  }
  return passed;
}

// Crowding of messages to partners at distance 1, 2, 4, …; none where the NICs are the bottleneck
// and all groups load them equally.
Crowding crowding_of(const FabricTiers& tiers, GroupShape group, const GroupRates* counted,
                     bool straddling, const GroupLinks& links) {
  const bool of_tiers = links.narrow_levels > 0;
  if (counted == nullptr || !counted->times) {
    return of_tiers ? crowding(crossing_times(tiers, group, links), links) : Crowding{};
  }
  if (tiers.routed != nullptr || !straddling || !of_tiers) {
    return crowding(*counted->times, links);
  }
  const CrossingTimes above = crossing_times(tiers, group, links, CrossedFrom::above_domains);
  return crowding(longer(*counted->times, above), links);
}

// Of members that are all in one domain, or `members` in each of several.
GroupLinks links_inside(const FabricTiers& tiers, int size, int members) {
  GroupLinks links;
  links.size = size;
  links.ranks_per_domain = members;
  links.domains = size / members;
  links.inside = inside_of(tiers, members);
  links.inside_pair = tiers.inside_pair;
  links.inside_latency = tiers.inside_latency;
  links.switched = tiers.switched;
  links.one_link = tiers.one_link;
  return links;
}

GroupLinks links_among(const FabricTiers& tiers, GroupShape group, RankRange among) {
  const int size = group.size;
  const int members = tiers.tiers.empty() ? size : members_within(group, tiers.tiers.front().ranks);
  GroupLinks links = links_inside(tiers, size, members);

  const bool leaves = members < size;
  const GroupRates* counted = leaves ? counted_rates(tiers, group, members, among) : nullptr;
  const bool straddling = counted != nullptr && shares_unlike(tiers, group);
  Passed passed = passed_by_tiers(tiers, group, straddling, links);
  if (straddling) {
    passed = least(passed, counted_out(tiers, *counted, members));
  } else if (counted != nullptr) {
    passed = least(passed, {counted->ring, counted->passing, counted->all_to_all});
  }
  links.across = passed.ring / members;
  if (!tiers.tiers.empty()) links.way_out = tiers.tiers.front().way_out;
  links.passing = passed.passing;
  links.across_all_to_all = passed.all_to_all;
  links.small_latency = tiers.small_latency;
  links.small_share = tiers.small_share;
  if (tiers.routed != nullptr && counted != nullptr) links.loads = counted->loads.get();
  links.crowding = crowding_of(tiers, group, counted, straddling, links);
  return links;
}

}  // namespace

const HopTimes* hop_times(const FabricTiers& tiers, GroupShape group) {
  if (tiers.routed == nullptr) return nullptr;
  const int members = members_within(group, tiers.tiers.front().ranks);
  return members < group.size ? tiers.routed->hop_times(group, members) : nullptr;
}

GroupLinks group_links(const FabricTiers& tiers, GroupShape group) {
  return links_among(tiers, group, {});
}

GroupLinks group_links(const FabricTiers& tiers, GroupShape group, RankRange among) {
  if (tiers.tiers.empty()) return links_among(tiers, group, {});
  const int ranks = tiers.tiers.front().ranks;
  among.first %= ranks;  // every domain is as the first one
  if (among.first + among.count > ranks) {
    const GroupLinks links = links_among(tiers, group, among);
    if (std::isfinite(links.across.value())) return links;  // else no group leaves its domain
  }
  GroupLinks links = links_inside(tiers, group.size, group.size);
  const double unlimited = std::numeric_limits<double>::infinity();
  links.across = links.passing = links.across_all_to_all = BytesPerSecond(unlimited);
  links.way_out = tiers.tiers.front().way_out;
  links.small_latency = tiers.small_latency;
  links.small_share = tiers.small_share;
  return links;
}

}  // namespace trainyard
