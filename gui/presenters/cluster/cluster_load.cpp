#include "gui/presenters/cluster/cluster_load.h"

#include <algorithm>
#include <utility>

#include "gui/presenters/answer.h"
#include "gui/presenters/cluster/cluster_map.h"
#include "gui/presenters/text.h"
#include "model/cluster/topology_graph.h"
#include "scenarios/question.h"
#include "scenarios/text/readable.h"
#include "simulator/step.h"
#include "simulator/step/link_traffic.h"

namespace trainyard {
namespace {

using VertexId = TopologyGraph::vertex_descriptor;

// The devices that a vertex serves. A device serves itself. A NIC serves the devices that it is
// attached to, or all devices of its node if it is attached to the host. Others serve none.
std::vector<VertexId> devices_of(const TopologyGraph& graph, VertexId vertex, int per_node) {
  if (graph[vertex].kind == VertexKind::device) return {vertex};
  std::vector<VertexId> devices;
  if (graph[vertex].kind != VertexKind::nic) return devices;
  for (const VertexId next : boost::make_iterator_range(adjacent_vertices(vertex, graph))) {
    if (graph[next].kind == VertexKind::device) devices.push_back(next);
    if (graph[next].kind != VertexKind::host) continue;
    for (int i = 0; i < per_node; ++i) {
      devices.push_back(static_cast<VertexId>(graph[next].node * per_node + i));
    }
  }
  return devices;
}

// Bytes that some links carried in one direction, and the most that they could have carried.
struct Share {
  Bytes carried, most;
  double value() const { return most > Bytes(0) ? carried / most : 0; }
};

class LoadsOfMap {
 public:
  LoadsOfMap(const ClusterMap& map, const std::vector<LinkTraffic>& traffic, Seconds step)
      : map_(map),
        graph_(make_topology(map.question().job.job.cluster)),
        traffic_(traffic),
        step_(step) {}

  ClusterLoad add_up() {
    load_.devices.resize(static_cast<std::size_t>(map_.devices()));
    load_.links.resize(map_.links().size());
    load_.busiest.resize(map_.links().size());
    of_links_.resize(map_.links().size());
    std::size_t at = 0;
    for (const auto edge : boost::make_iterator_range(edges(graph_))) {
      const double busier = std::max(share(2 * at).value(), share(2 * at + 1).value());
      if (const auto place = map_.place_of_edge(at)) add_cable(*place, at, busier);
      for (const VertexId end : {source(edge, graph_), target(edge, graph_)}) {
        for (const VertexId device : devices_of(graph_, end, map_.devices_per_node())) {
          load_.devices[device] = std::max(load_.devices[device], busier);
        }
      }
      ++at;
    }
    for (std::size_t i = 0; i < of_links_.size(); ++i) {
      load_.links[i] = std::max(of_links_[i].first.value(), of_links_[i].second.value());
    }
    for (const auto* loads : {&load_.devices, &load_.busiest}) {
      for (const double value : *loads) load_.most = std::max(load_.most, value);
    }
    return std::move(load_);
  }

 private:
  void add_cable(const PlaceOfEdge& place, std::size_t edge, double busier) {
    auto& [there, back] = of_links_[place.link];
    const std::size_t reversed = place.is_reversed ? 1 : 0;
    add(there, share(2 * edge + reversed));
    add(back, share(2 * edge + 1 - reversed));
    load_.busiest[place.link] = std::max(load_.busiest[place.link], busier);
  }
  static void add(Share& sum, const Share& share) {
    sum.carried += share.carried;
    sum.most += share.most;
  }
  Share share(std::size_t link) const {
    return {traffic_[link].carried, traffic_[link].capacity * step_};
  }

  const ClusterMap& map_;
  TopologyGraph graph_;
  const std::vector<LinkTraffic>& traffic_;
  Seconds step_;
  ClusterLoad load_;
  std::vector<std::pair<Share, Share>> of_links_;  // one share for each direction
};

QString summary_of(const ClusterMap& map, const ClusterLoad& load, Seconds step) {
  QString text = ClusterLoad::tr("Links of the simulated step (%1): busiest of a device %2")
                     .arg(qt(with_unit(step)), percent_text(std::ranges::max(load.devices)));
  if (load.links.empty() || map.racks().size() < 2) return text;
  const auto busiest =
      static_cast<std::size_t>(std::ranges::max_element(load.busiest) - load.busiest.begin());
  return text + ClusterLoad::tr(", between racks %1 (%2)")
                    .arg(percent_text(load.busiest[busiest]), map.link_name(busiest));
}

}  // namespace

Expected<ClusterLoad> ClusterLoad::of(const ClusterMap& map, const std::atomic<bool>& stop) {
  const Question& question = map.question();
  const StepConditions& conditions = question.scenario.simulation;
  const auto step =
      simulate(question.job, map.plan(), {.conditions = conditions, .interrupted = &stop});
  if (!step) return tl::unexpected(step.error());
  const auto traffic = link_traffic(question.job, conditions, step->step, &stop);
  if (!traffic) return tl::unexpected(traffic.error());
  ClusterLoad load = LoadsOfMap(map, *traffic, step->step_time).add_up();
  load.summary = summary_of(map, load, step->step_time);
  return load;
}

QString ClusterLoad::describe(const ClusterMap& map, std::size_t link) const {
  const MapLink& of = map.links()[link];
  return tr("%1: %2 cables, %3 GB/s together\nload %4, of the busiest cable %5")
      .arg(map.link_name(link))
      .arg(of.cables)
      .arg(qt(number(of.bandwidth.value() * 1e-9)), percent_text(links[link]),
           percent_text(busiest[link]));
}

}  // namespace trainyard
