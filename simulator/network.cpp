#include "simulator/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace trainyard {

Network::Network(const TaskGraph& graph, Fabric fabric, NetworkGrain grain, Events& events)
    : graph_(graph),
      fabric_(std::move(fabric)),
      grain_(grain),
      events_(events),
      flows_(fabric_.capacities(), events),
      plans_(graph.groups.size()) {}

Expected<void> Network::check() const {
  if (graph_.ranks.size() > static_cast<std::size_t>(fabric_.devices())) {
    return failure("topology", fmt::format("found {} ranks, allowed up to {}, its devices",
                                           graph_.ranks.size(), fabric_.devices()));
  }
  std::set<std::pair<std::int32_t, std::int32_t>> used;  // group and call
  for (const TaskRank& rank : graph_.ranks) {
    std::set<std::pair<std::int32_t, std::int32_t>> calls;  // channel and call
    for (const Task& task : graph_.lists[static_cast<std::size_t>(rank.list)].tasks) {
      if (task.call >= 0) calls.insert({task.channel, task.call});
    }
    for (const auto& [channel, call] : calls) {
      used.insert({rank.groups[static_cast<std::size_t>(channel)], call});
    }
  }
  for (const auto& [group, index] : used) {
    const Call& call = graph_.calls[static_cast<std::size_t>(index)];
    const GroupLinks links = fabric_.links_of(graph_.groups[static_cast<std::size_t>(group)]);
    if (call.algorithm == nullptr) {
      return failure(fmt::format("call {}", index), "found no algorithm");
    }
    if (links.size > 1 && !call.algorithm->applies(links)) {
      return failure(fmt::format("group {}", group),
                     fmt::format("algorithm {} does not apply to {} domains of {} ranks",
                                 call.algorithm->name, links.domains, links.ranks_per_domain));
    }
  }
  return {};
}

// ---- plans --------------------------------------------------------------------------------------

const Network::Plan& Network::plan_of(std::int32_t group, std::int32_t call) {
  std::vector<PlanOfCall>& plans = plans_[static_cast<std::size_t>(group)];
  for (const PlanOfCall& known : plans) {
    if (known.call == call) return *known.plan;
  }
  plans.push_back(
      {call, std::make_unique<Plan>(make_plan(graph_.groups[static_cast<std::size_t>(group)],
                                              graph_.calls[static_cast<std::size_t>(call)]))});
  return *plans.back().plan;
}

Network::Plan Network::make_plan(const TaskGroup& group, const Call& call) {
  Plan plan;
  const GroupLinks links = fabric_.links_of(group);
  if (links.size < 2) return plan;
  const TransferRounds rounds = call.algorithm->rounds(links, call.message);
  if (grain_ == NetworkGrain::collective) {
    const bool all_to_all = call.operation == CollectiveOperation::all_to_all;
    add_phases(plan, group, links.ranks_per_domain, rounds, all_to_all);
    return plan;
  }
  for (const TransferRound& round : rounds) {
    if (round.repeats > 0) plan.push_back(flows_of(group, links.ranks_per_domain, round));
  }
  return plan;
}

// The rounds of an all-to-all do not wait for each other: those of one kind are one phase.
void Network::add_phases(Plan& plan, const TaskGroup& group, int ranks_per_domain,
                         const TransferRounds& rounds, bool all_to_all) {
  for (auto first = rounds.begin(); first != rounds.end();) {
    const auto end = std::find_if(first + 1, rounds.end(), [&](const TransferRound& round) {
      return !all_to_all || round.way != first->way || round.latency != first->latency;
    });
    plan.push_back(phase_of(group, ranks_per_domain, {first, end}));
    first = end;
  }
}

// What the rounds together put on each link, as one flow of as many bytes as the busiest member
// sends.
Network::Round Network::phase_of(const TaskGroup& group, int ranks_per_domain,
                                 std::span<const TransferRound> rounds) {
  std::vector<LinkUse> loads;  // bytes
  std::vector<double> sent(group.size());
  Seconds latency;
  for (const TransferRound& round : rounds) {
    latency += round.repeats * round.latency;
    for (const Transfer& transfer : round.transfers) {
      const double bytes = round.repeats * transfer.bytes.value();
      sent[static_cast<std::size_t>(transfer.from)] += bytes;
      for (const LinkUse& use : fabric_.way(group, ranks_per_domain, round, transfer)) {
        loads.push_back({use.link, use.share * bytes});
      }
    }
  }
  Round phase{.latency = to_picoseconds(latency)};
  const double most = *std::max_element(sent.begin(), sent.end());
  if (most > 0) {
    for (LinkUse& load : loads) load.share /= most;
    phase.flows.push_back({flows_.add_path(loads), Bytes(most)});
  }
  return phase;
}

Network::Round Network::flows_of(const TaskGroup& group, int ranks_per_domain,
                                 const TransferRound& round) {
  Round result{.repeats = round.repeats, .latency = to_picoseconds(round.latency)};
  std::vector<std::vector<std::uint32_t>> of_member(group.size());
  for (const Transfer& transfer : round.transfers) {
    const auto flow = static_cast<std::uint32_t>(result.flows.size());
    result.flows.push_back({flows_.add_path(fabric_.way(group, ranks_per_domain, round, transfer)),
                            transfer.bytes, transfer.from, transfer.to});
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

void Network::start(std::int32_t group, std::int32_t call, std::uint32_t token) {
  if (free_active_.empty()) {
    free_active_.push_back(static_cast<std::uint32_t>(active_.size()));
    active_.emplace_back();
  }
  const std::uint32_t id = free_active_.back();
  free_active_.pop_back();
  Active& active = active_[id];
  active.plan = &plan_of(group, call);
  active.token = token;
  active.round = 0;
  const bool waits = !active.plan->empty() &&
                     (grain_ == NetworkGrain::collective || active.plan->front().flows.empty());
  const Picoseconds latency = waits ? active.plan->front().latency : Picoseconds(0);
  events_.push(events_.now() + latency, Event(EventKind::latency_ends, make_pending(id, kRound)));
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
      events_.push(events_.now() + latency, Event(EventKind::latency_ends, pending));
    } else {
      arrive(pending, ended);
    }
  }
}

// On to the next round that has anything to wait for, or to the end.
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
      events_.push(events_.now() + round.latency,
                   Event(EventKind::latency_ends, make_pending(id, kRound)));
      return;
    }
    if (begin_flows(id)) return;
  }
}

// False: the round has none.
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
  flows_.start(flow.path, flow.bytes, make_pending(id, index));
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

// A flow of the member's repeat is done; with the last one it goes on to the next repeat, and what
// the other end is ready for begins.
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
