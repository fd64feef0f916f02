#include "gui/presenters/cluster/cluster_map.h"

#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <map>
#include <utility>

#include "gui/presenters/answer.h"
#include "gui/presenters/text.h"
#include "model/cluster/fabric_shape.h"
#include "model/cluster/topology_graph.h"
#include "scenarios/question.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

using VertexId = TopologyGraph::vertex_descriptor;

constexpr std::array<const char*, kMapColours> kColourNames = {
    QT_TRANSLATE_NOOP("ClusterMap", "Pipeline stage"),
    QT_TRANSLATE_NOOP("ClusterMap", "Tensor-parallel rank"),
    QT_TRANSLATE_NOOP("ClusterMap", "Context-parallel rank"),
    QT_TRANSLATE_NOOP("ClusterMap", "Data-parallel replica"),
    QT_TRANSLATE_NOOP("ClusterMap", "Expert-parallel rank"),
    QT_TRANSLATE_NOOP("ClusterMap", "Memory in use"),
    QT_TRANSLATE_NOOP("ClusterMap", "Load of its links")};

QString rate_text(BytesPerSecond rate) {
  return ClusterMap::tr("%1 GB/s").arg(qt(number(rate.value() * 1e-9)));
}

bool is_switch(VertexKind kind) { return kind == VertexKind::leaf || kind == VertexKind::spine; }

// The leaf switch of every node. A node with several leaves (a rail for each NIC) gets the first. A
// node without a leaf gets a negative number that it shares with the nodes of its NVLink domain.
std::vector<std::int64_t> leaf_of_nodes(const TopologyGraph& graph, int nodes, int domain_nodes) {
  std::vector<std::int64_t> leaves(static_cast<std::size_t>(nodes));
  for (int node = 0; node < nodes; ++node) {
    leaves[static_cast<std::size_t>(node)] = -1 - node / std::max(1, domain_nodes);
  }
  for (const VertexId nic : boost::make_iterator_range(vertices(graph))) {
    if (graph[nic].kind != VertexKind::nic || graph[nic].node < 0) continue;
    for (const VertexId leaf : boost::make_iterator_range(adjacent_vertices(nic, graph))) {
      if (!is_switch(graph[leaf].kind)) continue;
      std::int64_t& first = leaves[static_cast<std::size_t>(graph[nic].node)];
      const auto found = static_cast<std::int64_t>(leaf);
      first = first < 0 ? found : std::min(first, found);
    }
  }
  return leaves;
}

// The rack of every leaf, those of further rails too: the rack of a node with a NIC at this leaf.
std::map<VertexId, int> rack_of_switches(const TopologyGraph& graph,
                                         const std::vector<int>& rack_of_node) {
  std::map<VertexId, int> racks;
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    VertexId nic = source(edge, graph);
    VertexId leaf = target(edge, graph);
    if (graph[leaf].kind == VertexKind::nic) std::swap(nic, leaf);
    if (graph[nic].kind != VertexKind::nic || graph[leaf].kind != VertexKind::leaf) continue;
    racks.try_emplace(leaf, rack_of_node[static_cast<std::size_t>(graph[nic].node)]);
  }
  return racks;
}

struct FoundLinks {
  std::vector<MapLink> links;
  std::vector<std::optional<PlaceOfEdge>> places;  // [edge of the graph]
};

FoundLinks links_between(const TopologyGraph& graph, const std::map<VertexId, int>& racks) {
  const auto rack_of = [&](VertexId at) {
    const auto found = racks.find(at);
    return found == racks.end() ? -1 : found->second;
  };
  FoundLinks found;
  std::map<std::pair<int, int>, std::size_t> known;
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const VertexId a = source(edge, graph);
    const VertexId b = target(edge, graph);
    found.places.emplace_back();
    if (!is_switch(graph[a].kind) || !is_switch(graph[b].kind)) continue;
    const int to = std::min(rack_of(a), rack_of(b));
    const int from = std::max(rack_of(a), rack_of(b));
    if (to == from) continue;
    const auto [place, is_new] = known.try_emplace({from, to}, found.links.size());
    if (is_new) found.links.push_back({.from = from, .to = to});
    MapLink& link = found.links[place->second];
    ++link.cables;
    link.bandwidth += graph[edge].bandwidth;
    found.places.back() = {place->second, rack_of(a) != from};
  }
  return found;
}

}  // namespace

ClusterMap::ClusterMap(std::shared_ptr<const Question> question, Candidate candidate)
    : question_(std::move(question)),
      candidate_(std::move(candidate)),
      layout_(candidate_.plan, question_->job.job.model.kv_heads) {
  const Cluster& cluster = question_->job.job.cluster;
  devices_per_node_ = cluster.devices_per_node;
  devices_ = cluster.devices();
  domain_ = nodes_per_domain(cluster) * devices_per_node_;
  read_graph();
}

void ClusterMap::read_graph() {
  const Cluster& cluster = question_->job.job.cluster;
  const TopologyGraph graph = make_topology(cluster);
  const auto leaves = leaf_of_nodes(graph, cluster.nodes, domain_ / devices_per_node_);
  std::map<std::int64_t, int> rack_of_leaf;
  std::vector<int> rack_of_node;
  for (int node = 0; node < cluster.nodes; ++node) {
    const std::int64_t leaf = leaves[static_cast<std::size_t>(node)];
    const auto [rack, is_new] = rack_of_leaf.try_emplace(leaf, static_cast<int>(racks_.size()));
    if (is_new) racks_.emplace_back();
    racks_[static_cast<std::size_t>(rack->second)].nodes.push_back(node);
    rack_of_node.push_back(rack->second);
  }
  FoundLinks found = links_between(graph, rack_of_switches(graph, rack_of_node));
  links_ = std::move(found.links);
  places_ = std::move(found.places);
}

QString ClusterMap::colour_name(MapColour colour) {
  return tr(kColourNames[static_cast<std::size_t>(colour)]);
}

std::optional<Group> ClusterMap::group_of(MapColour colour) const {
  switch (colour) {
    case MapColour::tensor:
    case MapColour::memory:
    case MapColour::load:
      return Group::tensor;
    case MapColour::context:
      return Group::context;
    case MapColour::data:
      return Group::dense_gradient;
    case MapColour::expert:
      return Group::expert;
    case MapColour::stage:
      break;
  }
  return std::nullopt;
}

int ClusterMap::places(MapColour colour) const {
  const Plan& plan = candidate_.plan;
  switch (colour) {
    case MapColour::tensor:
      return plan.tensor_parallel;
    case MapColour::context:
      return plan.context_parallel;
    case MapColour::data:
      return plan.data_parallel;
    case MapColour::expert:
      return plan.expert_parallel;
    case MapColour::stage:
    case MapColour::memory:
    case MapColour::load:
      break;
  }
  return plan.pipeline_parallel;
}

int ClusterMap::place_of(int rank, MapColour colour) const {
  const RankCoordinates at = layout_.coordinates(rank);
  switch (colour) {
    case MapColour::tensor:
      return at.tensor;
    case MapColour::context:
      return at.context;
    case MapColour::data:
      return at.data;
    case MapColour::expert:
      return at.expert;
    case MapColour::stage:
    case MapColour::memory:
    case MapColour::load:
      break;
  }
  return at.stage;
}

double ClusterMap::memory_share(int rank) const {
  const auto stage = static_cast<std::size_t>(layout_.coordinates(rank).stage);
  const Bytes used = candidate_.estimate.stages[stage].memory.at_peak.device();
  return used / question_->job.job.cluster.device.memory;
}

std::vector<int> ClusterMap::members(int rank, MapColour colour) const {
  std::vector<int> ranks;
  const auto group = group_of(colour);
  if (!group) {
    for (int stage = 0; stage < places(MapColour::stage); ++stage) {
      ranks.push_back(layout_.in_stage(rank, stage));
    }
    return ranks;
  }
  const GroupMembers found = layout_.members(*group, rank);
  ranks.reserve(static_cast<std::size_t>(found.size()));
  for (int member = 0; member < found.size(); ++member) ranks.push_back(found[member]);
  return ranks;
}

GroupShape ClusterMap::shape_of(int rank, MapColour colour) const {
  const auto group = group_of(colour);
  return group ? layout_.members(*group, rank).shape : process_groups(candidate_.plan).pipeline;
}

int ClusterMap::domain_of(int rank) const { return rank / domain_; }

QString ClusterMap::describe(int rank) const {
  if (rank >= ranks())
    return tr("device %1 of node %2: idle").arg(rank % devices_per_node_).arg(node_of(rank));
  const RankCoordinates at = layout_.coordinates(rank);
  QString text = tr("rank %1 is device %2 of node %3\nstage %4, tensor %5, context %6, replica %7")
                     .arg(rank)
                     .arg(rank % devices_per_node_)
                     .arg(node_of(rank))
                     .arg(at.stage)
                     .arg(at.tensor)
                     .arg(at.context)
                     .arg(at.data);
  if (candidate_.plan.expert_parallel > 1) text += tr(", experts %1").arg(at.expert);
  return text + tr("\nmemory %1").arg(percent_text(memory_share(rank)));
}

QString ClusterMap::describe_group(int rank, MapColour colour) const {
  if (rank >= ranks()) return describe(rank);
  const std::vector<int> ring = members(rank, colour);
  const QString head = describe(rank);
  if (ring.size() < 2) return head + tr("\nalone in its group");
  const GroupLinks links = group_links(question_->job.tiers, shape_of(rank, colour));
  std::size_t crossing = ring.size();
  int crossings = 0;
  const bool is_chain = colour == MapColour::stage;  // the last stage sends nothing to the first
  const std::size_t hops = is_chain ? ring.size() - 1 : ring.size();
  for (std::size_t i = 0; i < hops; ++i) {
    if (domain_of(ring[i]) == domain_of(ring[(i + 1) % ring.size()])) continue;
    crossing = std::min(crossing, i);
    ++crossings;
  }
  QString text = head + QLatin1Char('\n') +
                 (is_chain ? tr("%1 stages, %2 hops, %3 of them between NVLink domains")
                           : tr("ring of %1 ranks, %2 hops, %3 of them between NVLink domains"))
                     .arg(ring.size())
                     .arg(hops)
                     .arg(crossings);
  const std::size_t slowest = crossings > 0 ? crossing : 0;
  // A ring leaves a domain through the NICs of all its ranks there, a message between stages
  // through those of its sender.
  const BytesPerSecond across =
      is_chain ? links.passing : links.across * double(links.ranks_per_domain);
  const BytesPerSecond rate = crossings > 0 ? across : links.inside;
  text += tr("\nslowest: rank %1 to rank %2 (node %3 to node %4), %5")
              .arg(ring[slowest])
              .arg(ring[(slowest + 1) % ring.size()])
              .arg(node_of(ring[slowest]))
              .arg(node_of(ring[(slowest + 1) % ring.size()]))
              .arg(rate_text(rate));
  if (crossings > 0) text += tr("; inside a domain %1").arg(rate_text(links.inside));
  return text;
}

QString ClusterMap::summary() const {
  const Cluster& cluster = question_->job.job.cluster;
  QString text =
      tr("%1 in %2 and %3")
          .arg(qt(counted(cluster.devices(), "device")), qt(counted(cluster.nodes, "node")),
               qt(counted(static_cast<std::int64_t>(racks_.size()), "rack")));
  if (!links_.empty() && racks_.size() > 1) {
    const MapLink& link = links_.front();
    text += tr("; from a rack %2 %1")
                .arg(rate_text(link.bandwidth),
                     link.to < 0 ? tr("to the spines") : tr("to a neighbour"));
  }
  return text;
}

QString ClusterMap::link_name(std::size_t link) const {
  const MapLink& of = links_[link];
  return of.to < 0 ? tr("rack %1 to the spines").arg(of.from)
                   : tr("rack %1 to rack %2").arg(of.from).arg(of.to);
}

int ClusterMap::rank_at(int stage, int context, int replica) const {
  return layout_.rank_at({.tensor = 0, .context = context, .data = replica, .stage = stage});
}

QString ClusterMap::nodes_at(int stage, int context, int replica) const {
  const auto ring = members(rank_at(stage, context, replica), MapColour::tensor);
  const auto [first, last] = std::ranges::minmax(ring);
  const int from = node_of(first);
  const int to = node_of(last);
  return from == to ? QString::number(from) : tr("%1–%2").arg(from).arg(to);
}

}  // namespace trainyard
