#include "model/cost/messages/collective_steps.h"

#include <algorithm>

namespace trainyard {

RingPace ring_pace(const GroupLinks& links) {
  if (links.domains == 1) return {links.inside_latency, links.inside};
  if (links.ranks_per_domain == 1) return {links.across_latency, links.across};
  const double inside = links.size - links.domains;
  const double across = links.domains - 1;
  return {(inside * links.inside_latency + across * links.across_latency) / (inside + across),
          std::min(links.inside, links.across * links.ranks_per_domain)};
}

Seconds logarithmic_latency(const GroupLinks& links) {
  return log2_ceil(links.ranks_per_domain) * links.inside_latency +
         log2_ceil(links.domains) * links.across_latency;
}

Bytes recursive_leaving(const GroupLinks& links, Bytes message) {
  const double n = links.size;
  const double r = links.ranks_per_domain;
  return (n - r) / (n * r) * message;
}

Seconds recursive_time(const GroupLinks& links, Bytes message) {
  const double r = links.ranks_per_domain;
  return logarithmic_latency(links) + transfer_time((r - 1) / r * message, links.inside_pair) +
         links.crowding.halving *
             transfer_time(recursive_leaving(links, message), links.across_all_to_all);
}

BytesPerSecond across_from_first(const GroupLinks& links) {
  return links.one_link && links.crowding == Crowding{} ? links.passing : links.across;
}

bool applies_always(const GroupLinks& /*links*/) { return true; }

bool spans_domains(const GroupLinks& links) {
  return links.domains > 1 && links.ranks_per_domain > 1;
}

bool shares_domains(const GroupLinks& links) { return links.ranks_per_domain > 1; }

bool has_multicast_switch(const GroupLinks& links) { return links.domains == 1 && links.switched; }

BytesPerSecond multicast_bandwidth(const GroupLinks& links) {
  return links.inside / kMulticastOverhead;
}

}  // namespace trainyard
