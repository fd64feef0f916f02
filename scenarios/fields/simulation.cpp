// The fields of `simulation`: what disturbs a simulated step. simulator/step/conditions.h checks
// later that the cluster has the ranks and links that they name.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "model/cluster/topology.h"
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"

namespace trainyard {
namespace {

constexpr std::array kVertexKinds = {VertexKind::device, VertexKind::nvlink_switch,
                                     VertexKind::host,   VertexKind::nic,
                                     VertexKind::leaf,   VertexKind::spine};
constexpr TextShape kPlace = {"(device|nvlink-switch|host|nic|leaf|spine) [0-9]{1,7}",
                              "a place such as \"nic 3\", \"device 3\", \"leaf 0\" or \"spine 0\""};

// Requires: `text` matches kPlace.
TopologyPlace place_of(const std::string& text) {
  const std::size_t space = text.find(' ');
  TopologyPlace place;
  place.kind = *std::ranges::find(kVertexKinds, text.substr(0, space), word_of);
  std::from_chars(text.data() + space + 1, text.data() + text.size(), place.index);
  return place;
}

template <typename M>
Field<DegradedLinks> place_field(std::string_view key, M DegradedLinks::*member,
                                 std::string_view doc) {
  return detail::scalar(
      key, member, {kPlace}, doc,
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
      "Where two entries meet on a device, their speeds multiply.",
      {
          count("rank", &S::rank,
                "number of the slow device; devices are numbered node by node, those of unlike "
                "nodes in the order of their stages",
                kIndex)
              .absent("`node` names the devices"),
          count("node", &S::node, "number of the node whose devices are all slow", kIndex)
              .absent("`rank` names the device"),
          number("speed", &S::speed,
                 "speed of its kernels over the usual one: at 0.5 they take twice as long",
                 {1e-4, 10})
              .required(),
          quantity("from", &S::from, "time in the step: kernels that begin at it or later are slow",
                   Zero::allowed),
          quantity("until", &S::until,
                   "time in the step: kernels that begin at it or later are as usual")
              .absent("to the end of the step"),
      });
  return section;
}

const Section<DegradedLinks>& degraded_links_section() {
  using D = DegradedLinks;
  static const Section<D> section(
      "degraded_links", "A slow NIC or switch, or a degraded cable.",
      {
          place_field("of", &D::of,
                      "place all of whose links are slow; the switches of a dragonfly, torus or "
                      "graph are leaves")
              .required(),
          place_field("to", &D::to, "other end, if only the links between the two places are slow")
              .absent("all links of `of`"),
          number("rate", &D::rate, "share of the links' bandwidth that is left, in both directions",
                 {1e-4, 1})
              .required(),
      });
  return section;
}

constexpr std::array kLengthLaws = {Named<LengthLaw>{"uniform", LengthLaw::uniform},
                                    Named<LengthLaw>{"lognormal", LengthLaw::lognormal}};
constexpr CountShape kLength{.most = 1e8};

// Reads one number from each line; empty lines are skipped.
Expected<void> read_length_lines(const std::string& path, SequenceMix& mix, const Place& place) {
  const auto opened = open_text(path, place);
  if (!opened) return tl::unexpected(opened.error());
  std::istringstream lines(opened->text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    std::int64_t length = 0;
    const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), length);
    const bool whole = problem == std::errc() && end == line.data() + line.size();
    if (!whole || length < 1 || length > static_cast<std::int64_t>(kLength.most)) {
      return failure(fmt::format("{}: line {}", opened->document.name, number),
                     fmt::format("found {}; allowed: {}", shown(std::string_view(line)),
                                 allowed(Shape{kLength})));
    }
    mix.lengths.push_back(length);
  }
  if (!mix.lengths.empty()) return {};
  return failure(opened->document.name, "found no lengths; allowed: one a line");
}

Field<SequenceMix> lengths_field() {
  return {
      {.key = "lengths",
       .shape = {AnyShape{{Shape{ListShape{{Shape{kLength}}}},
                           Shape{PathShape{"a text file of lengths, one a line"}}}}},
       .doc = "length of each sequence in turn, in tokens; after the last the list starts again",
       .absent = "drawn from `distribution`"},
      [](const Json& value, SequenceMix& mix, const Place& place) -> Expected<void> {
        if (value.is_string()) return read_length_lines(value.get<std::string>(), mix, place);
        for (const Json& length : value) {
          mix.lengths.push_back(static_cast<std::int64_t>(length.get<double>()));
        }
        return {};
      },
      [](const SequenceMix& mix) -> std::optional<Json> {
        return mix.lengths.empty() ? std::nullopt : std::optional<Json>(mix.lengths);
      }};
}

const Section<SequenceMix>& sequences_section() {
  using S = SequenceMix;
  static const Section<S> section(
      "sequences",
      "Sequences of unlike lengths, cut at the training's `sequence_length`; `global_batch` counts "
      "them, or the rows that they are packed into. Nothing is padded: a micro-batch has the "
      "tokens "
      "of its sequences, and attention stays inside each.",
      {
          choice("distribution", &S::law, kLengthLaws, "distribution from which lengths are drawn")
              .absent("`lengths` lists them"),
          count("shortest", &S::shortest,
                "uniform: shortest length, in tokens; the longest is `sequence_length`", kLength),
          count("mean", &S::mean, "lognormal: mean length, in tokens", kLength)
              .absent("allowed only without lognormal"),
          number("deviation", &S::deviation,
                 "lognormal: standard deviation of the length over its mean", {0, 10}),
          lengths_field(),
          flag("packed", &S::packed,
               "whether documents lie one behind the other in rows of `sequence_length`, cut where "
               "a row ends"),
          flag("balanced", &S::balanced,
               "whether micro-batches are made even: the longest sequence first, each to the "
               "micro-batch with least work; false: in order"),
          flag("dynamic", &S::dynamic,
               "whether micro-batches have whole sequences with `micro_batch` × `sequence_length` "
               "tokens at most: each replica deals its own evenly (with `balanced` all of them "
               "over all replicas) into as few micro-batches as the fullest one needs, rounded up "
               "to a number that the schedule takes (for interleaved-1f1b a multiple of the "
               "stages), never above the plan's, which a pass list keeps, also the one that "
               "`schedule` `auto` finds; not with `packed`"),
      });
  return section;
}

Field<ExpertRouting> shares_field() {
  return {
      {.key = "shares",
       .shape = {ListShape{{Shape{NumberShape{0, 1e12}}}}},
       .doc =
           "popularity of each expert, in any unit, as a run counted it; the same in every layer",
       .absent = "popularity follows `skew`"},
      [](const Json& value, ExpertRouting& routing, const Place&) -> Expected<void> {
        routing.shares = value.get<std::vector<double>>();
        return {};
      },
      [](const ExpertRouting& routing) -> std::optional<Json> {
        return routing.shares.empty() ? std::nullopt : std::optional<Json>(routing.shares);
      }};
}

const Section<ExpertRouting>& routing_section() {
  static const Section<ExpertRouting> section(
      "routing",
      "How tokens spread over the experts of each layer, in place of the plan's `load_imbalance`. "
      "The tokens of a rank set the time of its kernels, those of the busiest rank the time of the "
      "all-to-alls.",
      {
          number("skew", &ExpertRouting::skew,
                 "Zipf exponent z: the k-th most popular expert of a layer has a share in "
                 "proportion to k^-z; which one that is is drawn; 0: all alike",
                 {0, 10}),
          shares_field(),
      });
  return section;
}

}  // namespace

const Section<StepConditions>& simulation_section() {
  using S = StepConditions;
  static const Section<S> section(
      "simulation", "What disturbs a simulated step (`trainyard simulate`, `compare`).",
      {
          objects<straggler_section>("stragglers", &S::stragglers, "slow devices").absent("none"),
          number("jitter", &S::jitter,
                 "standard deviation of a kernel's time over its mean (lognormal)", {0, 10}),
          count("seed", &S::seed,
                "random seed of everything that is drawn: the same seed, the same step",
                {.least = 0, .most = 1e15}),
          objects<degraded_links_section>("links", &S::links,
                                          "NICs, switches and cables below their full bandwidth")
              .absent("none"),
          object<sequences_section>("sequences", &S::sequences, "unlike lengths of the sequences")
              .absent("all of the full length"),
          object<routing_section>("routing", &S::routing, "how tokens spread over the experts")
              .absent("even, or as the plan's `load_imbalance` says"),
      });
  return section;
}

}  // namespace trainyard
