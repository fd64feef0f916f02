// The fields of `simulation`: what disturbs a simulated step. That the cluster has the ranks and
// links that are named, simulator/step_conditions.h checks when all else is read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "model/cluster/topology.h"
#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

constexpr std::array kVertexKinds = {VertexKind::device, VertexKind::nvlink_switch,
                                     VertexKind::host,   VertexKind::nic,
                                     VertexKind::leaf,   VertexKind::spine};
constexpr TextShape kPlace = {"(device|nvlink-switch|host|nic|leaf|spine) [0-9]{1,7}",
                              "a place such as \"nic 3\", \"device 3\", \"leaf 0\" or \"spine 0\""};

// Requires: it fits kPlace.
TopologyPlace place_of(const std::string& text) {
  const std::size_t space = text.find(' ');
  TopologyPlace place;
  place.kind = *std::ranges::find(kVertexKinds, text.substr(0, space), word_of);
  std::from_chars(text.data() + space + 1, text.data() + text.size(), place.index);
  return place;
}

template <typename M>
Field<DegradedLinks> place_field(std::string key, M DegradedLinks::*member, std::string doc) {
  return detail::scalar(
      std::move(key), member, {kPlace}, std::move(doc),
      [](const Json& value) { return place_of(value.get<std::string>()); },
      [](const TopologyPlace& place) -> std::optional<Json> {
        return fmt::format("{} {}", word_of(place.kind), place.index);
      });
}

const Section<Straggler>& straggler_section() {
  using S = Straggler;
  constexpr CountShape kIndex{.least = 0, .most = 1e7};
  static const Section<S> section(
      "slow_devices",
      "A device whose kernels are slow, or all devices of a node; with `from` one that throttles. "
      "Where two meet on a device, their speeds multiply.",
      {
          count("rank", &S::rank, "the device; devices are numbered node by node", kIndex)
              .absent("`node` says it"),
          count("node", &S::node, "all devices of this node", kIndex).absent("`rank` says it"),
          number("speed", &S::speed, "of its kernels over that of the others", {0, 10, false})
              .required(),
          quantity("from", &S::from, "kernels that begin so long after the step does",
                   Zero::allowed),
          quantity("until", &S::until, "the same").absent("to the end of the step"),
      });
  return section;
}

const Section<DegradedLinks>& degraded_links_section() {
  using D = DegradedLinks;
  static const Section<D> section(
      "degraded_links", "A slow NIC or switch, or a degraded cable.",
      {
          place_field("of", &D::of,
                      "all links of this place; the switches of a dragonfly, torus or graph are "
                      "leaves")
              .required(),
          place_field("to", &D::to, "only those to this one").absent("all"),
          number("rate", &D::rate, "of their bandwidth, both directions", {0, 1, false}).required(),
      });
  return section;
}

}  // namespace

const Section<StepConditions>& simulation_section() {
  using S = StepConditions;
  static const Section<S> section(
      "simulation", "What disturbs a simulated step (`trainyard simulate`, `compare`).",
      {
          objects<straggler_section>("stragglers", &S::stragglers, "devices that are slow")
              .absent("none"),
          number("jitter", &S::jitter,
                 "standard deviation of a kernel's time over its mean (lognormal)", {0, 10}),
          count("seed", &S::seed, "of everything that is drawn: the same seed, the same step",
                {.least = 0, .most = 1e15}),
          objects<degraded_links_section>("links", &S::links,
                                          "NICs, switches and cables below "
                                          "their bandwidth")
              .absent("none"),
      });
  return section;
}

}  // namespace trainyard
