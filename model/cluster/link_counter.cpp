#include "model/cluster/link_counter.h"

#include <algorithm>
#include <cmath>

#include "model/cluster/topology_graph.h"

namespace trainyard {

LinkCounter::LinkCounter(const TopologyGraph& graph, double efficiency) {
  const auto is_switch = [&](std::size_t vertex) {
    return graph[vertex].kind == VertexKind::leaf || graph[vertex].kind == VertexKind::spine;
  };
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const auto link = static_cast<std::int32_t>(capacities_.size());
    if (is_switch(source(edge, graph)) && is_switch(target(edge, graph))) {
      trunks_.insert(trunks_.end(), {link, link + 1});
    }
    capacities_.insert(capacities_.end(), 2, graph[edge].bandwidth.value() * efficiency);
  }
  load_.resize(capacities_.size());
  noted_.resize(trunks_.size());
}

void LinkCounter::add(std::span<const LinkUse> uses) {
  for (const LinkUse& use : uses) add(use);
}

void LinkCounter::add(const LinkUse& use) {
  const std::size_t link = bearer(use.link);
  if (looking_) {
    looked_ = std::max(looked_, load_[link] / capacities_[link]);
    return;
  }
  if (load_[link] == 0) loaded_.push_back(link);
  load_[link] += use.share;
}

void LinkCounter::look() {
  looking_ = true;
  looked_ = 0;
}

double LinkCounter::looked() {
  looking_ = false;
  return looked_;
}

double LinkCounter::finish() {
  if (noting_ > 0) note_loads();
  double longest = 0;
  for (const std::size_t link : loaded_) {
    longest = std::max(longest, load_[link] / capacities_[link]);
    load_[link] = 0;
  }
  loaded_.clear();
  return longest;
}

double LinkCounter::finish(LinkLoads::Loads& loads) {
  note(1);
  const double longest = finish();
  loads = take_noted(longest);
  return longest;
}

void LinkCounter::note_loads() {
  for (std::size_t i = 0; i < trunks_.size(); ++i) {
    const std::size_t link = bearer(trunks_[i]);
    noted_[i] += noting_ * load_[link] / capacities_[link];
  }
}

LinkLoads::Loads LinkCounter::take_noted(double seconds) {
  constexpr double kLastBits = 1e-9;  // what was added and taken off again may leave some
  LinkLoads::Loads loads;
  loads.reserve(noted_.size());
  for (double& time : noted_) {
    const double share = seconds > 0 ? std::min(1.0, time / seconds) : 0;
    const double least = share > kLastBits ? 1 : 0;
    loads.push_back(
        static_cast<std::uint8_t>(std::max(least, std::round(share * LinkLoads::kFull))));
    time = 0;
  }
  noting_ = 0;
  return loads;
}

}  // namespace trainyard
