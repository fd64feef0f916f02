// Groups that straddle domains: their members lie unevenly over them (12 ranks over nodes of 8,
// every third rank), so that siblings load unlike NICs of a domain. Counted NIC by NIC, as on
// routed fabrics (model/cluster/routed_groups.h), over as many domains as it takes until siblings
// lie as the first ones do; once a shape, and kept. Switches are taken to pass everything on: what
// subtrees above domains let pass is the tiers'.
//
// Of a shape that repeats after more than kMostRanks, a smaller one stands for it, whose groups
// begin and end at the same places of their domains.
#pragma once

#include "model/cluster/cluster.h"
#include "model/cluster/group.h"
#include "model/cluster/known_rates.h"
#include "model/cluster/routed_groups.h"
#include "model/cluster/topology.h"

namespace trainyard {

// Whether domains of so many ranks hold unlike parts of a group and its siblings. Groups with each
// member in a domain of its own do not straddle.
bool straddles(GroupShape group, int ranks);

class StraddlingGroups {
 public:
  static constexpr int kMostRanks = 4096;

  // Requires: `tiers` are those of the cluster and have one.
  StraddlingGroups(Cluster cluster, const FabricTiers& tiers);

  // With all groups of the shape among these ranks talking at once. Null: the shape repeats too
  // late, and no smaller one stands for it. Requires: straddles(), or that NICs are unlike;
  // `among` begins in the first domain, or is all ranks.
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
