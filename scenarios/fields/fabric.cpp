// The figures of a fabric, which a fabric document and a spelled-out cluster share, and the fabric
// that a user draws: switches by name, and links between them and the nodes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "scenarios/fields/documents.h"
#include "scenarios/json/nearest_name.h"

namespace trainyard {
namespace {

constexpr NumberShape kOversubscription{.least = 1, .most = 1e3};
constexpr CountShape kSwitches{.most = 4096};

constexpr std::array kFabricKinds = {Named<InterNodeKind>{"fat-tree", InterNodeKind::fat_tree},
                                     Named<InterNodeKind>{"rail", InterNodeKind::rail},
                                     Named<InterNodeKind>{"dragonfly", InterNodeKind::dragonfly},
                                     Named<InterNodeKind>{"torus", InterNodeKind::torus},
                                     Named<InterNodeKind>{"graph", InterNodeKind::graph}};

constexpr std::array kRoutings = {Named<FabricRouting>{"adaptive", FabricRouting::adaptive},
                                  Named<FabricRouting>{"static", FabricRouting::static_paths},
                                  Named<FabricRouting>{"valiant", FabricRouting::valiant}};

std::string_view name_of(InterNodeKind kind) {
  return std::ranges::find(kFabricKinds, kind, &Named<InterNodeKind>::value)->name;
}

// ---- A drawn fabric -----------------------------------------------------------------------------

struct DrawnLink {
  std::string from, to;
  BytesPerSecond bandwidth;
};

const Section<DrawnLink>& link_section() {
  using D = DrawnLink;
  static const Section<D> section(
      "fabric_link", "A cable, or a bundle of them, of a drawn fabric.",
      {
          text("from", &D::from,
               "one end: a name in `switches`, or a node: \"node-0\", \"node-1\", …")
              .required(),
          text("to", &D::to, "other end: a switch if `from` is a node").required(),
          quantity("bandwidth", &D::bandwidth, "bandwidth of the whole bundle, per direction")
              .required(),
      });
  return section;
}

constexpr std::string_view kNode = "node-";

// The number of a node: 3 for "node-3"; −1: not a node's name.
int node_in(std::string_view name) {
  constexpr std::size_t kMostDigits = 7;
  if (!name.starts_with(kNode)) return -1;
  const std::string_view digits = name.substr(kNode.size());
  int node = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), node);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && node >= 0 && digits.size() <= kMostDigits ? node : -1;
}

std::string name_of(FabricEnd end, const InterNode& inter) {
  return end.node ? fmt::format("{}{}", kNode, end.index)
                  : inter.switches[static_cast<std::size_t>(end.index)];
}

using SwitchNumbers = std::unordered_map<std::string_view, int>;  // by name

Expected<FabricEnd> end_of(const std::string& name, const SwitchNumbers& numbers,
                           const InterNode& inter, const Place& place) {
  if (const int node = node_in(name); node >= 0) return FabricEnd{true, node};
  if (const auto found = numbers.find(name); found != numbers.end()) {
    return FabricEnd{false, found->second};
  }
  const std::string nearest = nearest_name(name, inter.switches);
  return place.error(
      fmt::format("found {}; allowed: a name in `switches`, or \"node-0\", \"node-1\", …{}",
                  shown(std::string_view(name)),
                  nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest)));
}

Expected<FabricLink> link_of(const Json& value, const SwitchNumbers& numbers,
                             const InterNode& inter, const Place& place) {
  DrawnLink drawn;
  if (auto done = link_section().read(value, drawn, place); !done) {
    return tl::unexpected(done.error());
  }
  const auto from = end_of(drawn.from, numbers, inter, place / "from");
  if (!from) return tl::unexpected(from.error());
  const auto to = end_of(drawn.to, numbers, inter, place / "to");
  if (!to) return tl::unexpected(to.error());
  if (from->node && to->node) {
    return place.error(
        "found a link between two nodes; allowed: a switch at one end (a node that passes traffic "
        "on has one of its own)");
  }
  if (*from == *to) {
    return place.error(fmt::format("found a link from {} to itself; allowed: two ends",
                                   shown(std::string_view(drawn.from))));
  }
  return FabricLink{*from, *to, drawn.bandwidth};
}

Expected<void> read_links(const Json& value, InterNode& inter, const Place& place) {
  using Ends = std::pair<std::pair<bool, int>, std::pair<bool, int>>;
  std::set<Ends> seen;
  SwitchNumbers numbers;
  for (const std::string& name : inter.switches) {
    numbers.emplace(name, static_cast<int>(numbers.size()));
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto link = link_of(value[i], numbers, inter, place / i);
    if (!link) return tl::unexpected(link.error());
    const std::pair from(link->from.node, link->from.index);
    const std::pair to(link->to.node, link->to.index);
    if (!seen.insert(std::minmax(from, to)).second) {
      return (place / i).error(
          fmt::format("found a second link between {} and {}; allowed: one, with the bandwidth of "
                      "all",
                      name_of(link->from, inter), name_of(link->to, inter)));
    }
    inter.links.push_back(*link);
  }
  return {};
}

std::optional<Json> write_links(const InterNode& inter) {
  if (inter.links.empty()) return std::nullopt;
  Json list = Json::array();
  for (const FabricLink& link : inter.links) {
    list.push_back(
        link_section().write({name_of(link.from, inter), name_of(link.to, inter), link.bandwidth}));
  }
  return list;
}

Expected<void> read_switches(const Json& value, InterNode& inter, const Place& place) {
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < value.size(); ++i) {
    std::string name = value[i].get<std::string>();
    const bool twice = !seen.insert(name).second;
    if (twice || node_in(name) >= 0) {
      return (place / i).error(fmt::format("found {}{}; allowed: a name of its own, not a node's",
                                           shown(std::string_view(name)),
                                           twice ? " a second time" : ""));
    }
    inter.switches.push_back(std::move(name));
  }
  return {};
}

// ---- Lists --------------------------------------------------------------------------------------

// A list that is read as a whole, and not written if it is empty.
template <typename M>
Field<InterNode> list(std::string_view key, M InterNode::*member, Shape element,
                      std::string_view doc) {
  return {{.key = std::string(key),
           .shape = {ListShape{{std::move(element)}}},
           .doc = std::string(doc)},
          [member](const Json& value, InterNode& inter, const Place&) -> Expected<void> {
            inter.*member = value.get<M>();
            return {};
          },
          [member](const InterNode& inter) -> std::optional<Json> {
            return (inter.*member).empty() ? std::nullopt : std::optional<Json>(inter.*member);
          }};
}

// A key, whether it is present, and the kinds of fabric for which it has a meaning.
struct KeyOfKind {
  std::string_view key;
  bool (*said)(const InterNode& inter);
  std::vector<InterNodeKind> kinds;
  bool required = false;
};

const std::vector<KeyOfKind>& keys_of_kinds() {
  using enum InterNodeKind;
  using I = const InterNode&;
  static const std::vector<KeyOfKind> keys = {
      {"oversubscription", [](I i) { return i.oversubscription > 1; }, {fat_tree, rail}},
      {"link_bandwidth", [](I i) { return i.link_bandwidth.value() > 0; }, {dragonfly, torus}},
      {"dimensions", [](I i) { return !i.dimensions.empty(); }, {torus}},
      {"leaves_per_group", [](I i) { return i.leaves_per_group > 0; }, {dragonfly}, true},
      {"global_links", [](I i) { return i.global_links > 0; }, {dragonfly}, true},
      {"switches", [](I i) { return !i.switches.empty(); }, {graph}, true},
      {"links", [](I i) { return !i.links.empty(); }, {graph}, true},
  };
  return keys;
}

Expected<void> check_key(const KeyOfKind& rule, const InterNode& inter, const Place& place) {
  const bool meant = std::ranges::find(rule.kinds, inter.kind) != rule.kinds.end();
  const bool said = rule.said(inter);
  if (said && !meant) {
    std::string names;
    for (const InterNodeKind kind : rule.kinds) {
      names += fmt::format("{}\"{}\"", names.empty() ? "" : " or ", name_of(kind));
    }
    return (place / rule.key)
        .error(
            fmt::format("found it with kind \"{}\"; allowed: with {}", name_of(inter.kind), names));
  }
  if (!rule.required || !meant || said) return {};
  return place.error(fmt::format("found no \"{}\"; allowed: absent unless kind is \"{}\"", rule.key,
                                 name_of(inter.kind)));
}

}  // namespace

std::vector<Field<InterNode>> inter_node_fields() {
  using I = InterNode;
  return {
      choice("kind", &I::kind, kFabricKinds, "topology: how the switches are wired"),
      count("nics_per_node", &I::nics_per_node, "number of NICs of a node that reach this fabric"),
      quantity("bandwidth", &I::bandwidth, "bandwidth of one NIC, per direction"),
      number("oversubscription", &I::oversubscription,
             "bandwidth into a leaf switch over bandwidth out of it (fat-tree, rail)",
             kOversubscription),
      count("nodes_per_leaf", &I::nodes_per_leaf,
            "number of nodes below one leaf (or rail, or dragonfly) switch"),
      number("efficiency", &I::efficiency, "share of the links' bandwidth that messages attain",
             {1e-4, 1}),
      quantity("latency", &I::latency, "latency (α) of one message step between nodes",
               Zero::allowed),
      quantity(
          "small_latency", &I::small_latency,
          "latency (α) of one message step with the protocol for small messages (NCCL's LL, LL128)",
          Zero::allowed),
      number("small_share", &I::small_share,
             "bandwidth of the protocol for small messages over the other's; 0: there is none",
             {0, 1}),
      choice("routing", &I::routing, kRoutings,
             "paths of traffic: adaptive: evenly over all shortest ones, whatever their load; "
             "static: one of them for each pair of NICs, by hash (ECMP), in a torus dimension by "
             "dimension; valiant: through third groups (dragonfly)"),
      quantity("link_bandwidth", &I::link_bandwidth,
               "bandwidth of a link between two switches, per direction (torus, dragonfly)")
          .absent("dragonfly: `bandwidth`; torus: the bandwidth of the node's NICs, divided among "
                  "its neighbours"),
      list("dimensions", &I::dimensions, {CountShape{.most = 256}},
           "torus: nodes along each dimension; their product is the number of nodes")
          .absent("three dimensions, as near to a cube as the nodes divide"),
      count("leaves_per_group", &I::leaves_per_group,
            "dragonfly: number of switches in a group, all linked with each other", kSwitches)
          .absent("allowed only without a dragonfly"),
      count("global_links", &I::global_links,
            "dragonfly: number of links of a switch to other groups, which share them evenly",
            kSwitches)
          .absent("allowed only without a dragonfly"),
      Field<I>{{.key = "switches",
                .shape = {ListShape{{Shape{TextShape{}}}}},
                .doc = "graph: names of the switches",
                .absent = "allowed only without a graph"},
               read_switches,
               [](const I& inter) -> std::optional<Json> {
                 return inter.switches.empty() ? std::nullopt : std::optional<Json>(inter.switches);
               }},
      Field<I>{{.key = "links",
                .shape = {ListShape{{Shape{ObjectShape{&spec_of<link_section>, {}}}}}},
                .doc = "graph: links between switches, and between switches and nodes; a node's "
                       "NICs are dealt out to its links",
                .absent = "allowed only without a graph"},
               read_links,
               write_links},
  };
}

Expected<void> check_keys_of_kind(const InterNode& inter, const Place& place) {
  if (inter.kind == InterNodeKind::none) return {};
  for (const KeyOfKind& key : keys_of_kinds()) {
    if (auto done = check_key(key, inter, place); !done) return done;
  }
  const bool share = inter.small_share > 0;
  if (share != (inter.small_latency > Seconds(0))) {
    const auto [found, missing] = share ? std::pair("small_share", "small_latency")
                                        : std::pair("small_latency", "small_share");
    return (place / found)
        .error(fmt::format("found it without \"{}\" above 0; allowed: both or neither", missing));
  }
  if (inter.routing == FabricRouting::valiant && inter.kind != InterNodeKind::dragonfly) {
    return (place / "routing")
        .error(fmt::format("found \"valiant\" with kind \"{}\"; allowed: \"adaptive\", \"static\"",
                           name_of(inter.kind)));
  }
  return {};
}

}  // namespace trainyard
