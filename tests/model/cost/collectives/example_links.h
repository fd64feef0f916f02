// Links of a group written down directly instead of derived from a cluster, so that closed forms
// can be computed by hand.
#pragma once

#include "model/cluster/group.h"
#include "model/cost/collective.h"

namespace trainyard {

// n ranks on one switch with bandwidth `inside` each.
inline GroupLinks one_domain(int n, BytesPerSecond inside, Seconds latency) {
  GroupLinks links;
  links.size = links.ranks_per_domain = n;
  links.inside = links.inside_pair = inside;
  links.inside_latency = latency;
  return links;
}

// m domains with r ranks each; `across` is each rank's share of its domain's NICs.
inline GroupLinks over_domains(int r, int m, BytesPerSecond across, Seconds latency) {
  GroupLinks links = one_domain(r, BytesPerSecond(450e9), Seconds(3e-6));
  links.size = r * m;
  links.domains = m;
  links.across = links.passing = links.across_all_to_all = across;
  links.across_latency = latency;
  return links;
}

inline Seconds named_time(std::string_view name, CollectiveOperation operation,
                          const GroupLinks& links, Bytes message) {
  return collective_time(operation, links, message, {.algorithm = name});
}

}  // namespace trainyard
