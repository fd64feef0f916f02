#include <algorithm>
#include <limits>

#include "model/cluster/crowding.h"
#include "model/cluster/routed_groups.h"
#include "model/cluster/topology.h"

namespace trainyard {
namespace {

// In a mesh a member reaches the others of its group over one link each.
BytesPerSecond inside_of(const FabricTiers& tiers, int members) {
  return members == 1 ? tiers.inside : std::min(tiers.inside, (members - 1) * tiers.inside_pair);
}

// A subtree whose members have less to leave it than to leave their domains.
bool is_narrow(const Tier& tier, const Tier& domain) {
  constexpr double kLastBits = 1e-9;  // in which sums of equal links differ
  return tier.way_out < (1 - kLastBits) * domain.way_out;
}

// What a subtree lets pass of messages that members send to the next ones, each over its own NICs:
// as much as of a ring, but that on rails those of other members stay idle.
BytesPerSecond passed_out(const FabricTiers& tiers, const GroupLinks& links, BytesPerSecond ring,
                          int on_nics) {
  const double used = tiers.rails ? static_cast<double>(on_nics) / links.ranks_per_domain : 1;
  return used * ring;
}

}  // namespace

GroupLinks group_links(const FabricTiers& tiers, GroupShape group) {
  GroupLinks links;
  const int size = group.size;
  const int members = tiers.tiers.empty() ? size : members_within(group, tiers.tiers.front().ranks);
  links.size = size;
  links.ranks_per_domain = members;
  links.domains = size / members;
  links.inside = inside_of(tiers, members);
  links.inside_pair = tiers.inside_pair;
  links.inside_latency = tiers.inside_latency;
  links.switched = tiers.switched;
  links.one_link = tiers.one_link;

  BytesPerSecond ring(std::numeric_limits<double>::infinity());
  BytesPerSecond all_to_all = ring;
  const int on_nics = members_within(group, tiers.nics.ranks);
  BytesPerSecond passing = std::min(tiers.nics.alone, on_nics * tiers.nics.way_out);
  for (const Tier& tier : tiers.tiers) {
    const int below = members_within(group, tier.ranks);
    if (below == size) break;
    const Straddling met = straddling_of(tiers, tier, group);
    const BytesPerSecond out = met.share * tier.way_out;
    ring = std::min(ring, out);
    passing = std::min(passing, passed_out(tiers, links, out, on_nics));
    all_to_all = std::min(all_to_all, tier.way_out * (size - members) / met.outside);
    links.across_latency = tier.latency;
    if (is_narrow(tier, tiers.tiers.front())) ++links.narrow_levels;
  }
  const GroupRates* routed = nullptr;
  if (tiers.routed != nullptr && members < size) {
    routed = &tiers.routed->rates(group, members);
    ring = std::min(ring, routed->ring);
    passing = std::min(passing, routed->passing);
    all_to_all = std::min(all_to_all, routed->all_to_all);
  }
  links.across = ring / members;
  if (!tiers.tiers.empty()) links.way_out = tiers.tiers.front().way_out;
  links.passing = passing;
  links.small_latency = tiers.small_latency;
  links.small_share = tiers.small_share;
  links.across_all_to_all = all_to_all;
  if (routed != nullptr && routed->times) {
    links.crowding = crowding(*routed->times, links);
  } else if (links.narrow_levels > 0) {
    links.crowding = crowding(crossing_times(tiers, group, links), links);
  }
  return links;
}

}  // namespace trainyard
