#include "model/cost/collective.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "model/cost/messages/collective_steps.h"
#include "model/cost/messages/known_collectives.h"

namespace trainyard {
namespace {

// Bytes that cross a rank's link in the bandwidth-optimal algorithm, over S.
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

// A curve at one message size: its latency, and the rest of its time.
struct CurvePoint {
  Seconds latency;
  Seconds moving;
};

double correction(const CollectiveCurve& curve, Bytes message) {
  if (curve.residual.empty()) return 1;
  return std::exp(residual_at(curve.residual, std::array{std::log2(message.value())}));
}

// `stretch`: factor on the √S term.
CurvePoint at(const CollectiveCurve& curve, Bytes message, double stretch = 1) {
  const Seconds bytes =
      message / curve.bandwidth + Seconds(stretch * curve.root * std::sqrt(message.value()));
  return {curve.latency, (curve.latency + bytes) * correction(curve, message) - curve.latency};
}

// NCCL reduces in the switch (NVLS) among more than four devices.
constexpr int kLeastInSwitch = 5;

// A rank also copies its own part of S, in its own memory. The time of that over the time of a part
// on a link, from the curves of A100, H100 and B200 at 2 and 8 devices.
double own_share(CollectiveOperation operation) {
  switch (operation) {
    case CollectiveOperation::all_gather:
    case CollectiveOperation::reduce_scatter:
      return 0.45;
    case CollectiveOperation::all_reduce:
    case CollectiveOperation::all_to_all:
      return 0.2;
    case CollectiveOperation::broadcast:
    case CollectiveOperation::send:
      break;
  }
  return 0;
}

// A curve beyond the fitted sizes. The latency grows as ⌈log₂ n⌉ above them and as the steps of a
// ring below; the bytes' part as a ring's share of S, copies included. A reduction in the switch
// moves the same bytes for any number of ranks, and only its √S term grows (NVL72: within 7 % at 72
// devices).
CurvePoint extended(const CollectiveCurve& curve, int ranks, Bytes message) {
  const bool in_switch = curve.operation == CollectiveOperation::all_reduce &&
                         curve.gpus >= kLeastInSwitch && ranks > curve.gpus;
  const double n = ranks;
  const double above = static_cast<double>(log2_ceil(ranks)) / log2_ceil(curve.gpus);
  const double latency = ranks > curve.gpus ? above : (n - 1) / (curve.gpus - 1);
  if (in_switch) {
    const CurvePoint fitted = at(curve, message, std::sqrt(n / curve.gpus));
    return {fitted.latency * latency, fitted.moving};
  }
  const CurvePoint fitted = at(curve, message);
  const double own = own_share(curve.operation);
  const auto share = [own](double members) { return (members - 1 + own) / members; };
  return {fitted.latency * latency, fitted.moving * share(n) / share(curve.gpus)};
}

// A curve between two fitted sizes: the latency is linear in the steps of a ring, n−1, the bytes'
// part in (n−1)/n, which is exact for a ring that also copies its own part.
CurvePoint between(const CollectiveCurve& below, const CollectiveCurve& above, int ranks,
                   Bytes message) {
  const auto share = [](int n) { return wire_share(CollectiveOperation::all_gather, n); };
  const double steps = static_cast<double>(ranks - below.gpus) / (above.gpus - below.gpus);
  const double weight =
      (share(ranks) - share(below.gpus)) / (share(above.gpus) - share(below.gpus));
  const CurvePoint low = at(below, message);
  const CurvePoint high = at(above, message);
  return {low.latency + (high.latency - low.latency) * steps,
          low.moving + (high.moving - low.moving) * weight};
}

// The curves of an operation with the fitted sizes next to `ranks`; null where there is none.
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

// A curve's point on links of another bandwidth: its bytes' part is stretched. It is negative where
// the residual puts the smallest messages below the latency; bandwidth has no influence on that.
CurvePoint stretched(CurvePoint point, double stretch) {
  if (point.moving > Seconds(0)) point.moving *= stretch;
  return point;
}

// The same curves on the links of a choice.
struct OwnCurves {
  Neighbours near;
  double stretch = 1;

  bool known() const { return near.below || near.above; }
  CurvePoint at(int ranks, Bytes message) const {
    return stretched(fitted(near, ranks, message), stretch);
  }
};
OwnCurves own_curves(CollectiveOperation operation, int ranks, const CollectiveChoice& choice) {
  return {neighbours(choice.curves, operation, ranks), choice.stretch};
}

// The bytes' part of a curve on these links. In a mesh, a few members have only a few links between
// them, whatever machine the curve comes from, so it is at least what those allow.
Seconds moving_on(const GroupLinks& links, CollectiveOperation operation, int ranks, Bytes message,
                  Seconds moving) {
  const bool mesh = !links.switched && !links.one_link;
  return mesh ? std::max(moving, wire_share(operation, ranks) * message / links.inside) : moving;
}

// The links with the bandwidth inside a domain that the device's measured collective attains there.
GroupLinks with_attained_inside(CollectiveOperation operation, GroupLinks links, Bytes message,
                                const CollectiveChoice& choice) {
  const int ranks = links.ranks_per_domain;
  const OwnCurves own = own_curves(operation, ranks, choice);
  if (ranks < 2 || !own.known()) return links;
  const Seconds moving = moving_on(links, operation, ranks, message, own.at(ranks, message).moving);
  if (message <= Bytes(0) || moving <= Seconds(0)) return links;
  const BytesPerSecond attained = wire_share(operation, ranks) * message / moving;
  links.inside_pair *= attained / links.inside;
  links.inside = attained;
  return links;
}

// The algorithms of one operation.
using Choices = std::vector<const CollectiveAlgorithm*>;
const Choices& choices_of(CollectiveOperation operation) {
  static const auto choices = [] {
    std::array<Choices, kCollectiveOperations> all;
    for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
      all[static_cast<std::size_t>(algorithm->operation)].push_back(algorithm);
    }
    return all;
  }();
  return choices[static_cast<std::size_t>(operation)];
}

bool asks_for_its_name(const CollectiveAlgorithm& algorithm, const GroupLinks& links) {
  return algorithm.only_by_name != nullptr && algorithm.only_by_name(links);
}

struct Carried {
  const CollectiveAlgorithm* algorithm = nullptr;
  Seconds time{std::numeric_limits<double>::infinity()};
  bool by_small_protocol = false;
};
Carried fastest(CollectiveOperation operation, const GroupLinks& links, Bytes message) {
  Carried best;
  for (const CollectiveAlgorithm* algorithm : choices_of(operation)) {
    if (!algorithm->applies(links) || asks_for_its_name(*algorithm, links)) continue;
    const Seconds time = algorithm->time(links, message);
    if (time < best.time) best = {algorithm, time};
  }
  return best;
}

// The links as the protocol for small messages uses them.
GroupLinks by_small_protocol(GroupLinks links) {
  links.across_latency = links.small_latency;
  links.across *= links.small_share;
  links.passing *= links.small_share;
  links.across_all_to_all *= links.small_share;
  return links;
}

// A library takes the protocol that it predicts to be faster (NCCL's tuner).
template <typename Carry>
Carried by_faster_protocol(const GroupLinks& links, Carry carry) {
  const Carried bulk = carry(links);
  if (links.small_share == 0 || links.domains == 1) return bulk;
  Carried small = carry(by_small_protocol(links));
  small.by_small_protocol = true;
  return small.time < bulk.time ? small : bulk;
}

const CollectiveAlgorithm* named(CollectiveOperation operation, const GroupLinks& links,
                                 const CollectiveChoice& choice) {
  if (choice.algorithm.empty()) return nullptr;
  const auto* found = find_collective_algorithm(operation, choice.algorithm);
  return found != nullptr && found->applies(links) ? found : nullptr;
}

// The measured cost inside a domain, by whatever algorithm the library chose; none: not measured.
std::optional<CollectiveCost> measured(CollectiveOperation operation, const GroupLinks& links,
                                       Bytes message, const CollectiveChoice& choice) {
  if (links.domains > 1) return std::nullopt;
  const OwnCurves own = own_curves(operation, links.size, choice);
  if (!own.known()) return std::nullopt;
  const CurvePoint point = own.at(links.size, message);
  const Seconds moving = moving_on(links, operation, links.size, message, point.moving);
  return CollectiveCost{point.latency + moving, point.latency, nullptr};
}

// Requires: more than one rank. `latency`: whether to compute an algorithm's latency too.
CollectiveCost cost_of(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                       const CollectiveChoice& choice, bool latency) {
  const auto* chosen = named(operation, links, choice);
  const auto own = measured(operation, links, message, choice);
  if (own && (chosen == nullptr || chosen->time(links, message) < own->time)) return *own;
  const GroupLinks found =
      links.domains > 1 ? with_attained_inside(operation, links, message, choice) : links;
  const Carried carried = by_faster_protocol(found, [&](const GroupLinks& by) {
    return chosen == nullptr ? fastest(operation, by, message)
                             : Carried{chosen, chosen->time(by, message)};
  });
  CollectiveCost cost{carried.time, {}, carried.algorithm};
  if (latency && carried.algorithm != nullptr) {
    const GroupLinks by = carried.by_small_protocol ? by_small_protocol(found) : found;
    cost.latency = carried.algorithm->time(by, Bytes(0));
  }
  return cost;
}

}  // namespace

CollectiveChoice collective_choice(std::string_view algorithm, const Cluster& cluster) {
  const Device& device = cluster.device;
  CollectiveChoice choice{algorithm, device.collectives};
  if (!device.link_kind) return choice;
  if (*device.link_kind != cluster.intra.kind) {
    choice.curves = {};
  } else {
    choice.stretch = device.link_bandwidth / cluster.intra.bandwidth;
  }
  return choice;
}

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
  if (choice.known != nullptr) return choice.known->cost(operation, links, message, choice).time;
  return cost_of(operation, links, message, choice, false).time;
}

CollectiveCost collective_cost(CollectiveOperation operation, const GroupLinks& links,
                               Bytes message, const CollectiveChoice& choice) {
  if (links.size <= 1) return {};
  if (choice.known != nullptr) return choice.known->cost(operation, links, message, choice);
  return cost_of(operation, links, message, choice, true);
}

const CollectiveAlgorithm* collective_algorithm(CollectiveOperation operation,
                                                const GroupLinks& links, Bytes message,
                                                const CollectiveChoice& choice) {
  if (const auto* chosen = named(operation, links, choice)) return chosen;
  const GroupLinks attained =
      links.domains > 1 ? with_attained_inside(operation, links, message, choice) : links;
  return fastest(operation, attained, message).algorithm;
}

BytesPerSecond bus_bandwidth(CollectiveOperation operation, int ranks, Bytes message,
                             Seconds time) {
  return wire_share(operation, ranks) * message / time;
}

double contending_share(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                        const CollectiveCost& cost) {
  if (links.domains == 1 || cost.time <= Seconds(0)) return 1;
  const Seconds moving = wire_share(operation, links.size) * message / links.inside;
  return std::min(1.0, (cost.latency + moving) / cost.time);
}

}  // namespace trainyard
