// Bandwidths out of domains for groups that straddle them: their members lie unevenly over domains
// (groups of 12 ranks over nodes of 8; every third rank), so sibling groups load the NICs of a
// domain unequally. The load is counted NIC by NIC, as on routed fabrics
// (model/cluster/routed_groups.h), over as many domains as it takes until siblings lie in them as
// the first ones do: once for each shape. Switches are taken to pass everything on; what subtrees
// above the domains let pass is left to the tiers.
//
// If a shape repeats only after more than kMostRanks ranks, a smaller shape is counted for it,
// whose groups begin and end at the same places of their domains.
#pragma once

#include "model/cluster/cluster.h"
#include "model/cluster/group.h"
#include "model/cluster/known_rates.h"
#include "model/cluster/routed_groups.h"
#include "model/cluster/topology.h"

namespace trainyard {

// Whether a group's members, or those of its siblings, lie unevenly over domains of `ranks` ranks.
// Groups with each member in a domain of its own do not straddle.
bool straddles(GroupShape group, int ranks);

class StraddlingGroups {
 public:
  static constexpr int kMostRanks = 4096;

  // Requires: `tiers` are those of the cluster and have one.
  StraddlingGroups(Cluster cluster, const FabricTiers& tiers);

  // The rates where all groups of the shape among these ranks talk at once. `members`:
  // members_within() a domain. Null: the shape repeats too late and no smaller one can stand for
  // it. Requires: straddles(shape, …), or unlike NICs (FabricTiers::unlike_nics); `among` begins in
  // the first domain, or is all ranks.
  const GroupRates* rates(GroupShape shape, int members, RankRange among = {});

 private:
  Cluster cluster_;  // its nodes on one leaf
  FabricTiers tiers_;
  struct Place {
    GroupShape shape;
    RankRange among;
    friend bool operator==(const Place&, const Place&) = default;
  };
  KnownRates<Place, GroupRates> known_;
};

}  // namespace trainyard
