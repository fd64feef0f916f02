#include "simulator/step/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "model/cluster/cluster.h"
#include "model/cluster/topology_graph.h"
#include "model/job.h"
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

// The error lists the places of that kind or, if there are none, the kinds of the topology.
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

std::vector<TopologyPlace> neighbours_of(const TopologyPlace& place, const TopologyGraph& graph) {
  std::vector<TopologyPlace> others;
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const Vertex& a = graph[source(edge, graph)];
    const Vertex& b = graph[target(edge, graph)];
    if (is(a, place)) others.push_back({b.kind, b.index});
    if (is(b, place)) others.push_back({a.kind, a.index});
  }
  return others;
}

Expected<void> check_link(const DegradedLinks& links, const std::string& where,
                          const TopologyGraph& graph) {
  if (!(links.rate > 0)) {
    return failure(where + "/rate", fmt::format("found {}, allowed more than 0", links.rate));
  }
  if (auto done = check_place(links.of, where + "/of", graph); !done) return done;
  if (!links.to) return {};
  if (auto done = check_place(*links.to, where + "/to", graph); !done) return done;
  std::vector<TopologyPlace> others = neighbours_of(links.of, graph);
  const auto is_meant = [&](const TopologyPlace& other) {
    return other.kind == links.to->kind && other.index == links.to->index;
  };
  if (std::any_of(others.begin(), others.end(), is_meant)) return {};
  constexpr std::size_t kShown = 8;
  const bool more = others.size() > kShown;
  if (more) others.resize(kShown);
  std::vector<std::string> names;
  names.reserve(others.size());
  for (const TopologyPlace& other : others) names.push_back(described(other));
  return failure(where + "/to",
                 fmt::format("found {}, allowed what {} has a link to: {}{}", described(*links.to),
                             described(links.of), fmt::join(names, ", "), more ? ", …" : ""));
}

Expected<void> check_length(std::string_view key, std::int64_t found, std::int64_t longest) {
  if (found >= 1 && found <= longest) return {};
  return failure(fmt::format("/simulation/sequences/{}", key),
                 fmt::format("found {}, allowed 1 to {}, the sequence length", found, longest));
}

Expected<void> check_sequences(const SequenceMix& mix, std::int64_t longest) {
  if (mix.law.has_value() == !mix.lengths.empty()) {
    return failure("/simulation/sequences",
                   fmt::format("found {} of \"distribution\" and \"lengths\", allowed one of them",
                               mix.law ? "both" : "none"));
  }
  if (mix.packed && mix.dynamic) {
    return failure("/simulation/sequences/dynamic",
                   "found it with \"packed\", allowed one of them: packed rows are all full");
  }
  if (mix.law == LengthLaw::uniform) return check_length("shortest", mix.shortest, longest);
  if (mix.law == LengthLaw::lognormal) return check_length("mean", mix.mean, longest);
  return {};
}

Expected<void> check_routing(const ExpertRouting& routing, const Transformer& model) {
  constexpr const char* kWhere = "/simulation/routing";
  if (model.experts == 0) {
    return failure(kWhere, "found it for a model without experts, allowed with experts");
  }
  if (routing.shares.empty()) return {};
  const std::string where = std::string(kWhere) + "/shares";
  if (routing.shares.size() != static_cast<std::size_t>(model.experts)) {
    return failure(where, fmt::format("found {} shares, allowed {}, one for each expert",
                                      routing.shares.size(), model.experts));
  }
  const double sum = std::accumulate(routing.shares.begin(), routing.shares.end(), 0.0);
  const double most = *std::max_element(routing.shares.begin(), routing.shares.end());
  if (sum > 0 && most * model.experts_per_token <= sum * (1 + 1e-9)) return {};
  return failure(where, fmt::format("found a share of {:.3g} of all, allowed up to 1/{}: a token "
                                    "goes to an expert once",
                                    sum > 0 ? most / sum : 0, model.experts_per_token));
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

Expected<void> check(const StepConditions& conditions, const Job& job) {
  const Cluster& cluster = job.cluster;
  for (std::size_t i = 0; i < conditions.stragglers.size(); ++i) {
    const std::string where = fmt::format("/simulation/stragglers/{}", i);
    if (auto done = check_straggler(conditions.stragglers[i], where, cluster); !done) return done;
  }
  if (!(conditions.jitter >= 0)) {
    return failure("/simulation/jitter",
                   fmt::format("found {}, allowed 0 or more", conditions.jitter));
  }
  if (conditions.sequences) {
    auto done = check_sequences(*conditions.sequences, job.training.sequence_length);
    if (!done) return done;
  }
  if (conditions.routing) {
    if (auto done = check_routing(*conditions.routing, job.model); !done) return done;
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
