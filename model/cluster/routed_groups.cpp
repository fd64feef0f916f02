#include "model/cluster/routed_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "model/cluster/lanes.h"
#include "model/cluster/straddling_groups.h"
#include "model/cluster/topology_graph.h"

namespace trainyard {
namespace {

// The cluster with routes that do not depend on a hash, for counting many messages. A torus is
// routed dimension by dimension: all its shortest ways have equally many hops in each dimension.
Cluster evenly_routed(Cluster cluster) {
  InterNode& inter = cluster.inter;
  if (inter.kind == InterNodeKind::torus) {
    inter.routing = FabricRouting::static_paths;
  } else if (inter.routing == FabricRouting::static_paths) {
    inter.routing = FabricRouting::adaptive;
  }
  return cluster;
}

LinkLoads::Loads& of(LinkLoads::ByPattern& loads, TrafficPattern pattern) {
  return loads[static_cast<std::size_t>(pattern)];
}

BytesPerSecond rate(double bytes, double seconds) {
  return BytesPerSecond(seconds > 0 ? bytes / seconds : std::numeric_limits<double>::infinity());
}

}  // namespace

GroupRouter::GroupRouter(const Cluster& cluster, const TopologyGraph& graph,
                         const FabricTiers& tiers)
    : kind_(cluster.inter.kind),
      devices_(cluster.devices()),
      ranks_per_domain_(tiers.tiers.front().ranks),
      out_of_domain_(1 / tiers.tiers.front().way_out.value()),
      out_alone_(1 / tiers.nics.alone.value()),
      one_link_(tiers.one_link),
      unlike_nics_(tiers.unlike_nics),
      counter_(graph, cluster.inter.efficiency),
      routes_(cluster, graph),
      even_routes_(evenly_routed(cluster), graph) {
  read_nics(cluster, graph);
  const int of_node = cluster.devices_per_node;
  const bool nested = ranks_per_domain_ % of_node == 0 || of_node % ranks_per_domain_ == 0;
  const auto sides = routes_.torus_sides();
  if (nested) torus_.sides.assign(sides.begin(), sides.end());
  torus_.devices = of_node;
  torus_.domain = std::max(1, ranks_per_domain_ / of_node);
}

// Lists the NICs of each rank: its own ones, or behind a PCIe root all of its node.
void GroupRouter::read_nics(const Cluster& cluster, const TopologyGraph& graph) {
  std::vector<std::int32_t> out_of(num_vertices(graph), -1);
  std::vector<std::vector<std::uint32_t>> of_vertex(num_vertices(graph));
  const auto read = [&](std::size_t nic, std::size_t other, std::int32_t out) {
    if (graph[nic].kind != VertexKind::nic) return;
    if (graph[other].kind == VertexKind::leaf) {
      out_of[nic] = out;
    } else {
      of_vertex[other].push_back(static_cast<std::uint32_t>(nic));
    }
  };
  std::int32_t link = 0;
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    read(source(edge, graph), target(edge, graph), link);
    read(target(edge, graph), source(edge, graph), link + 1);
    link += 2;
  }
  const bool at_root = cluster.intra.kind == IntraNodeKind::pcie;
  for (int rank = 0; rank < devices_; ++rank) {
    const int vertex = at_root ? devices_ + rank / cluster.devices_per_node : rank;
    first_nic_.push_back(nics_.size());
    for (const std::uint32_t nic : of_vertex[static_cast<std::size_t>(vertex)]) {
      nics_.push_back({nic, routes_.switch_of(nic), out_of[nic]});
    }
  }
  first_nic_.push_back(nics_.size());
}

std::span<const GroupRouter::Nic> GroupRouter::nics_of(int rank) const {
  const std::size_t first = first_nic_[static_cast<std::size_t>(rank)];
  return std::span(nics_).subspan(first, first_nic_[static_cast<std::size_t>(rank) + 1] - first);
}

// NICs of all these ranks; one that several ranks share only once.
std::vector<GroupRouter::Nic> GroupRouter::nics_of(Ranks ranks) const {
  std::vector<Nic> all;
  for (const int rank : ranks) {
    const auto own = nics_of(rank);
    all.insert(all.end(), own.begin(), own.end());
  }
  std::ranges::sort(all, {}, &Nic::vertex);
  const auto is_same = [](const Nic& a, const Nic& b) { return a.vertex == b.vertex; };
  all.erase(std::unique(all.begin(), all.end(), is_same), all.end());
  return all;
}

// The groups of that shape that these ranks are divided into; ranks left over at their end are in
// none.
GroupRouter::Siblings GroupRouter::siblings(GroupShape shape, RankRange among) const {
  const int run = shape.run == 0 ? shape.size : shape.run;
  const int last = (run - 1) * shape.stride + (shape.size - 1) / run * shape.jump;
  const int end = among.count == 0 ? devices_ : among.first + among.count;
  std::vector<bool> taken(static_cast<std::size_t>(end));
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(end - among.first));
  for (int first = among.first; first + last < end; ++first) {
    if (taken[static_cast<std::size_t>(first)]) continue;
    for (int i = 0; i < shape.size; ++i) {
      ranks.push_back(first + i % run * shape.stride + i / run * shape.jump);
      taken[static_cast<std::size_t>(ranks.back())] = true;
    }
  }
  return {std::move(ranks), static_cast<std::size_t>(shape.size)};
}

// Uses the symmetry of a torus: keeps one group of each orbit, and maps the links of an orbit onto
// one of them, so that this one gets the load of each.
void GroupRouter::fold(Siblings& groups) {
  counter_.fold({});
  const TorusSymmetry symmetry(torus_, groups.ranks, groups.size);
  if (symmetry.copies() == 1) return;
  Folded folded(counter_.links());
  if (!fold_links(symmetry, folded)) return;
  counter_.fold(std::move(folded));
  std::vector<int> kept;
  for (std::size_t i = 0; i < groups.count(); ++i) {
    const Ranks group = groups[i];
    const int node = group.front() / torus_.devices;
    if (symmetry.first(node) == node) kept.insert(kept.end(), group.begin(), group.end());
  }
  groups.ranks = std::move(kept);
  groups.copies = symmetry.copies();
}

// Maps the links of each node onto those of the node that stands for its orbit; false if these are
// not alike.
bool GroupRouter::fold_links(const TorusSymmetry& symmetry, Folded& folded) const {
  for (int node = 0; node < devices_ / torus_.devices; ++node) {
    const int first = symmetry.first(node);
    if (!fold_switch(node, first, folded) || !fold_nics(node, first, folded)) return false;
  }
  return true;
}

bool GroupRouter::fold_switch(int node, int first, Folded& folded) const {
  bool alike = true;
  for (std::size_t i = 0; i < torus_.sides.size(); ++i) {
    for (const bool back : {false, true}) {
      const std::int32_t link = routes_.torus_link(node, i, back);
      alike = alike && (link < 0 || fold_link(link, routes_.torus_link(first, i, back), folded));
    }
  }
  return alike;
}

bool GroupRouter::fold_nics(int node, int first, Folded& folded) const {
  for (int device = 0; device < torus_.devices; ++device) {
    const auto own = nics_of(node * torus_.devices + device);
    const auto other = nics_of(first * torus_.devices + device);
    if (own.size() != other.size()) return false;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const bool alike = routes_.torus_node(own[i].leaf) == node &&
                         fold_link(own[i].link, other[i].link, folded) &&
                         fold_link(own[i].link ^ 1, other[i].link ^ 1, folded);
      if (!alike) return false;
    }
  }
  return true;
}

bool GroupRouter::fold_link(std::int32_t link, std::int32_t first, Folded& folded) const {
  folded[static_cast<std::size_t>(link)] = first;
  return counter_.are_alike(link, first);
}

GroupRates GroupRouter::compute(GroupShape shape, int members, RankRange among) {
  straddling_ = unlike_nics_ || straddles(shape, ranks_per_domain_);
  Siblings groups = siblings(shape, among);
  fold(groups);
  LinkLoads::ByPattern loads;
  GroupRates rates;
  for (std::size_t i = 0; i < groups.count(); ++i) send_ring(groups[i]);
  rates.ring = rate(1, counter_.finish(of(loads, TrafficPattern::ring)));
  for (std::size_t i = 0; i < groups.count(); ++i) pass_on(groups[i], members);
  rates.passing = rate(1, counter_.finish(of(loads, TrafficPattern::passing)));
  rates.all_to_all = rate(static_cast<double>(shape.size - members) / shape.size,
                          all_to_all_time(groups, of(loads, TrafficPattern::all_to_all)));
  rates.times = crossing_times(groups, members, loads);
  rates.loads = std::make_shared<const LinkLoads>(std::move(loads));
  return rates;
}

double GroupRouter::all_to_all_time(const Siblings& groups, LinkLoads::Loads& loads) {
  const std::size_t pairs = groups.all() * groups.size * groups.size;
  const bool tree = kind_ == InterNodeKind::fat_tree || kind_ == InterNodeKind::rail;
  const bool counted_by_pairs = routes_.by_hash() && pairs <= kMostPairs;
  if (counted_by_pairs) {
    for (std::size_t i = 0; i < groups.count(); ++i) send_all_to_all(groups[i]);
  } else if (!tree) {  // for a tree with even shares the tiers give the rate
    send_by_switches(groups);
  }
  if (straddling_ && !counted_by_pairs) {
    for (std::size_t i = 0; i < groups.count(); ++i) load_all_to_all(groups[i]);
  }
  return counted_by_pairs || !tree ? counter_.finish(loads) : counter_.finish();
}

// None for many messages by hash in a tree: counted as even shares, they follow from the tiers.
std::optional<CrossingTimes> GroupRouter::crossing_times(const Siblings& groups, int members,
                                                         LinkLoads::ByPattern& loads) {
  if (groups.count() == 0) return std::nullopt;
  const auto size = static_cast<int>(groups.size);
  const int all = size / members;
  const std::size_t messages =
      groups.all() * static_cast<std::size_t>(size) * static_cast<std::size_t>(log2_ceil(all));
  const bool torus = kind_ == InterNodeKind::torus;
  counted_evenly_ = torus ? messages > kMostInTorus * static_cast<std::size_t>(ranks_per_domain_)
                          : routes_.by_hash() && messages > kMostPairs;
  const bool tree = kind_ == InterNodeKind::fat_tree || kind_ == InterNodeKind::rail;
  if (tree && counted_evenly_) return std::nullopt;

  CrossingTimes times;
  for (int far = 1; far < all; far *= 2) {
    const double share = static_cast<double>(std::min(far, all - far)) / size;
    counter_.note(share);
    const double time = round_time(groups, members, shift_hops(all, far), Sending::every_member);
    times.halving += time * share;
    times.doubling += time;
  }
  of(loads, TrafficPattern::halving) = counter_.take_noted(times.halving);
  for (const TreeHops& hops : binomial_hops(all)) {
    times.binomial += round_time(groups, members, hops, Sending::first_members);
  }
  for (const TreeHops& hops : scatter_hops(all)) {
    times.scatter += round_time(groups, members, hops, Sending::first_members);
  }
  times.trees = trees_time(groups, members, of(loads, TrafficPattern::trees));
  times.sums = std::max(out_of_domain_,
                        round_time(groups, members, shift_hops(all, 1), Sending::between_switches));
  if (unlike_nics_ || (kind_ == InterNodeKind::rail && straddling_)) {
    times.lanes = round_time(groups, members, shift_hops(all, 1), Sending::every_member);
  }
  return in_the_mean(times, all, members);
}

// Time of one direction, the mean of up and down: a hash chooses other ways down than up.
double GroupRouter::trees_time(const Siblings& groups, int members, LinkLoads::Loads& loads) {
  counter_.note(0.5);
  const auto all = static_cast<int>(groups.size) / members;
  TreeHops hops = double_tree_hops(all);
  const double up = round_time(groups, members, hops, Sending::all_together);
  for (TreeHop& hop : hops) std::swap(hop.from, hop.to);
  const double down = round_time(groups, members, hops, Sending::all_together);
  // Under PCIe, blocks of a group in the same domain also reach each other over the links to NICs.
  const int on_link = straddling_ && one_link_ ? 2 : 1;
  const double time = std::max(on_link * out_alone_ / members, (up + down) / 2);
  loads = counter_.take_noted(time);
  return time;
}

// Time of a round: that of the fullest link, and at least that of a member's own link if a member
// sends a message of its own (every_member, first_members).
double GroupRouter::round_time(const Siblings& groups, int members, const TreeHops& hops,
                               Sending sending) {
  double most = 0;
  for (const TreeHop& hop : hops) most = std::max(most, hop.share);
  // Siblings in the same domain send between the same switches: taken one after the other, their
  // bytes are summed before they are routed.
  const auto together = static_cast<std::size_t>(ranks_per_domain_);
  for (std::size_t first = 0; first < groups.count(); first += together) {
    const std::size_t end = std::min(groups.count(), first + together);
    for (const TreeHop& hop : hops) {
      for (std::size_t i = first; i < end; ++i) send_hop(groups[i], members, hop, sending);
    }
  }
  route_between();
  const double links = counter_.finish();
  const bool own = sending == Sending::every_member || sending == Sending::first_members;
  return own ? std::max(links, most * out_alone_) : links;
}

void GroupRouter::send_hop(Ranks group, int members, const TreeHop& hop, Sending sending) {
  const auto count = static_cast<std::size_t>(members);
  const Ranks out = group.subspan(static_cast<std::size_t>(hop.from) * count, count);
  const Ranks in = group.subspan(static_cast<std::size_t>(hop.to) * count, count);
  if (domain_of(out.front()) == domain_of(in.front())) return;
  switch (sending) {
    case Sending::every_member:
      for (std::size_t place = 0; place < count; ++place) {
        send_own(out[place], in[place], hop.share);
      }
      return;
    case Sending::first_members:
      return send_own(out.front(), in.front(), hop.share);
    case Sending::all_together:
      load_nics(nics_of(out), nics_of(in), hop.share);
      return load_switches(nics_of(out), nics_of(in), hop.share);
    case Sending::between_switches:
      for (std::size_t place = 0; place < count; ++place) {
        load_switches(nics_of(out[place]), nics_of(in[place]), hop.share / members);
      }
      return;
  }
}

void GroupRouter::send_own(int from, int to, double bytes) {
  const int leaving = leaving_for(from, to);
  load_nics(nics_of(leaving), nics_of(to), bytes);
  load_switches(nics_of(leaving), nics_of(to), bytes);
}

// The members from `first` on that share its domain.
GroupRouter::Ranks GroupRouter::run_from(Ranks group, std::size_t first) const {
  std::size_t end = first;
  while (end < group.size() && domain_of(group[end]) == domain_of(group[first])) ++end;
  return group.subspan(first, end - first);
}

// Consecutive members in one domain send on together, over all their NICs.
void GroupRouter::send_ring(Ranks group) {
  for (std::size_t first = 0; first < group.size();) {
    const Ranks run = run_from(group, first);
    first += run.size();
    const Ranks next = run_from(group, first % group.size());
    if (domain_of(run.front()) == domain_of(next.front())) continue;
    send(nics_of(run), nics_of(next), 1);
  }
}

// Counts an all-to-all pair by pair. Messages to another rail change rail inside the sender's
// domain.
void GroupRouter::send_all_to_all(Ranks group) {
  const double bytes = 1.0 / static_cast<double>(group.size());
  for (const int from : group) {
    for (const int to : group) {
      if (domain_of(from) == domain_of(to)) continue;
      send(nics_of(leaving_for(from, to)), nics_of(to), bytes);
    }
  }
}

// Counts an all-to-all on the NICs alone: what each member sends to other domains and receives.
void GroupRouter::load_all_to_all(Ranks group) {
  const double part = 1.0 / static_cast<double>(group.size());
  for (std::size_t first = 0, end = 0; first < group.size(); first = end) {
    while (end < group.size() && domain_of(group[end]) == domain_of(group[first])) ++end;
    const Ranks inside = group.subspan(first, end - first);
    const auto others = static_cast<double>(group.size() - inside.size());
    for (const int rank : inside) {
      load(nics_of(rank), true, others * part);
      if (kind_ != InterNodeKind::rail) load(nics_of(rank), false, others * part);
    }
    if (kind_ == InterNodeKind::rail) load_rails(group, inside, part);
  }
}

// On rails, members of one domain send by the NIC on the rail of each receiver.
void GroupRouter::load_rails(Ranks group, Ranks inside, double part) {
  for (const int to : group) {
    if (domain_of(to) == domain_of(inside.front())) continue;
    load(nics_of(leaving_for(inside.front(), to)), false,
         static_cast<double>(inside.size()) * part);
  }
}

void GroupRouter::load(std::span<const Nic> nics, bool inwards, double bytes) {
  for (const Nic& nic : nics) {
    counter_.add({inwards ? nic.link ^ 1 : nic.link, bytes / static_cast<double>(nics.size())});
  }
}

// The rank whose NICs a message leaves by: the sender, or on rails the one on the receiver's rail.
int GroupRouter::leaving_for(int from, int to) const {
  if (kind_ != InterNodeKind::rail) return from;
  const int base = domain_of(from) * ranks_per_domain_;
  return base + to % ranks_per_domain_ % std::min(ranks_per_domain_, devices_ - base);
}

// Counts all-to-alls between switches, groups with the same census at once. What members of one
// domain would send each other stays inside, and is taken off again.
void GroupRouter::send_by_switches(const Siblings& groups) {
  std::map<Census, int> alike;
  std::map<Census, int> inside;
  std::size_t switches = 1;
  for (std::size_t i = 0; i < groups.count(); ++i) {
    const Ranks group = groups[i];
    ++alike[census_of(group)];
    for (auto first = group.begin(); first != group.end();) {
      const auto end = std::find_if(first, group.end(),
                                    [&](int rank) { return domain_of(rank) != domain_of(*first); });
      if (Census domain = census_of({first, end}); domain.size() > 1) ++inside[std::move(domain)];
      first = end;
    }
  }
  std::size_t pairs = 0;
  for (const auto& [census, count] : alike) {
    switches += groups.copies * census.size();
    pairs += groups.copies * census.size() * census.size();
  }
  counted_evenly_ = kind_ != InterNodeKind::torus || pairs > kMostInTorus;
  const double each = 1.0 / static_cast<double>(groups.size);
  for (const auto& [census, count] : alike) {
    send_between_switches(census, each * count, kMostPairs / switches);
  }
  for (const auto& [census, count] : inside) {
    send_between_switches(census, -each * count, census.size());
  }
}

GroupRouter::Census GroupRouter::census_of(Ranks ranks) const {
  Census census;
  for (const int rank : ranks) {
    const auto nics = nics_of(rank);
    for (const Nic& nic : nics) {
      census.emplace_back(nic.leaf, 1.0 / static_cast<double>(nics.size()));
    }
  }
  std::ranges::sort(census);
  std::size_t last = 0;
  for (std::size_t i = 1; i < census.size(); ++i) {
    if (census[i].first == census[last].first) {
      census[last].second += census[i].second;
    } else {
      census[++last] = census[i];
    }
  }
  census.resize(std::min(census.size(), last + 1));
  return census;
}

// Sends between all pairs of switches, or between those at about `most` distances around the list.
// Multiples of the golden section spread these distances evenly; each is used both ways round.
void GroupRouter::send_between_switches(const Census& census, double bytes, std::size_t most) {
  constexpr double kGolden = 0.6180339887498949;
  const std::size_t others = census.size() - 1;
  if (census.size() < 2) return;
  const bool all = most >= others;
  const std::size_t distances = all ? others : std::max<std::size_t>(2, most / 2 * 2);
  const double each = bytes * static_cast<double>(others) / static_cast<double>(distances);
  for (std::size_t i = 0; i < distances; ++i) {
    const std::size_t pair = i / 2;
    const double turn = static_cast<double>(pair) * kGolden;
    const auto drawn =
        static_cast<std::size_t>((turn - std::floor(turn)) * static_cast<double>(others));
    const std::size_t way = i % 2 == 0 ? 1 + drawn : others - drawn;
    send_around(census, all ? i + 1 : way, each);
  }
}

// From each switch to the one `distance` further on in the list.
void GroupRouter::send_around(const Census& census, std::size_t distance, double bytes) {
  Routes& routes = counted_evenly_ ? even_routes_ : routes_;
  uses_.clear();
  for (std::size_t at = 0; at < census.size(); ++at) {
    const auto& [from, senders] = census[at];
    const auto& [to, receivers] = census[(at + distance) % census.size()];
    routes.append_between(from, to, 0, bytes * senders * receivers, uses_);
  }
  counter_.add(uses_);
}

void GroupRouter::send(std::span<const Nic> out, std::span<const Nic> in, double bytes) {
  counted_evenly_ = false;
  load_nics(out, in, bytes);
  load_switches(out, in, bytes);
  route_between();
}

void GroupRouter::load_nics(std::span<const Nic> out, std::span<const Nic> in, double bytes) {
  for_each_lane(out.size(), in.size(), [&](std::size_t from, std::size_t to, double share) {
    counter_.add({out[from].link, share * bytes});
    counter_.add({in[to].link ^ 1, share * bytes});
  });
}

// Counts the same message between the NICs' switches. Only a hash depends on the NICs themselves;
// without one the bytes are collected for route_between().
void GroupRouter::load_switches(std::span<const Nic> out, std::span<const Nic> in, double bytes) {
  uses_.clear();
  for_each_lane(out.size(), in.size(), [&](std::size_t from, std::size_t to, double share) {
    const Nic& leaving = out[from];
    const Nic& arriving = in[to];
    if (routes_.by_hash() && !counted_evenly_) {
      routes_.append(leaving.vertex, arriving.vertex, share * bytes, uses_);
    } else {
      send_later({leaving.leaf, arriving.leaf, share * bytes});
    }
  });
  counter_.add(uses_);
}

void GroupRouter::send_later(const Sent& sent) {
  const bool goes_on = !between_.empty() && ends(between_.back()) == ends(sent);
  if (goes_on) {
    between_.back().bytes += sent.bytes;
  } else {
    between_.push_back(sent);
  }
}

void GroupRouter::route_between() {
  Routes& routes = counted_evenly_ ? even_routes_ : routes_;
  std::ranges::stable_sort(between_, {}, ends);
  uses_.clear();
  for (std::size_t i = 0; i < between_.size();) {
    Sent sum = between_[i];
    for (++i; i < between_.size() && ends(between_[i]) == ends(sum); ++i) {
      sum.bytes += between_[i].bytes;
    }
    routes.append_between(sum.from, sum.to, 0, sum.bytes, uses_);
  }
  between_.clear();
  counter_.add(uses_);
}

RoutedGroups::~RoutedGroups() { const std::unique_ptr<GroupRouter> idle(idle_); }

template <typename Compute>
auto RoutedGroups::with_router(Compute compute) {
  std::unique_ptr<GroupRouter> router(idle_.exchange(nullptr));
  if (router == nullptr) router = std::make_unique<GroupRouter>(router_);
  auto computed = compute(*router);
  router.reset(idle_.exchange(router.release()));
  return computed;
}

const GroupRates& RoutedGroups::rates(GroupShape shape, int members) {
  if (const GroupRates* known = known_.find(shape)) return *known;
  return known_.add(
      shape, with_router([&](GroupRouter& router) { return router.compute(shape, members); }));
}

const HopTimes* RoutedGroups::hop_times(GroupShape shape, int members) {
  const std::optional<HopTimes>* known = known_hops_.find(shape);
  if (known == nullptr) {
    known = &known_hops_.add(
        shape, with_router([&](GroupRouter& router) { return router.hop_times(shape, members); }));
  }
  return *known ? &**known : nullptr;
}

}  // namespace trainyard
