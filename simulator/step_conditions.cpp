#include "simulator/step_conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/cluster/cluster.h"
#include "model/cluster/topology.h"
#include "simulator/conditions.h"

namespace trainyard {
namespace {

std::string described(const TopologyPlace& place) {
  return fmt::format("{} {}", word_of(place.kind), place.index);
}

bool is(const Vertex& vertex, const TopologyPlace& place) {
  return vertex.kind == place.kind && vertex.index == place.index;
}

Expected<void> check_index(const std::string& where, std::string_view word, int found, int count) {
  if (found >= 0 && found < count) return {};
  return failure(where, fmt::format("found {} {}, allowed 0 to {}", word, found, count - 1));
}

Expected<void> check_straggler(const Straggler& of, const std::string& where,
                               const Cluster& cluster) {
  if (of.rank.has_value() == of.node.has_value()) {
    return failure(where, fmt::format("found {} of \"rank\" and \"node\", allowed one of them",
                                      of.rank ? "both" : "none"));
  }
  if (!(of.speed > 0)) {
    return failure(where + "/speed", fmt::format("found {}, allowed more than 0", of.speed));
  }
  if (of.until && *of.until <= of.from) {
    return failure(where + "/until", "found a time that is not after \"from\", allowed later ones");
  }
  return of.rank ? check_index(where + "/rank", "rank", *of.rank, cluster.devices())
                 : check_index(where + "/node", "node", *of.node, cluster.nodes);
}

// The sentence lists what there is of that kind, or which kinds there are.
Expected<void> check_place(const TopologyPlace& place, const std::string& where,
                           const TopologyGraph& graph) {
  int count = 0;
  std::string kinds;
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) {
    const Vertex& at = graph[vertex];
    if (at.kind == place.kind) count = std::max(count, at.index + 1);
    const std::string_view word = word_of(at.kind);
    if (kinds.find(word) == std::string::npos) {
      kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", word);
    }
  }
  if (count > 0) return check_index(where, word_of(place.kind), place.index, count);
  return failure(where, fmt::format("found {}, allowed {} (of this cluster's topology)",
                                    described(place), kinds));
}

Expected<void> check_link(const DegradedLinks& links, const std::string& where,
                          const TopologyGraph& graph) {
  if (!(links.rate > 0)) {
    return failure(where + "/rate", fmt::format("found {}, allowed more than 0", links.rate));
  }
  if (auto done = check_place(links.of, where + "/of", graph); !done) return done;
  if (!links.to) return {};
  if (auto done = check_place(*links.to, where + "/to", graph); !done) return done;
  constexpr std::size_t kShown = 8;
  std::vector<std::string> others;
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const Vertex& a = graph[source(edge, graph)];
    const Vertex& b = graph[target(edge, graph)];
    if (!is(a, links.of) && !is(b, links.of)) continue;
    const Vertex& other = is(a, links.of) ? b : a;
    if (is(other, *links.to)) return {};
    if (others.size() <= kShown) others.push_back(described({other.kind, other.index}));
  }
  if (others.size() > kShown) others.back() = "…";
  return failure(where + "/to",
                 fmt::format("found {}, allowed what {} has a link to: {}", described(*links.to),
                             described(links.of), fmt::join(others, ", ")));
}

bool is_about(const Straggler& of, int rank, const Cluster& cluster) {
  return of.rank ? *of.rank == rank : *of.node == rank / cluster.devices_per_node;
}

double speed_at(const std::vector<const Straggler*>& stragglers, Seconds time) {
  double speed = 1;
  for (const Straggler* of : stragglers) {
    if (of->from <= time && (!of->until || time < *of->until)) speed *= of->speed;
  }
  return speed;
}

}  // namespace

std::string_view word_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::device:
      return "device";
    case VertexKind::nvlink_switch:
      return "nvlink-switch";
    case VertexKind::host:
      return "host";
    case VertexKind::nic:
      return "nic";
    case VertexKind::leaf:
      return "leaf";
    case VertexKind::spine:
      break;
  }
  return "spine";
}

Expected<void> check(const StepConditions& conditions, const Cluster& cluster) {
  for (std::size_t i = 0; i < conditions.stragglers.size(); ++i) {
    const std::string where = fmt::format("/simulation/stragglers/{}", i);
    if (auto done = check_straggler(conditions.stragglers[i], where, cluster); !done) return done;
  }
  if (!(conditions.jitter >= 0)) {
    return failure("/simulation/jitter",
                   fmt::format("found {}, allowed 0 or more", conditions.jitter));
  }
  if (conditions.links.empty()) return {};
  const TopologyGraph graph = make_topology(cluster);
  for (std::size_t i = 0; i < conditions.links.size(); ++i) {
    const std::string where = fmt::format("/simulation/links/{}", i);
    if (auto done = check_link(conditions.links[i], where, graph); !done) return done;
  }
  return {};
}

std::vector<SpeedChange> speeds_of(const StepConditions& conditions, const Cluster& cluster) {
  std::vector<SpeedChange> changes;
  if (conditions.stragglers.empty()) return changes;
  std::vector<const Straggler*> own;
  std::vector<Seconds> times;
  for (int rank = 0; rank < cluster.devices(); ++rank) {
    own.clear();
    times.clear();
    for (const Straggler& of : conditions.stragglers) {
      if (!is_about(of, rank, cluster)) continue;
      own.push_back(&of);
      times.push_back(of.from);
      if (of.until) times.push_back(*of.until);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    for (const Seconds time : times) {
      changes.push_back({rank, speed_at(own, time), to_picoseconds(time)});
    }
  }
  return changes;
}

}  // namespace trainyard
