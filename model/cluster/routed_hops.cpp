// GroupRouter: messages from one block of a group to the next.
#include <algorithm>
#include <utility>

#include "model/cluster/routed_groups.h"
#include "model/cluster/straddling_groups.h"

namespace trainyard {
namespace {

HopTimes relative_to(double slowest, HopTimes times) {
  for (double& time : times.along) time /= slowest;
  for (double& time : times.around) time /= slowest;
  times.ends /= slowest;
  times.mirrors /= slowest;
  return times;
}

}  // namespace

std::optional<HopTimes> GroupRouter::hop_times(GroupShape shape, int members) {
  straddling_ = unlike_nics_ || straddles(shape, ranks_per_domain_);
  if (straddling_) return std::nullopt;
  Siblings groups = siblings(shape, {});
  if (groups.count() == 0) return std::nullopt;
  fold(groups);
  HopTimes times;
  const std::size_t blocks = groups.size / static_cast<std::size_t>(members);
  times.along = passing_times(groups, members, blocks - 1);
  times.along[blocks - 1] = times.along[blocks - 2];
  times.around = passing_times(groups, members, blocks);
  for (std::size_t i = 0; i < groups.count(); ++i) {
    send_own(groups[i].back(), groups[i].front(), 1);
    send_own(groups[i].front(), groups[i].back(), 1);
  }
  route_between();
  times.ends = std::max(out_alone_, counter_.finish());
  for (std::size_t i = 0; i < groups.count(); ++i) send_to_mirrors(groups[i]);
  route_between();
  times.mirrors = std::max(out_alone_, counter_.finish());
  const double slowest = *std::ranges::max_element(times.around);
  return relative_to(slowest, std::move(times));
}

void GroupRouter::send_to_mirrors(Ranks group) {
  for (std::size_t at = 0; at < group.size(); ++at) {
    const int mirror = group[group.size() - 1 - at];
    if (domain_of(group[at]) != domain_of(mirror)) send_own(group[at], mirror, 1);
  }
}

// Counts messages from the first `hops` blocks of all groups to the next ones: seconds that a byte
// from each takes, at least those of a member's own link; 0 for other blocks.
std::vector<double> GroupRouter::passing_times(const Siblings& groups, int members,
                                               std::size_t hops) {
  std::vector<double> times(groups.size / static_cast<std::size_t>(members));
  std::fill_n(times.begin(), hops, out_alone_);
  for (const bool counting : {true, false}) {
    for (std::size_t i = 0; i < groups.count(); ++i) {
      for (std::size_t hop = 0; hop < hops; ++hop) {
        if (!counting) counter_.look();
        pass_hop(groups[i], members, hop);
        if (!counting) times[hop] = std::max(times[hop], counter_.looked());
      }
    }
  }
  counter_.finish();
  return times;
}

void GroupRouter::pass_on(Ranks group, int members) {
  const std::size_t blocks = group.size() / static_cast<std::size_t>(members);
  for (std::size_t hop = 0; hop < blocks; ++hop) pass_hop(group, members, hop);
}

// The last member of a block sends to the first one of the next, over its own NICs.
void GroupRouter::pass_hop(Ranks group, int members, std::size_t hop) {
  const auto block = static_cast<std::size_t>(members);
  const std::size_t next = (hop + 1) * block;
  const int from = group[next - 1];
  const int to = group[next % group.size()];
  if (domain_of(from) == domain_of(to)) return;
  send(nics_of(leaving_for(from, to)), nics_of(to), 1);
}

}  // namespace trainyard
