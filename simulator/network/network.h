// Plays collectives and messages on the links of the fabric, at one of two grains.
//
// *Collective*: a call is a sequence of phases (simulator/engine/phases.h), each one flow over all
// its links. A folded graph is played at this grain only. *Message*: every transfer of every repeat
// of every round is a flow of its own, followed by its latency. Without other traffic both take as
// long as the closed forms of handbook §6; with other traffic calls share the links
// (simulator/network/flow_network.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "simulator/engine/event.h"
#include "simulator/graph/symmetry.h"
#include "simulator/graph/task_graph.h"
#include "simulator/network/fabrics.h"
#include "simulator/network/flow_network.h"
#include "simulator/timeline.h"

namespace trainyard {

enum class NetworkGrain { collective, message };

class Network {
 public:
  // Fails where a group can run neither algorithm of a call, and where the copies of a folded group
  // are not alike. Requires: `graph` and `events` outlive the network; ranks are devices of the
  // fabric.
  static Expected<std::unique_ptr<Network>> make(const TaskGraph& graph, Fabrics fabric,
                                                 NetworkGrain grain, Events& events);

  // A call of a group begins now, with `load` times its bytes; handle() returns its `token`.
  void start(std::int32_t group, std::int32_t call, double load, std::uint32_t token);
  // Handles a latency_ends or transfer_ends event: appends the tokens of the calls that end to
  // `ended`.
  void handle(Event event, std::vector<std::uint32_t>& ended);
  // Call before the clock moves, see FlowNetwork::settle().
  void settle() { flows_.settle(); }
  // The traffic of each link that carried anything.
  std::vector<LinkTraffic> traffic() const;

 private:
  Network(const TaskGraph& graph, Fabrics fabric, NetworkGrain grain,
          std::optional<FoldedLinks> folded, Events& events);

  struct Flow {
    FlowNetwork::PathId path = 0;
    Bytes bytes;
    std::int32_t from = 0, to = 0;  // member indices; unused for a phase
  };
  struct Round {
    int repeats = 1;
    Picoseconds latency{0};  // before the flow of a phase, after the flow of a message
    std::vector<Flow> flows;
    // The flows of each member, one member after the other, and where each member's begin.
    std::vector<std::uint32_t> first_of_member, of_member;
  };
  using Plan = std::vector<Round>;

  // A call under way.
  struct Active {
    const Plan* plan = nullptr;
    std::uint32_t token = 0;
    double load = 1;
    std::size_t round = 0;
    int left = 0;  // members that have repeats of this round left
    struct Member {
      int repeat = 0;
      int flows = 0;  // flows of this repeat that are not done
    };
    std::vector<Member> members;
  };
  // What an event or a finished flow belongs to.
  struct Pending {
    std::uint32_t active = 0;
    std::int32_t flow = 0;  // kRound: the round's latency
  };
  static constexpr std::int32_t kRound = -1;

  const Plan& plan_of(std::int32_t group, std::int32_t call);
  Plan make_plan(std::int32_t group, std::int32_t call);
  Plan plan_of_phases(std::span<const CallPhase> phases);
  Round flows_of(const TaskGroup& group, int ranks_per_domain, const TransferRound& round,
                 double stretch);
  FlowNetwork::PathId path_of(const TaskGroup& group, int ranks_per_domain,
                              const TransferRound& round, const Transfer& transfer);

  std::uint32_t make_pending(std::uint32_t active, std::int32_t flow);
  Pending take(std::uint32_t pending);
  void go_on(std::uint32_t id, std::vector<std::uint32_t>& ended);
  bool begin_flows(std::uint32_t id);
  void start_flow(std::uint32_t id, std::int32_t flow);
  void arrive(std::uint32_t pending, std::vector<std::uint32_t>& ended);
  void member_done(std::uint32_t id, std::int32_t member, std::vector<std::uint32_t>& ended);

  const TaskGraph& graph_;
  Fabrics fabric_;
  NetworkGrain grain_;
  std::optional<FoldedLinks> folded_;
  Events& events_;
  FlowNetwork flows_;
  struct PlanOfCall {
    std::int32_t call = 0;
    std::unique_ptr<Plan> plan;
  };
  std::vector<std::vector<PlanOfCall>> plans_;  // by group
  std::vector<Active> active_;
  std::vector<std::uint32_t> free_active_;
  std::vector<Pending> pending_;
  std::vector<std::uint32_t> free_pending_;
  std::vector<std::uint32_t> through_;
};

}  // namespace trainyard
