#include "simulator/network/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace trainyard {

namespace {

// The devices of a group. In a folded graph all copies of a group are alike, so the first will do.
GroupView devices_of(const TaskGraph& graph, std::int32_t group) {
  const auto index = static_cast<std::size_t>(group);
  return graph.folded() ? graph.copies[index][0] : GroupView(graph.groups[index]);
}

Expected<void> check_calls(const TaskGraph& graph, const Fabrics& fabric) {
  if (graph.ranks.size() > static_cast<std::size_t>(fabric.devices())) {
    return failure("topology", fmt::format("found {} ranks, allowed up to {}, its devices",
                                           graph.ranks.size(), fabric.devices()));
  }
  for (const auto& [group, index] : calls_in_use(graph)) {
    const Call& call = graph.calls[static_cast<std::size_t>(index)];
    const GroupLinks links = fabric.links_of(devices_of(graph, group));
    if (call.algorithm == nullptr) {
      return failure(fmt::format("call {}", index), "found no algorithm");
    }
    if (links.size > 1 && algorithm_on(links, call) == nullptr) {
      return failure(fmt::format("group {}", group),
                     fmt::format("algorithm {} does not apply to {} domains of {} ranks",
                                 call.algorithm->name, links.domains, links.ranks_per_domain));
    }
  }
  return {};
}

}  // namespace

Expected<std::unique_ptr<Network>> Network::make(const TaskGraph& graph, Fabrics fabric,
                                                 NetworkGrain grain, Events& events) {
  if (auto checked = check_calls(graph, fabric); !checked) return tl::unexpected(checked.error());
  std::optional<FoldedLinks> folded;
  if (graph.folded()) {
    if (grain == NetworkGrain::message) {
      return failure("fold", "a folded graph is played at the collective grain only");
    }
    auto links = fold_links(graph, fabric);
    if (!links) return tl::unexpected(links.error());
    folded = *std::move(links);
  }
  return std::unique_ptr<Network>(
      new Network(graph, std::move(fabric), grain, std::move(folded), events));
}

Network::Network(const TaskGraph& graph, Fabrics fabric, NetworkGrain grain,
                 std::optional<FoldedLinks> folded, Events& events)
    : graph_(graph),
      fabric_(std::move(fabric)),
      grain_(grain),
      folded_(std::move(folded)),
      events_(events),
      flows_(folded_ ? std::span<const BytesPerSecond>(folded_->capacities) : fabric_.capacities(),
             events),
      plans_(graph.groups.size()) {}

// ---- plans --------------------------------------------------------------------------------------

const Network::Plan& Network::plan_of(std::int32_t group, std::int32_t call) {
  std::vector<PlanOfCall>& plans = plans_[static_cast<std::size_t>(group)];
  for (const PlanOfCall& known : plans) {
    if (known.call == call) return *known.plan;
  }
  plans.push_back({call, std::make_unique<Plan>(make_plan(group, call))});
  return *plans.back().plan;
}

Network::Plan Network::make_plan(std::int32_t group, std::int32_t index) {
  if (folded_) return plan_of_phases(folded_->phases.at({group, index}));
  const Call& call = graph_.calls[static_cast<std::size_t>(index)];
  const TaskGroup& members = graph_.groups[static_cast<std::size_t>(group)];
  if (grain_ == NetworkGrain::collective) {
    return plan_of_phases(phases_of(fabric_, members, call));
  }
  Plan plan;
  const GroupLinks links = fabric_.links_of(members);
  if (links.size < 2) return plan;
  for (const TransferRound& round : rounds_of(links, call)) {
    if (round.repeats > 0) {
      plan.push_back(flows_of(members, links.ranks_per_domain, round, call.stretch));
    }
  }
  return plan;
}

Network::Plan Network::plan_of_phases(std::span<const CallPhase> phases) {
  Plan plan;
  for (const CallPhase& phase : phases) {
    plan.push_back({.latency = to_picoseconds(phase.latency)});
    if (phase.bytes.value() > 0) {
      plan.back().flows.push_back({flows_.add_path(phase.links), phase.bytes});
    }
  }
  return plan;
}

Network::Round Network::flows_of(const TaskGroup& group, int ranks_per_domain,
                                 const TransferRound& round, double stretch) {
  Round result{.repeats = round.repeats, .latency = to_picoseconds(round.latency * stretch)};
  std::vector<std::vector<std::uint32_t>> of_member(group.size());
  std::vector<LinkUse> way;
  for (const Transfer& transfer : round.transfers) {
    const auto flow = static_cast<std::uint32_t>(result.flows.size());
    way.clear();
    fabric_.append_way(group, ranks_per_domain, round, transfer, way);
    result.flows.push_back(
        {flows_.add_path(way), transfer.bytes * stretch, transfer.from, transfer.to});
    of_member[static_cast<std::size_t>(transfer.from)].push_back(flow);
    if (transfer.to != transfer.from) {
      of_member[static_cast<std::size_t>(transfer.to)].push_back(flow);
    }
  }
  for (const std::vector<std::uint32_t>& flows : of_member) {
    result.first_of_member.push_back(static_cast<std::uint32_t>(result.of_member.size()));
    result.of_member.insert(result.of_member.end(), flows.begin(), flows.end());
  }
  result.first_of_member.push_back(static_cast<std::uint32_t>(result.of_member.size()));
  return result;
}

// In a folded graph every link of a class carries what its representative does.
std::vector<LinkTraffic> Network::traffic() const {
  std::vector<LinkTraffic> links;
  const std::vector<Bytes> carried = flows_.carried();
  for (std::size_t link = 0; link < fabric_.capacities().size(); ++link) {
    const std::int32_t of = folded_ ? folded_->class_of[link] : static_cast<std::int32_t>(link);
    if (of < 0 || carried[static_cast<std::size_t>(of)] <= Bytes(0)) continue;
    links.push_back({static_cast<std::int32_t>(link), fabric_.capacities()[link],
                     carried[static_cast<std::size_t>(of)]});
  }
  return links;
}

// ---- calls under way ----------------------------------------------------------------------------

std::uint32_t Network::make_pending(std::uint32_t active, std::int32_t flow) {
  if (free_pending_.empty()) {
    free_pending_.push_back(static_cast<std::uint32_t>(pending_.size()));
    pending_.emplace_back();
  }
  const std::uint32_t id = free_pending_.back();
  free_pending_.pop_back();
  pending_[id] = {active, flow};
  return id;
}

Network::Pending Network::take(std::uint32_t pending) {
  free_pending_.push_back(pending);
  return pending_[pending];
}

void Network::start(std::int32_t group, std::int32_t call, double load, std::uint32_t token) {
  if (free_active_.empty()) {
    free_active_.push_back(static_cast<std::uint32_t>(active_.size()));
    active_.emplace_back();
  }
  const std::uint32_t id = free_active_.back();
  free_active_.pop_back();
  Active& active = active_[id];
  active.plan = &plan_of(group, call);
  active.token = token;
  active.load = load;
  active.round = 0;
  const bool waits = !active.plan->empty() &&
                     (grain_ == NetworkGrain::collective || active.plan->front().flows.empty());
  const Picoseconds latency = waits ? active.plan->front().latency : Picoseconds(0);
  events_.push_after(latency, Event(EventKind::latency_ends, make_pending(id, kRound)));
}

void Network::handle(Event event, std::vector<std::uint32_t>& ended) {
  if (event.kind() == EventKind::latency_ends) {
    if (pending_[event.index()].flow != kRound) return arrive(event.index(), ended);
    const std::uint32_t id = take(event.index()).active;
    if (!begin_flows(id)) go_on(id, ended);
    return;
  }
  through_.clear();
  flows_.finish(event, through_);
  for (const std::uint32_t pending : through_) {
    const Active& active = active_[pending_[pending].active];
    const Picoseconds latency = (*active.plan)[active.round].latency;
    if (grain_ == NetworkGrain::message && latency.count() > 0) {
      events_.push_after(latency, Event(EventKind::latency_ends, pending));
    } else {
      arrive(pending, ended);
    }
  }
}

// Goes on to the next round that has anything to wait for, or ends the call.
void Network::go_on(std::uint32_t id, std::vector<std::uint32_t>& ended) {
  Active& active = active_[id];
  for (;;) {
    if (active.round < active.plan->size()) ++active.round;
    if (active.round >= active.plan->size()) {
      ended.push_back(active.token);
      free_active_.push_back(id);
      return;
    }
    const Round& round = (*active.plan)[active.round];
    const bool waits = grain_ == NetworkGrain::collective || round.flows.empty();
    if (waits && round.latency.count() > 0) {
      events_.push_after(round.latency, Event(EventKind::latency_ends, make_pending(id, kRound)));
      return;
    }
    if (begin_flows(id)) return;
  }
}

// Starts the flows of the round; false: it has none.
bool Network::begin_flows(std::uint32_t id) {
  Active& active = active_[id];
  if (active.round >= active.plan->size()) return false;
  const Round& round = (*active.plan)[active.round];
  active.left = 0;
  active.members.clear();
  for (std::size_t member = 0; member + 1 < round.first_of_member.size(); ++member) {
    const auto flows =
        static_cast<int>(round.first_of_member[member + 1] - round.first_of_member[member]);
    active.members.push_back({0, flows});
    active.left += flows > 0 ? 1 : 0;
  }
  for (std::size_t flow = 0; flow < round.flows.size(); ++flow) {
    start_flow(id, static_cast<std::int32_t>(flow));
  }
  return !round.flows.empty();
}

void Network::start_flow(std::uint32_t id, std::int32_t index) {
  const Active& active = active_[id];
  const Flow& flow = (*active.plan)[active.round].flows[static_cast<std::size_t>(index)];
  flows_.start(flow.path, flow.bytes * active.load, make_pending(id, index));
}

void Network::arrive(std::uint32_t pending, std::vector<std::uint32_t>& ended) {
  const auto [id, index] = take(pending);
  if (grain_ == NetworkGrain::collective) return go_on(id, ended);
  const Active& active = active_[id];
  const Flow& flow = (*active.plan)[active.round].flows[static_cast<std::size_t>(index)];
  const auto [from, to] = std::pair(flow.from, flow.to);
  member_done(id, from, ended);
  if (to != from) member_done(id, to, ended);
}

// A flow of the member's repeat has ended. After its last flow the member goes on to the next
// repeat, and those flows begin whose other end is ready, too.
void Network::member_done(std::uint32_t id, std::int32_t index, std::vector<std::uint32_t>& ended) {
  Active& active = active_[id];
  const auto at = static_cast<std::size_t>(index);
  Active::Member& member = active.members[at];
  if (--member.flows > 0) return;
  const Round& round = (*active.plan)[active.round];
  if (++member.repeat == round.repeats) {
    if (--active.left == 0) go_on(id, ended);
    return;
  }
  const std::uint32_t first = round.first_of_member[at];
  const std::uint32_t last = round.first_of_member[at + 1];
  member.flows = static_cast<int>(last - first);
  for (std::uint32_t i = first; i < last; ++i) {
    const std::uint32_t flow = round.of_member[i];
    const std::int32_t other =
        round.flows[flow].from == index ? round.flows[flow].to : round.flows[flow].from;
    if (active.members[static_cast<std::size_t>(other)].repeat == member.repeat) {
      start_flow(id, static_cast<std::int32_t>(flow));
    }
  }
}

}  // namespace trainyard
