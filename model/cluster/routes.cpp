#include "model/cluster/routes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "model/cluster/fabric_shape.h"
#include "model/cluster/topology_graph.h"
#include "model/hash.h"

namespace trainyard {
namespace {

bool is_switch(const Vertex& vertex) {
  return vertex.kind == VertexKind::leaf || vertex.kind == VertexKind::spine;
}

std::uint64_t key_of(std::uint32_t from, std::uint32_t to) {
  return (std::uint64_t{from} << 32) | to;
}

}  // namespace

Routes::Routes(const Cluster& cluster, const TopologyGraph& graph)
    : routing_(cluster.inter.routing) {
  number_switches(graph);
  read_links(graph);
  if (cluster.inter.kind == InterNodeKind::torus && read_torus(cluster)) scheme_ = Scheme::torus;
  if (cluster.inter.kind == InterNodeKind::dragonfly && read_dragonfly(cluster)) {
    scheme_ = Scheme::dragonfly;
  }
}

// Numbers the leaves first, so that a leaf's place is its index.
void Routes::number_switches(const TopologyGraph& graph) {
  place_.assign(num_vertices(graph), kNone);
  for (const VertexKind kind : {VertexKind::leaf, VertexKind::spine}) {
    for (std::size_t vertex = 0; vertex < num_vertices(graph); ++vertex) {
      if (graph[vertex].kind != kind) continue;
      place_[vertex] = static_cast<std::uint32_t>(switches_++);
      if (kind == VertexKind::leaf) leaves_.push_back(static_cast<std::uint32_t>(vertex));
    }
  }
}

void Routes::read_links(const TopologyGraph& graph) {
  struct Directed {
    std::uint32_t from;
    Step step;
  };
  std::vector<Directed> all;
  leaf_of_.assign(num_vertices(graph), kNone);
  const auto add = [&](std::uint32_t from, const Step& step) {
    if (!is_switch(graph[step.to])) return;
    if (is_switch(graph[from])) all.push_back({from, step});
    if (graph[from].kind == VertexKind::nic) leaf_of_[from] = std::min(leaf_of_[from], step.to);
  };
  std::int32_t link = 0;
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const auto a = static_cast<std::uint32_t>(source(edge, graph));
    const auto b = static_cast<std::uint32_t>(target(edge, graph));
    const double capacity = graph[edge].bandwidth.value();
    add(a, {b, link, capacity});
    add(b, {a, link + 1, capacity});
    link += 2;
  }
  std::ranges::sort(all, [](const Directed& a, const Directed& b) {
    return std::tuple(a.from, a.step.to, a.step.link) < std::tuple(b.from, b.step.to, b.step.link);
  });
  first_step_.assign(num_vertices(graph) + 1, 0);
  steps_.reserve(all.size());
  for (const Directed& one : all) {
    ++first_step_[one.from + 1];
    steps_.push_back(one.step);
  }
  std::partial_sum(first_step_.begin(), first_step_.end(), first_step_.begin());
}

std::span<const Routes::Step> Routes::steps(std::uint32_t at) const {
  return std::span(steps_).subspan(first_step_[at], first_step_[at + 1] - first_step_[at]);
}

const Routes::Step* Routes::step_to(std::uint32_t at, std::uint32_t to) const {
  const auto all = steps(at);
  const auto found =
      std::partition_point(all.begin(), all.end(), [&](const Step& step) { return step.to < to; });
  return found != all.end() && found->to == to ? &*found : nullptr;
}

void Routes::append(std::uint32_t from_nic, std::uint32_t to_nic, double share,
                    std::vector<LinkUse>& uses) {
  append_between(leaf_of_[from_nic], leaf_of_[to_nic], key_of(from_nic, to_nic), share, uses);
}

void Routes::append_between(std::uint32_t from, std::uint32_t to, std::uint64_t key, double share,
                            std::vector<LinkUse>& uses) {
  if (from == to || from == kNone || to == kNone) return;
  const bool one_way = routing_ == FabricRouting::static_paths;
  if (scheme_ == Scheme::dragonfly) {
    const bool third = routing_ == FabricRouting::valiant && groups_ > 2;
    if (third && group_of(from) != group_of(to)) return detour(from, to, share, uses);
    return cross(from, to, key, share, uses);
  }
  if (!one_way) return spread(from, to, share, uses);
  if (scheme_ == Scheme::torus) return walk_torus(from, to, share, uses);
  walk(from, to, key, share, uses);
}

// ---- any graph ----------------------------------------------------------------------------------

// By a breadth-first search from the target.
const std::vector<std::int32_t>& Routes::distances_to(std::uint32_t target) {
  const auto [found, added] = distances_.try_emplace(target);
  std::vector<std::int32_t>& hops = found->second;
  if (!added) return hops;
  hops.assign(switches_, -1);
  hops[place_[target]] = 0;
  std::vector<std::uint32_t> queue = {target};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::uint32_t at = queue[i];
    for (const Step& step : steps(at)) {
      std::int32_t& there = hops[place_[step.to]];
      if (there >= 0) continue;
      there = hops[place_[at]] + 1;
      queue.push_back(step.to);
    }
  }
  return hops;
}

void Routes::find_nearer(std::uint32_t at, std::uint32_t target) {
  if (scheme_ == Scheme::torus) return find_nearer_in_torus(at, target);
  const std::vector<std::int32_t>& hops = distances_to(target);
  nearer_.clear();
  if (hops[place_[at]] == 1) {  // spares a switch above many leaves a look at all its links
    const std::span<const Step> all = steps(at);
    for (const Step* step = step_to(at, target); step != nullptr; ++step) {
      if (step == all.data() + all.size() || step->to != target) break;
      nearer_.push_back(*step);
    }
    return;
  }
  for (const Step& step : steps(at)) {
    const std::int32_t there = hops[place_[step.to]];
    if (there >= 0 && there < hops[place_[at]]) nearer_.push_back(step);
  }
}

void Routes::spread(std::uint32_t from, std::uint32_t to, double share,
                    std::vector<LinkUse>& uses) {
  const std::uint64_t pair = (std::uint64_t{from} << 32) | to;
  auto known = spread_.find(pair);
  if (known == spread_.end()) {
    if (spread_.size() >= kMostSpread) spread_.clear();
    known = spread_.try_emplace(pair).first;
    spread_one(from, to, known->second);
  }
  for (const LinkUse& use : known->second) uses.push_back({use.link, use.share * share});
}

// Links that one byte takes on its shortest ways. These all have equally many hops, so the parts of
// the byte can move hop by hop: parts that reach a switch do so at the same hop and leave together.
void Routes::spread_one(std::uint32_t from, std::uint32_t to, std::vector<LinkUse>& uses) {
  std::map<std::uint32_t, double> here = {{from, 1.0}};
  while (!here.contains(to)) {
    std::map<std::uint32_t, double> next;
    for (const auto& [at, part] : here) {
      find_nearer(at, to);
      double capacity = 0;
      for (const Step& step : nearer_) capacity += step.capacity;
      for (const Step& step : nearer_) {
        const double taken = part * step.capacity / capacity;
        take(step, taken, uses);
        next[step.to] += taken;
      }
    }
    if (next.empty()) return;
    here = std::move(next);
  }
}

void Routes::walk(std::uint32_t from, std::uint32_t to, std::uint64_t key, double share,
                  std::vector<LinkUse>& uses) {
  for (std::uint32_t at = from; at != to;) {
    find_nearer(at, to);
    if (nearer_.empty()) return;
    const Step& step = nearer_[mixed(mixed(key) + at) % nearer_.size()];
    take(step, share, uses);
    at = step.to;
  }
}

// ---- torus --------------------------------------------------------------------------------------

bool Routes::read_torus(const Cluster& cluster) {
  sides_ = torus_dimensions(cluster);
  std::size_t nodes = 1;
  for (const int side : sides_) nodes *= static_cast<std::size_t>(side);
  if (nodes != leaves_.size()) return false;
  neighbours_.reserve(nodes * sides_.size() * 2);
  for (int place = 0; place < static_cast<int>(nodes); ++place) {
    if (!read_neighbours(place)) return false;
  }
  return true;
}

// Reads a switch's links forward and back along every dimension; a dimension of one node has none.
bool Routes::read_neighbours(int place) {
  int stride = 1;
  for (const int side : sides_) {
    const int at = place / stride % side;
    for (const int step : {1, side - 1}) {
      const int other = place + ((at + step) % side - at) * stride;
      const Step* found = step_to(leaves_[static_cast<std::size_t>(place)],
                                  leaves_[static_cast<std::size_t>(other)]);
      if (found == nullptr && side > 1) return false;
      neighbours_.push_back(found == nullptr ? kNone
                                             : static_cast<std::uint32_t>(found - steps_.data()));
    }
    stride *= side;
  }
  return true;
}

std::int32_t Routes::torus_link(int node, std::size_t dimension, bool back) const {
  const std::size_t at = static_cast<std::size_t>(node) * sides_.size() + dimension;
  const std::uint32_t step = neighbours_[at * 2 + (back ? 1 : 0)];
  return step == kNone ? -1 : steps_[step].link;
}

void Routes::find_nearer_in_torus(std::uint32_t at, std::uint32_t target) {
  nearer_.clear();
  int here = static_cast<int>(place_[at]);
  int there = static_cast<int>(place_[target]);
  std::size_t first = std::size_t{place_[at]} * sides_.size() * 2;
  for (const int side : sides_) {
    const int forward = (there % side - here % side + side) % side;
    if (forward > 0 && 2 * forward <= side) nearer_.push_back(steps_[neighbours_[first]]);
    if (2 * forward >= side && side > 2) nearer_.push_back(steps_[neighbours_[first + 1]]);
    here /= side;
    there /= side;
    first += 2;
  }
}

// A way half-way round goes forward from even places and back from odd ones, so that both
// directions are used.
void Routes::walk_torus(std::uint32_t from, std::uint32_t to, double share,
                        std::vector<LinkUse>& uses) {
  const int there = static_cast<int>(place_[to]);
  int at = static_cast<int>(place_[from]);
  int stride = 1;
  std::size_t dimension = 0;
  for (const int side : sides_) {
    const int start = at / stride % side;
    const int forward = (there / stride % side - start + side) % side;
    const bool tie = 2 * forward == side;
    const bool back = tie ? start % 2 == 1 : 2 * forward > side;
    const int step = back ? side - 1 : 1;
    int here = start;
    for (int hops = back ? side - forward : forward; hops > 0; --hops) {
      const std::size_t place = static_cast<std::size_t>(at + (here - start) * stride);
      take(steps_[neighbours_[(place * sides_.size() + dimension) * 2 + (back ? 1 : 0)]], share,
           uses);
      here = (here + step) % side;
    }
    at += (here - start) * stride;
    stride *= side;
    ++dimension;
  }
}

// ---- dragonfly ----------------------------------------------------------------------------------

bool Routes::read_dragonfly(const Cluster& cluster) {
  const DragonflyShape shape = dragonfly_shape(cluster);
  leaves_per_group_ = static_cast<std::uint32_t>(shape.leaves);
  groups_ = static_cast<std::uint32_t>(shape.groups);
  if (leaves_.size() != std::size_t{groups_} * leaves_per_group_) return false;
  bridges_.resize(std::size_t{groups_} * groups_);
  for (const std::uint32_t leaf : leaves_) {
    for (const Step& step : steps(leaf)) {
      const std::size_t pair = std::size_t{group_of(leaf)} * groups_ + group_of(step.to);
      bridges_[pair].push_back({leaf, step});
    }
  }
  return groups_are_whole();
}

// Whether every pair of groups is linked, and all switches inside each group. bridges() lists the
// links of a pair in the order of the cables, the same from either end; the "pair" of a group with
// itself holds the links inside it.
bool Routes::groups_are_whole() const {
  const std::size_t inside = std::size_t{leaves_per_group_} * (leaves_per_group_ - 1);
  for (std::uint32_t a = 0; a < groups_; ++a) {
    for (std::uint32_t b = 0; b < groups_; ++b) {
      const std::size_t links = bridges(a, b).size();
      if (a == b ? links != inside : links == 0) return false;
    }
  }
  return true;
}

std::span<const Routes::Bridge> Routes::bridges(std::uint32_t from_group,
                                                std::uint32_t to_group) const {
  return bridges_[std::size_t{from_group} * groups_ + to_group];
}

void Routes::hop_inside(std::uint32_t from, std::uint32_t to, double share,
                        std::vector<LinkUse>& uses) const {
  if (from != to) take(*step_to(from, to), share, uses);
}

void Routes::cross(std::uint32_t from, std::uint32_t to, std::uint64_t key, double share,
                   std::vector<LinkUse>& uses) const {
  if (group_of(from) == group_of(to)) return hop_inside(from, to, share, uses);
  std::span<const Bridge> ways = bridges(group_of(from), group_of(to));
  if (routing_ == FabricRouting::static_paths) ways = ways.subspan(mixed(key) % ways.size(), 1);
  double capacity = 0;
  for (const Bridge& bridge : ways) capacity += bridge.step.capacity;
  for (const Bridge& bridge : ways) {
    const double part = share * bridge.step.capacity / capacity;
    hop_inside(from, bridge.from, part, uses);
    take(bridge.step, part, uses);
    hop_inside(bridge.step.to, to, part, uses);
  }
}

// Valiant's ways by all third groups. They enter a group by each of its links in turn and leave it
// by the link with the same number.
void Routes::detour(std::uint32_t from, std::uint32_t to, double share,
                    std::vector<LinkUse>& uses) const {
  const std::uint32_t a = group_of(from);
  const std::uint32_t b = group_of(to);
  for (std::uint32_t third = 0; third < groups_; ++third) {
    if (third == a || third == b) continue;
    const std::span<const Bridge> in = bridges(a, third);
    const std::span<const Bridge> out = bridges(third, b);
    const std::size_t ways = std::max(in.size(), out.size());
    const double part = share / (groups_ - 2) / static_cast<double>(ways);
    for (std::size_t i = 0; i < ways; ++i) {
      const Bridge& first = in[i % in.size()];
      const Bridge& second = out[i % out.size()];
      hop_inside(from, first.from, part, uses);
      take(first.step, part, uses);
      hop_inside(first.step.to, second.from, part, uses);
      take(second.step, part, uses);
      hop_inside(second.step.to, to, part, uses);
    }
  }
}

}  // namespace trainyard
