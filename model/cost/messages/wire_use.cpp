#include "model/cost/messages/wire_use.h"

#include <algorithm>

#include "model/cost/messages/collective_steps.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

// Bytes of a member that leave its domain while nothing moves inside; 0 where the algorithm moves
// bytes inside and out at the same time.
Bytes leaving_apart(const GroupLinks& links, Bytes message, const CollectiveAlgorithm* algorithm) {
  if (!spans_domains(links) || algorithm->leaving == nullptr) return Bytes(0);
  return algorithm->leaving(links, message);
}

// Use of links that let `out` bytes a second pass over a member's own link out of its domain.
WireUse use_of(const GroupLinks& links, BytesPerSecond out, double crossing,
               TrafficPattern pattern) {
  const BytesPerSecond rate = std::min(links.inside, out / crossing);
  return {.crossing = crossing, .rate = rate, .filling = rate * crossing / out, .pattern = pattern};
}

}  // namespace

WireUse ring_use(const GroupLinks& links) {
  if (links.domains == 1) return {.rate = links.inside};
  return use_of(links, links.across, 1.0 / links.ranks_per_domain, TrafficPattern::ring);
}

WireUse passing_use(const GroupLinks& links) {
  if (links.domains == 1) return {.rate = links.inside};
  return {.crossing = links.across / links.passing,
          .rate = links.passing,
          .filling = 1,
          .pattern = TrafficPattern::passing};
}

WireUse all_to_all_use(const GroupLinks& links) {
  if (links.domains == 1) return {.rate = links.inside};
  const double crossing = static_cast<double>(links.size - links.ranks_per_domain) / links.size;
  return use_of(links, links.across_all_to_all, crossing, TrafficPattern::all_to_all);
}

WireUse mean_use(const GroupLinks& links, double free, double crossing, TrafficPattern pattern) {
  WireUse use = crossing > 0 ? use_of(links, links.across, crossing, pattern) : ring_use(links);
  use.free = free;
  return use;
}

WireUse wire_use(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                 const CollectiveCost& cost) {
  if (links.size <= 1 || cost.time <= Seconds(0)) return {};
  const Bytes leaving = leaving_apart(links, message, cost.algorithm);
  if (leaving > Bytes(0)) {
    const double Crowding::*const crowded = cost.algorithm->crowded;
    const BytesPerSecond out =
        links.across_all_to_all / (crowded != nullptr ? links.crowding.*crowded : 1);
    const double moving = leaving / out / cost.time;
    return {.free = std::max(0.0, 1 - moving),
            .crossing = 1,
            .rate = out,
            .filling = 1,
            .pattern = cost.algorithm->pattern};
  }
  WireUse use = operation == send         ? passing_use(links)
                : operation == all_to_all ? all_to_all_use(links)
                                          : ring_use(links);
  use.free = std::min(1.0, cost.latency / cost.time);
  if (cost.algorithm != nullptr) use.pattern = cost.algorithm->pattern;
  return use;
}

}  // namespace trainyard
