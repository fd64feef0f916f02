#include "model/cost/wire_use.h"

#include <algorithm>

#include "model/cost/collective_steps.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

// Recursive and hierarchical algorithms work inside domains first and between them then, or the
// other way round. Of the bytes that a member sends, those that leave its domain there; nothing of
// other algorithms.
Bytes leaving_by_levels(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                        const CollectiveAlgorithm* algorithm) {
  if (links.domains == 1 || links.ranks_per_domain == 1 || operation == send) return Bytes(0);
  const std::string_view name = algorithm->name;
  if (!name.starts_with("recursive") && name != "hierarchical") return Bytes(0);
  const double n = links.size;
  const double r = links.ranks_per_domain;
  switch (operation) {
    case all_to_all:
      return (n - r) / n * message;
    case all_reduce:
      if (name == "recursive-doubling") return log2_ceil(links.domains) * message;
      return 2 * (n - r) / (n * r) * message;
    default:
      return (n - r) / (n * r) * message;
  }
}

// How many times as long they take for whom they meet on the way.
double crowding_of(CollectiveOperation operation, const Crowding& crowding,
                   std::string_view algorithm) {
  if (algorithm == "hierarchical") return 1;
  const bool whole = operation == all_reduce && algorithm == "recursive-doubling";
  return whole ? crowding.doubling : crowding.halving;
}

}  // namespace

WireUse ring_use(const GroupLinks& links) {
  if (links.domains == 1) return {.rate = links.inside};
  const double crossing = 1.0 / links.ranks_per_domain;
  return {.crossing = crossing, .rate = std::min(links.inside, links.across / crossing)};
}

WireUse passing_use(const GroupLinks& links) {
  if (links.domains == 1) return {.rate = links.inside};
  return {.crossing = links.across / links.passing, .rate = links.passing};
}

WireUse all_to_all_use(const GroupLinks& links) {
  if (links.domains == 1) return {.rate = links.inside};
  const double crossing = static_cast<double>(links.size - links.ranks_per_domain) / links.size;
  return {.crossing = crossing, .rate = std::min(links.inside, links.across_all_to_all / crossing)};
}

WireUse wire_use(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                 const CollectiveCost& cost) {
  if (links.size <= 1 || cost.time <= Seconds(0)) return {};
  const Bytes leaving = leaving_by_levels(operation, links, message, cost.algorithm);
  if (leaving > Bytes(0)) {
    const BytesPerSecond out =
        links.across_all_to_all / crowding_of(operation, links.crowding, cost.algorithm->name);
    const double moving = leaving / out / cost.time;
    return {.free = std::max(0.0, 1 - moving), .crossing = 1, .rate = out};
  }
  WireUse use = operation == send         ? passing_use(links)
                : operation == all_to_all ? all_to_all_use(links)
                                          : ring_use(links);
  use.free = std::min(1.0, cost.latency / cost.time);
  return use;
}

}  // namespace trainyard
