#include "model/cost/collective.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/cost/collective_steps.h"

namespace trainyard {
namespace {

// The share of S that crosses a rank's link when the bandwidth is all that counts.
double wire_share(CollectiveOperation operation, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  switch (operation) {
    case CollectiveOperation::all_reduce:
      return 2 * share;
    case CollectiveOperation::all_gather:
    case CollectiveOperation::reduce_scatter:
    case CollectiveOperation::all_to_all:
      return share;
    case CollectiveOperation::broadcast:
    case CollectiveOperation::send:
      break;
  }
  return 1;
}

// A curve at one message size: what is fixed, and what the bytes take.
struct CurvePoint {
  Seconds latency;
  Seconds moving;
};

CurvePoint at(const CollectiveCurve& curve, Bytes message) {
  return {curve.latency,
          message / curve.bandwidth + Seconds(curve.root * std::sqrt(message.value()))};
}

// Beyond the fitted sizes: the bytes' part as (n−1)/n, the latency as ⌈log₂ n⌉.
CurvePoint extended(const CollectiveCurve& curve, int ranks, Bytes message) {
  const CurvePoint fitted = at(curve, message);
  const auto share = [](int n) { return wire_share(CollectiveOperation::all_gather, n); };
  return {fitted.latency * log2_ceil(ranks) / log2_ceil(curve.gpus),
          fitted.moving * share(ranks) / share(curve.gpus)};
}

// Between two fitted sizes: straight in (n−1)/n.
CurvePoint between(const CollectiveCurve& below, const CollectiveCurve& above, int ranks,
                   Bytes message) {
  const auto share = [](int n) { return wire_share(CollectiveOperation::all_gather, n); };
  const double weight =
      (share(ranks) - share(below.gpus)) / (share(above.gpus) - share(below.gpus));
  const CurvePoint low = at(below, message);
  const CurvePoint high = at(above, message);
  return {low.latency + (high.latency - low.latency) * weight,
          low.moving + (high.moving - low.moving) * weight};
}

// The fitted sizes of an operation next to `ranks`; null where there is none.
struct Neighbours {
  const CollectiveCurve* below = nullptr;  // or equal
  const CollectiveCurve* above = nullptr;  // or equal
};
Neighbours neighbours(std::span<const CollectiveCurve> curves, CollectiveOperation operation,
                      int ranks) {
  Neighbours found;
  for (const CollectiveCurve& curve : curves) {
    if (curve.operation != operation || curve.gpus < 2) continue;
    if (curve.gpus <= ranks && (!found.below || curve.gpus > found.below->gpus)) {
      found.below = &curve;
    }
    if (curve.gpus >= ranks && (!found.above || curve.gpus < found.above->gpus)) {
      found.above = &curve;
    }
  }
  return found;
}

// Requires: `near` is not empty.
CurvePoint fitted(const Neighbours& near, int ranks, Bytes message) {
  if (!near.below) return extended(*near.above, ranks, message);
  if (!near.above) return extended(*near.below, ranks, message);
  if (near.below == near.above) return at(*near.below, message);
  return between(*near.below, *near.above, ranks, message);
}

bool known(const Neighbours& near) { return near.below || near.above; }

// The links with the rate inside a domain that the device's own collective attains there.
GroupLinks with_attained_inside(CollectiveOperation operation, GroupLinks links, Bytes message,
                                std::span<const CollectiveCurve> curves) {
  const int ranks = links.ranks_per_domain;
  const Neighbours near = neighbours(curves, operation, ranks);
  if (ranks < 2 || !known(near) || message.value() <= 0) return links;
  const BytesPerSecond attained =
      wire_share(operation, ranks) * message / fitted(near, ranks, message).moving;
  links.inside_pair *= attained / links.inside;
  links.inside = attained;
  return links;
}

Seconds fastest(CollectiveOperation operation, const GroupLinks& links, Bytes message) {
  Seconds best(std::numeric_limits<double>::infinity());
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    if (algorithm->operation != operation || algorithm->only_by_name) continue;
    if (algorithm->applies(links)) best = std::min(best, algorithm->time(links, message));
  }
  return best;
}

}  // namespace

const CollectiveAlgorithm* find_collective_algorithm(CollectiveOperation operation,
                                                     std::string_view name) {
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    if (algorithm->operation == operation && algorithm->name == name) return algorithm;
  }
  return nullptr;
}

Seconds collective_time(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                        const CollectiveChoice& choice) {
  if (links.size <= 1) return Seconds(0);
  if (!choice.algorithm.empty()) {
    const auto* named = find_collective_algorithm(operation, choice.algorithm);
    if (named && named->applies(links)) return named->time(links, message);
  }
  if (links.domains > 1) {
    return fastest(operation, with_attained_inside(operation, links, message, choice.curves),
                   message);
  }
  const Neighbours near = neighbours(choice.curves, operation, links.size);
  if (!known(near)) return fastest(operation, links, message);
  const CurvePoint point = fitted(near, links.size, message);
  return point.latency + point.moving;
}

BytesPerSecond bus_bandwidth(CollectiveOperation operation, int ranks, Bytes message,
                             Seconds time) {
  return wire_share(operation, ranks) * message / time;
}

}  // namespace trainyard
