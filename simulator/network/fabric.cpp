#include "simulator/network/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "model/cluster/lanes.h"
#include "model/cluster/topology_graph.h"
#include "model/job.h"

namespace trainyard {
namespace {

bool is_switch(VertexKind kind) { return kind == VertexKind::leaf || kind == VertexKind::spine; }

// a <= b, up to the rounding of sums of bandwidths.
bool at_most(double a, double b) { return a <= b * (1 + 1e-9); }

}  // namespace

void degrade(TopologyGraph& graph, const DegradedLinks& links) {
  assert(links.rate > 0 && "a dead link is no degraded link");
  const auto is = [](const Vertex& vertex, const TopologyPlace& place) {
    return vertex.kind == place.kind && vertex.index == place.index;
  };
  const auto is_meant = [&](const Vertex& from, const Vertex& to) {
    return is(from, links.of) && (!links.to || is(to, *links.to));
  };
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const Vertex& a = graph[source(edge, graph)];
    const Vertex& b = graph[target(edge, graph)];
    if (is_meant(a, b) || is_meant(b, a)) graph[edge].bandwidth *= links.rate;
  }
}

std::shared_ptr<const TopologyGraph> degraded_topology(const PreparedJob& job,
                                                       std::span<const DegradedLinks> links) {
  if (links.empty() && job.topology) return job.topology->graph();
  const std::shared_ptr<TopologyGraph> graph(new TopologyGraph(make_topology(job.job.cluster)));
  for (const DegradedLinks& of : links) degrade(*graph, of);
  return graph;
}

Fabric::Fabric(const Cluster& cluster, const TopologyGraph& graph)
    : inside_latency_(cluster.intra.latency),
      across_latency_(cluster.inter.latency),
      across_overhead_(1 / cluster.inter.efficiency),
      rails_(cluster.inter.kind == InterNodeKind::rail),
      switched_(cluster.intra.kind == IntraNodeKind::nvswitch),
      routes_(cluster, graph) {
  read(graph);
  seat_devices();
  find_domains();
}

Expected<Fabric> Fabric::make(const Cluster& cluster, const TopologyGraph& graph,
                              FabricLinks links) {
  Fabric fabric(cluster, graph);
  if (auto checked = fabric.check(); !checked) return tl::unexpected(checked.error());
  fabric.can_be_full_.assign(fabric.capacities_.size(), 1);
  if (links == FabricLinks::that_can_be_full) fabric.find_full_links();
  fabric.switches_can_fill_ = fabric.can_fill_between_switches();
  return fabric;
}

void Fabric::read(const TopologyGraph& graph) {
  const std::size_t vertices = num_vertices(graph);
  first_step_.assign(vertices + 1, 0);
  kinds_.reserve(vertices);
  capacities_.reserve(2 * num_edges(graph));
  for (std::size_t vertex = 0; vertex < vertices; ++vertex) {
    kinds_.push_back(graph[vertex].kind);
    first_step_[vertex + 1] =
        first_step_[vertex] + static_cast<std::uint32_t>(out_degree(vertex, graph));
    if (graph[vertex].kind == VertexKind::device) domain_.push_back(graph[vertex].node);
  }
  steps_.resize(first_step_.back());
  std::vector<std::uint32_t> next(first_step_.begin(), first_step_.end() - 1);
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const auto a = static_cast<std::uint32_t>(source(edge, graph));
    const auto b = static_cast<std::uint32_t>(target(edge, graph));
    const auto link = static_cast<std::int32_t>(capacities_.size());
    steps_[next[a]++] = {b, link};
    steps_[next[b]++] = {a, link + 1};
    capacities_.insert(capacities_.end(), 2, graph[edge].bandwidth);
  }
  for (std::size_t vertex = 0; vertex < vertices; ++vertex) {
    std::sort(steps_.begin() + first_step_[vertex], steps_.begin() + first_step_[vertex + 1],
              [](Step a, Step b) { return a.to != b.to ? a.to < b.to : a.link < b.link; });
  }
}

void Fabric::seat_devices() {
  seats_.reserve(domain_.size());
  ports_.reserve(domain_.size());
  for (std::uint32_t device = 0; device < domain_.size(); ++device) {
    const std::uint32_t root = first_of(device, VertexKind::host);
    const std::uint32_t hub = std::min(first_of(device, VertexKind::nvlink_switch), root);
    const auto first_port = static_cast<std::uint32_t>(ports_.size());
    add_ports(device, root);
    seats_.push_back({.hub = hub,
                      .to_hub = hub == Routes::kNone ? kNoLink : link(device, hub),
                      .at_root = root != Routes::kNone,
                      .first_port = first_port,
                      .ports = static_cast<std::uint32_t>(ports_.size()) - first_port});
  }
}

// NICs are attached to the device, or to its PCIe root.
void Fabric::add_ports(std::uint32_t device, std::uint32_t root) {
  const std::uint32_t at = root == Routes::kNone ? device : root;
  const std::int32_t to_root = root == Routes::kNone ? kNoLink : link(device, root);
  for (const Step step : steps(at)) {
    if (!is(step.to, VertexKind::nic)) continue;
    const std::uint32_t leaf = routes_.switch_of(step.to);
    const std::int32_t to_switch = leaf == Routes::kNone ? kNoLink : link(step.to, leaf);
    ports_.push_back({step.to, to_root, link(at, step.to), to_switch});
  }
}

// A domain is the devices attached to one NVLink switch or PCIe root, or of a mesh, the node.
void Fabric::find_domains() {
  std::map<std::uint32_t, int> by_hub;
  std::map<int, int> by_node;
  for (std::uint32_t device = 0; device < domain_.size(); ++device) {
    const std::uint32_t hub = seats_[device].hub;
    const auto next = static_cast<int>(domains_.size());
    int& domain = domain_[device];
    domain = hub != Routes::kNone ? by_hub.try_emplace(hub, next).first->second
                                  : by_node.try_emplace(domain, next).first->second;
    if (domain == next) domains_.emplace_back();
    std::vector<std::uint32_t>& members = domains_[static_cast<std::size_t>(domain)];
    place_.push_back(static_cast<std::int32_t>(members.size()));
    members.push_back(device);
  }
}

Expected<void> Fabric::check() const {
  const auto dead = std::find_if(capacities_.begin(), capacities_.end(),
                                 [](BytesPerSecond capacity) { return capacity.value() <= 0; });
  if (dead != capacities_.end()) {
    return failure("topology",
                   fmt::format("found no bandwidth on link {}", (dead - capacities_.begin()) / 2));
  }
  if (domains_.size() < 2) return {};
  const std::vector<bool> reached = reached_from_first();
  for (std::uint32_t device = 0; device < domain_.size(); ++device) {
    const std::span<const Port> ports = ports_of(device);
    const bool there =
        !ports.empty() && std::all_of(ports.begin(), ports.end(),
                                      [&](const Port& port) { return reached[port.nic]; });
    if (there) continue;
    return failure("topology", device == 0
                                   ? "rank 0 cannot reach the ranks of other domains"
                                   : fmt::format("rank {} cannot be reached from rank 0", device));
  }
  return {};
}

// The NICs and switches that can be reached from the first device's NICs.
std::vector<bool> Fabric::reached_from_first() const {
  std::vector<bool> reached(kinds_.size());
  std::vector<std::uint32_t> open;
  const auto visit = [&](std::uint32_t vertex) {
    if (!reached[vertex]) open.push_back(vertex);
    reached[vertex] = true;
  };
  for (const Port& port : ports_of(0)) visit(port.nic);
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    for (const Step step : steps(at)) {
      if (is_switch(kinds_[step.to]) || is(step.to, VertexKind::nic)) visit(step.to);
    }
  }
  return reached;
}

// Drops links that never hold anything up: those that the traffic into their tail cannot fill, and
// those whose head passes less on. In a non-blocking tree that is every link above the NICs. The
// first rule relies on links into the tail, the second on links that the first has kept, so no two
// links excuse each other.
void Fabric::find_full_links() {
  drop_unfilled_links();
  drop_links_that_lead_to_less();
}

double Fabric::capacity_of(Step step) const {
  return capacities_[static_cast<std::size_t>(step.link)].value();
}

void Fabric::drop_unfilled_links() {
  std::vector<double> in(kinds_.size());
  for (const Step step : steps_) in[step.to] += capacity_of(step);
  // Traffic goes back over the link it came by only at a switch, and only to a device or NIC.
  const auto turns = [&](std::uint32_t at, std::uint32_t end) {
    return !is(at, VertexKind::nic) && (is(end, VertexKind::nic) || is(end, VertexKind::device));
  };
  for (std::uint32_t from = 0; from < kinds_.size(); ++from) {
    if (is(from, VertexKind::device)) continue;
    for (const Step step : steps(from)) {
      const double filling = in[from] - (turns(from, step.to) ? 0 : capacity_of(step));
      if (at_most(filling, capacity_of(step))) can_be_full(step) = 0;
    }
  }
}

// Drops links between switches whose head has only kept links to pass the traffic on, which
// together carry no more.
void Fabric::drop_links_that_lead_to_less() {
  std::vector<double> out(kinds_.size());
  std::vector<int> dropped(kinds_.size());
  for (std::uint32_t from = 0; from < kinds_.size(); ++from) {
    for (const Step step : steps(from)) {
      out[from] += capacity_of(step);
      dropped[from] += can_be_full(step) == 0 ? 1 : 0;
    }
  }
  const auto leads_to_less = [&](Step step) {
    const bool back_is_kept = can_be_full_[static_cast<std::size_t>(step.link ^ 1)] != 0;
    const int others_dropped = dropped[step.to] - static_cast<int>(!back_is_kept);
    return can_be_full(step) != 0 && is_switch(kinds_[step.to]) && others_dropped <= 0 &&
           at_most(out[step.to] - capacity_of(step), capacity_of(step));
  };
  for (std::uint32_t from = 0; from < kinds_.size(); ++from) {
    if (!is_switch(kinds_[from])) continue;
    for (const Step step : steps(from)) {
      if (!leads_to_less(step)) continue;
      can_be_full(step) = 0;
      ++dropped[from];
    }
  }
}

bool Fabric::can_fill_between_switches() const {
  for (std::uint32_t from = 0; from < kinds_.size(); ++from) {
    if (!is_switch(kinds_[from])) continue;
    for (const Step step : steps(from)) {
      if (is_switch(kinds_[step.to]) && can_be_full_[static_cast<std::size_t>(step.link)] != 0) {
        return true;
      }
    }
  }
  return false;
}

std::span<const Fabric::Step> Fabric::steps(std::uint32_t vertex) const {
  const std::uint32_t first = first_step_[vertex];
  return std::span(steps_).subspan(first, first_step_[vertex + 1] - first);
}

std::uint32_t Fabric::first_of(std::uint32_t vertex, VertexKind kind) const {
  for (const Step step : steps(vertex)) {
    if (is(step.to, kind)) return step.to;
  }
  return Routes::kNone;
}

// The link between two vertices; of several the first, which is also the first from the other end.
std::int32_t Fabric::link(std::uint32_t from, std::uint32_t to) const {
  const auto all = steps(from);
  const auto found =
      std::partition_point(all.begin(), all.end(), [&](Step step) { return step.to < to; });
  assert(found != all.end() && found->to == to && "a way follows links of the graph");
  return found->link;
}

// The NICs of a device, or of the PCIe root that it is attached to.
std::span<const Fabric::Port> Fabric::ports_of(std::uint32_t device) const {
  return std::span(ports_).subspan(seats_[device].first_port, seats_[device].ports);
}

std::span<const Fabric::Port> Fabric::ports_of(std::span<const std::int32_t> block,
                                               std::uint32_t device, Way way,
                                               std::vector<Port>& all) const {
  if (way == Way::own_links || seats_[device].at_root) return ports_of(device);
  all.clear();
  for (const std::int32_t member : block) {
    for (const Port& port : ports_of(static_cast<std::uint32_t>(member))) {
      // Shared with the device before.
      const bool shared = !all.empty() && all.back().nic == port.nic;
      if (!shared) all.push_back(port);
    }
  }
  return all;
}

GroupLinks Fabric::links_of(std::span<const std::int32_t> members) const {
  GroupLinks links;
  links.size = static_cast<int>(members.size());
  links.inside_latency = inside_latency_;
  links.across_latency = across_latency_;
  links.switched = switched_;
  links.ranks_per_domain =
      ranks_together(members, [&](std::int32_t member) { return domain_of(member); });
  links.domains = links.size / links.ranks_per_domain;
  return links;
}

// The run of members around one of them that are in its domain.
std::span<const std::int32_t> Fabric::run_of(std::span<const std::int32_t> members,
                                             int member) const {
  const auto at = static_cast<std::size_t>(member);
  const int domain = domain_of(members[at]);
  std::size_t first = at;
  while (first > 0 && domain_of(members[first - 1]) == domain) --first;
  std::size_t end = at + 1;
  while (end < members.size() && domain_of(members[end]) == domain) ++end;
  return members.subspan(first, end - first);
}

void Fabric::append_way(std::span<const std::int32_t> members, int ranks_per_domain,
                        const TransferRound& round, const Transfer& transfer,
                        std::vector<LinkUse>& uses) {
  const auto from = static_cast<std::uint32_t>(members[static_cast<std::size_t>(transfer.from)]);
  const auto to = static_cast<std::uint32_t>(members[static_cast<std::size_t>(transfer.to)]);
  // Used only where a transfer uses the links of all its members.
  const auto block = [&](int member) {
    if (round.way == Way::own_links) return members.first(0);
    if (round.way == Way::rings) return run_of(members, member);
    return members.subspan(static_cast<std::size_t>(member / ranks_per_domain * ranks_per_domain),
                           static_cast<std::size_t>(ranks_per_domain));
  };
  if (round.way == Way::switch_across && from == to) {
    append_up_and_down(from, round, uses);
  } else if (round.way == Way::switch_across) {
    append_between_switches(from, to, round, uses);
  } else if (domain_[from] == domain_[to]) {
    append_inside(block(transfer.from), from, to, round, uses);
  } else {
    if (round.way == Way::rings) append_closing_hop(members, transfer.from, round, uses);
    append_across(block(transfer.from), from, block(transfer.to), to, round, uses);
  }
}

// Numbers the links of each domain in the order of its devices, their hubs and their ports, so that
// links at the same place of two domains have the same number.
void Fabric::number_slots() {
  slots_.resize(capacities_.size());
  taken_by_.resize(domains_.size());
  takes_.resize(domains_.size());
  std::map<std::vector<double>, int> kinds;
  std::vector<double> shape;
  std::vector<double> last;  // shape of the domain before, usually the same
  for (const std::vector<std::uint32_t>& devices : domains_) {
    first_slot_.push_back(slot_links_.size());
    shape.assign(1, static_cast<double>(devices.size()));
    for (const std::uint32_t device : devices) {
      shape.push_back(seats_[device].ports);
      number_link(seats_[device].to_hub, shape);
      for (const Port& port : ports_of(device)) {
        number_link(port.to_root, shape);
        number_link(port.to_nic, shape);
        number_link(port.to_switch, shape);
      }
      if (seats_[device].hub != Routes::kNone) continue;
      for (const Step step : steps(device)) number_link(step.link, shape);
    }
    const bool again = shape == last;
    domain_kind_.push_back(
        again ? domain_kind_.back()
              : kinds.try_emplace(shape, static_cast<int>(kinds.size())).first->second);
    last.swap(shape);
  }
}

// Numbers both directions of a link of the current domain, and describes it in the domain's shape.
void Fabric::number_link(std::int32_t link, std::vector<double>& shape) {
  if (link == kNoLink) return shape.push_back(kNoLink);
  for (const std::int32_t way : {link, link ^ 1}) {
    const auto at = static_cast<std::size_t>(way);
    if (slots_[at].domain == kNobody) {
      slots_[at] = {static_cast<int>(first_slot_.size()) - 1,
                    static_cast<std::int32_t>(slot_links_.size() - first_slot_.back())};
      slot_links_.push_back(way);
    }
    shape.push_back(slots_[at].index);
    shape.push_back(can_be_full_[at] != 0 ? capacities_[at].value() : 0);
  }
}

bool Fabric::takes_places(std::span<const std::int32_t> members,
                          std::span<const std::int32_t> other) {
  if (members.size() != other.size()) return false;
  for (const std::int32_t device : members) {
    taken_by_[static_cast<std::size_t>(domain_of(device))] = kNobody;
  }
  for (const std::int32_t device : other) {
    takes_[static_cast<std::size_t>(domain_of(device))] = kNobody;
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int from = domain_of(members[i]);
    const int to = domain_of(other[i]);
    int& taken_by = taken_by_[static_cast<std::size_t>(from)];
    int& takes = takes_[static_cast<std::size_t>(to)];
    if (taken_by == kNobody && takes == kNobody) {
      taken_by = to;
      takes = from;
    }
    const bool alike = domain_kind_[static_cast<std::size_t>(from)] ==
                           domain_kind_[static_cast<std::size_t>(to)] &&
                       place_of(members[i]) == place_of(other[i]);
    if (taken_by != to || takes != from || !alike) return false;
  }
  return true;
}

bool Fabric::append_alike(std::span<const std::int32_t> members, std::span<const LinkUse> known,
                          std::span<const std::int32_t> other, std::vector<LinkUse>& uses) {
  if (switches_can_fill_) return false;
  if (slots_.empty()) number_slots();
  if (!takes_places(members, other)) return false;
  for (const LinkUse& use : known) {
    const Slot slot = slots_[static_cast<std::size_t>(use.link)];
    assert(slot.domain != kNobody && "a link between switches cannot be full");
    const int domain = taken_by_[static_cast<std::size_t>(slot.domain)];
    const std::size_t place =
        first_slot_[static_cast<std::size_t>(domain)] + static_cast<std::size_t>(slot.index);
    uses.push_back({slot_links_[place], use.share});
  }
  return true;
}

void Fabric::append_across(std::span<const std::int32_t> sending, std::uint32_t from,
                           std::span<const std::int32_t> receiving, std::uint32_t to,
                           const TransferRound& round, std::vector<LinkUse>& uses) {
  std::span<const Port> out = ports_of(sending, from, round.way, out_);
  const std::span<const Port> in = ports_of(receiving, to, round.way, in_);
  const double all = round.overhead * across_overhead_;
  // All devices at a PCIe root use its NICs, so none changes rail.
  if (rails_ && round.way == Way::own_links && !seats_[from].at_root) {
    const auto& domain = domains_[static_cast<std::size_t>(domain_[from])];
    const auto rail = static_cast<std::size_t>(place_[to]) % domain.size();
    if (domain[rail] != from) {
      add_inside(uses, from, domain[rail], all);
      out = ports_of(domain[rail]);
    }
  }
  for_each_lane(out.size(), in.size(), [&](std::size_t leaving, std::size_t arriving, double part) {
    const double share = part * all;
    add_out(uses, out[leaving], share);
    add_between(uses, out[leaving], in[arriving], share);
    add_in(uses, in[arriving], share);
  });
}

// A ring that leaves a domain by the NICs of all its members is really several rings side by side,
// each of which leaves at another member (NCCL's channels). What the others pass from the last
// member to the first loads the links like a hop between neighbours. At a PCIe root the link to the
// NICs is the one to the neighbours, which has carried this traffic already.
void Fabric::append_closing_hop(std::span<const std::int32_t> members, int last,
                                const TransferRound& round, std::vector<LinkUse>& uses) const {
  const auto end = static_cast<std::size_t>(last);
  const auto from = static_cast<std::uint32_t>(members[end]);
  if (seats_[from].at_root) return;
  const std::span<const std::int32_t> run = run_of(members, last);
  if (run.size() == 1) return;
  append_inside(run, from, static_cast<std::uint32_t>(run.front()), round, uses);
}

// In a mesh, "all links of a member" are those to the other members of its block.
void Fabric::append_inside(std::span<const std::int32_t> block, std::uint32_t from,
                           std::uint32_t to, const TransferRound& round,
                           std::vector<LinkUse>& uses) const {
  const bool mesh = seats_[from].hub == Routes::kNone;
  if (!mesh || round.way == Way::own_links || block.size() < 2) {
    add_inside(uses, from, to, round.overhead);
    return;
  }
  for (const std::int32_t member : block) {
    const auto other = static_cast<std::uint32_t>(member);
    if (other != from) {
      add_inside(uses, from, other, round.overhead / static_cast<double>(block.size() - 1));
    }
  }
}

void Fabric::append_leaving(int device, double overhead, std::vector<LinkUse>& uses) const {
  const std::span<const Port> ports = ports_of(static_cast<std::uint32_t>(device));
  const double share = overhead * across_overhead_ / static_cast<double>(ports.size());
  for (const Port& port : ports) {
    add_out(uses, port, share);
    if (port.to_switch != kNoLink) add(uses, port.to_switch, share);
  }
}

void Fabric::append_arriving(int device, double overhead, std::vector<LinkUse>& uses) const {
  const std::span<const Port> ports = ports_of(static_cast<std::uint32_t>(device));
  const double share = overhead * across_overhead_ / static_cast<double>(ports.size());
  for (const Port& port : ports) {
    if (port.to_switch != kNoLink) add(uses, port.to_switch ^ 1, share);
    add_in(uses, port, share);
  }
}

void Fabric::append_up_and_down(std::uint32_t device, const TransferRound& round,
                                std::vector<LinkUse>& uses) const {
  const std::span<const Port> ports = ports_of(device);
  const double share = round.overhead * across_overhead_ / static_cast<double>(ports.size());
  for (const Port& port : ports) {
    add_out(uses, port, share);
    add(uses, port.to_switch, share);
    add(uses, port.to_switch ^ 1, share);
    add_in(uses, port, share);
  }
}

// Appends the links between the first switches of two devices.
void Fabric::append_between_switches(std::uint32_t from, std::uint32_t to,
                                     const TransferRound& round, std::vector<LinkUse>& uses) {
  if (!switches_can_fill_) return;
  const std::span<const Port> out = ports_of(from);
  const std::span<const Port> in = ports_of(to);
  const double all = round.overhead * across_overhead_;
  for_each_lane(out.size(), in.size(), [&](std::size_t leaving, std::size_t arriving, double part) {
    between_.clear();
    routes_.append(out[leaving].nic, in[arriving].nic, part * all, between_);
    for (const LinkUse& use : between_) add(uses, use.link, use.share);
  });
}

// Over the switch or root of both devices; if they are the same device, up to it and back.
void Fabric::add_inside(std::vector<LinkUse>& uses, std::uint32_t from, std::uint32_t to,
                        double share) const {
  if (seats_[from].hub == Routes::kNone) {
    add(uses, link(from, to), share);
    return;
  }
  add(uses, seats_[from].to_hub, share);
  add(uses, seats_[to].to_hub ^ 1, share);
}

// Protocol overhead begins at the link into the NIC.
void Fabric::add_out(std::vector<LinkUse>& uses, const Port& port, double share) const {
  if (port.to_root != kNoLink) add(uses, port.to_root, share / across_overhead_);
  add(uses, port.to_nic, share);
}

void Fabric::add_in(std::vector<LinkUse>& uses, const Port& port, double share) const {
  if (port.to_root != kNoLink) add(uses, port.to_root ^ 1, share / across_overhead_);
  add(uses, port.to_nic ^ 1, share);
}

void Fabric::add_between(std::vector<LinkUse>& uses, const Port& from, const Port& to,
                         double share) {
  add(uses, from.to_switch, share);
  if (switches_can_fill_) {
    between_.clear();
    routes_.append(from.nic, to.nic, share, between_);
    for (const LinkUse& use : between_) add(uses, use.link, use.share);
  }
  add(uses, to.to_switch ^ 1, share);
}

}  // namespace trainyard
