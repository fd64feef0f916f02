#include "model/cluster/straddling_groups.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "model/cluster/crowding.h"
#include "model/cluster/topology_graph.h"

namespace trainyard {
namespace {

// Ranks from a group's first member to that of the next block of groups.
std::int64_t block_of(GroupShape group) {
  return is_one_run(group) ? std::int64_t{group.stride} * group.size
                           : std::int64_t{group.jump} * (group.size / group.run);
}

bool level_straddles(int stride, int count, int ranks) {
  return count > 1 && stride < ranks && !divide_each_other({stride, count}, ranks);
}

// The shape with fewer steps at its outer level, reduced by a number that leaves the end of a block
// at the same place of a domain.
GroupShape smaller(GroupShape group, int ranks) {
  const bool one = is_one_run(group);
  const int stride = one ? group.stride : group.jump;
  const int run = one ? 1 : group.run;
  const int count = group.size / run;
  const int repeat = ranks / std::gcd(stride, ranks);
  constexpr int kLeastDomains = 3;  // one at each end, and one between them
  int least = count % repeat;
  while (least < 2 || std::int64_t{least} * stride < std::int64_t{kLeastDomains} * ranks) {
    least += repeat;
  }
  group.size = std::min(least, count) * run;
  if (one) group.run = 0;
  return group;
}

struct Counted {
  GroupShape shape;
  int domains = 1;
};
std::optional<Counted> counted(GroupShape shape, int ranks, int devices) {
  constexpr std::int64_t kMost = StraddlingGroups::kMostRanks;
  const auto repeats = [&](GroupShape of) {
    return std::min<std::int64_t>(devices, std::lcm(block_of(of), std::int64_t{ranks}));
  };
  if (repeats(shape) > kMost) shape = smaller(shape, ranks);
  const std::int64_t least = (block_of(shape) + ranks - 1) / ranks;
  if (least * ranks > kMost) return std::nullopt;
  const std::int64_t all = std::max(least, std::min(kMost, repeats(shape)) / ranks);
  return Counted{shape, static_cast<int>(all)};
}

// These ranks alone; they have one group at least.
std::optional<Counted> counted_among(GroupShape shape, RankRange among, int ranks) {
  const int end = among.first + among.count;
  if (end > StraddlingGroups::kMostRanks) return std::nullopt;
  return Counted{shape, (end + ranks - 1) / ranks};
}

}  // namespace

bool straddles(GroupShape group, int ranks) {
  if (is_one_run(group)) return level_straddles(group.stride, group.size, ranks);
  const bool whole_runs = ranks % (std::int64_t{group.stride} * group.run) == 0;
  return (!whole_runs && level_straddles(group.stride, group.run, ranks)) ||
         level_straddles(group.jump, group.size / group.run, ranks);
}

StraddlingGroups::StraddlingGroups(Cluster cluster, const FabricTiers& tiers)
    : cluster_(std::move(cluster)), tiers_(tiers) {
  cluster_.nvlink_domain = tiers.tiers.front().ranks;
  cluster_.inter.oversubscription = 1;
  cluster_.inter.routing = FabricRouting::adaptive;
}

const GroupRates* StraddlingGroups::rates(GroupShape shape, int members, RankRange among) {
  if (const GroupRates* known = known_.find({shape, among})) return known;
  const int ranks = tiers_.tiers.front().ranks;
  const auto found =
      among.count == 0 ? counted(shape, ranks, tiers_.devices) : counted_among(shape, among, ranks);
  if (!found) return nullptr;
  Cluster part = cluster_;
  part.nodes = found->domains * ranks / cluster_.devices_per_node;
  part.inter.nodes_per_leaf = part.nodes;
  GroupRouter router(part, make_topology(part), tiers_);
  return &known_.add({shape, among}, router.compute(found->shape, members, among));
}

}  // namespace trainyard
