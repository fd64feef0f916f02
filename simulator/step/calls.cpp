#include "simulator/step/calls.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/cost/exposure.h"
#include "model/cost/layer_cost.h"
#include "model/cost/messages/traffic.h"
#include "simulator/engine/phases.h"

namespace trainyard {
namespace {

// All members send to the next one of the group at once and receive from the one before. The other
// direction takes as long.
bool always(const GroupLinks& /*links*/) { return true; }

Seconds pass_on_time(const GroupLinks& links, Bytes message) {
  return find_collective_algorithm(CollectiveOperation::send, "direct")->time(links, message);
}

// Messages go one hop, so the latency is that of the longest hop, not the mean of a ring's pass.
TransferRounds pass_on_rounds(const GroupLinks& links, Bytes message) {
  TransferRound round = ring_round(links, 1, message);
  round.latency = pass_on_time(links, Bytes(0));
  round.way = Way::own_links;
  return {round};
}

constexpr CollectiveAlgorithm kPassOn = {.name = "pass on",
                                         .operation = CollectiveOperation::all_to_all,
                                         .applies = always,
                                         .time = pass_on_time,
                                         .rounds = pass_on_rounds};

// The fallback where placement makes a plan's groups differ and the chosen algorithm fits only
// some.
const CollectiveAlgorithm* runs_anywhere(CollectiveOperation operation) {
  const char* name = operation == CollectiveOperation::all_to_all ? "pairwise" : "ring";
  return find_collective_algorithm(operation, name);
}

// The load of a call that takes `time`: the bytes by which nccl-tests count bus bandwidth, or those
// of both levels of a two-level exchange; but no more than the links carry in that time, since a
// library that reduces in the switch sends less.
CallLoad load_of_a_member(const Call& call, const GroupLinks& links, Seconds time, double shown) {
  const double r = links.ranks_per_domain;
  const double m = links.domains;
  CallLoad load{.sent = call.message, .hidden = time * (1 - shown), .inside = {}, .across = {}};
  if (r > 1) load.inside = links.inside;
  if (m > 1) load.across = links.way_out;
  if (call.leaving > 0) {
    load.sent = ((r - 1) / r + (m - 1) / m * call.leaving) * call.message;
  } else if (call.algorithm != &kPassOn) {
    load.sent = bus_bandwidth(call.operation, links.size, call.message, Seconds(1)) * Seconds(1);
  }
  load.sent = std::min(load.sent, (load.inside + load.across) * time);
  return load;
}

struct ShownShares {
  double forward = 1, backward = 1;
};

// The shares of experts' exchanges that the estimate leaves exposed where they are beside another
// micro-batch's compute. They are needed because no operation of the same micro-batch covers them.
ShownShares shown_of_exchanges(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  const LayerCounts all = job.all_layers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const LayerKind kind = layer_kind_at(job.job.model, static_cast<int>(i));
    if (all[i] == 0 || !kind.moe) continue;
    const PassTraffic whole = layer_traffic(job, plan, links, {}, kind).expert_parallel;
    if (whole.forward <= Seconds(0)) return {};
    const LayerCost cost = layer_cost(job, plan, links, kind);
    return {cost.forward.expert_parallel / whole.forward,
            cost.input_gradient.expert_parallel / whole.backward};
  }
  return {};
}

// The share of experts' exchanges in a pair of passes that the compute of the pair's layers leaves
// exposed, slowed compute included (DeepSeek-V3 report, section 3.2.1). It is needed because the
// pass list has the two passes one after the other.
double shown_in_pairs(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  const LayerCounts all = job.all_layers();
  Seconds exchange;
  Seconds compute;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == 0) continue;
    const LayerCost cost =
        layer_cost(job, plan, links, layer_kind_at(job.job.model, static_cast<int>(i)));
    const Seconds own = cost.forward.expert_parallel + cost.input_gradient.expert_parallel;
    exchange += all[i] * own;
    compute += all[i] * (cost.forward.total() + cost.input_gradient.total() +
                         cost.weight_gradient.total() - own);
  }
  if (exchange <= Seconds(0)) return 1;
  return 1 - hidden_behind(compute, exchange, job.job.training.stack) / exchange;
}

// If reductions and gathers of parameters are not overlapped with passes, they are one message for
// all units (Megatron-LM without --overlap-grad-reduce: one bucket), while a program has one for
// each unit. These share the time of the one message by their bytes.
class OneMessage {
 public:
  OneMessage(const Plan& plan, const Program& program) {
    if (plan.overlap.data_parallel || plan.held_zero_stage() >= 3) return;
    for (const StageProgram& stage : program.stages) {
      for (const Body& body : stage.bodies) add(program, body);
    }
  }
  // The message of all units of the stage where it is largest; else the operation's own.
  Bytes message_of(const Operation& operation) const {
    const auto found = whole_.find({operation.kind, operation.group});
    return found == whole_.end() ? operation.message : found->second;
  }

 private:
  using Kind = std::pair<OperationKind, Group>;

  static bool is_of_parameters(const Operation& operation) {
    return operation.group == Group::dense_gradient || operation.group == Group::dense_shard ||
           operation.group == Group::dense_replica || operation.group == Group::expert_data;
  }
  void add(const Program& program, const Body& body) {
    std::map<Kind, Bytes> sums;
    for (const BlockCall& call : body.calls) {
      if (call.block < 0) continue;
      for (const Operation& op : program.blocks[static_cast<std::size_t>(call.block)].operations) {
        if (is_of_parameters(op)) sums[{op.kind, op.group}] += op.message;
      }
    }
    for (const auto& [kind, sum] : sums) whole_[kind] = std::max(whole_[kind], sum);
  }

  std::map<Kind, Bytes> whole_;
};

// Whether ranks of several stages take part in a collective.
bool joins_stages(const Operation& operation) {
  switch (operation.group) {
    case Group::tied_embedding:
    case Group::mirror:
    case Group::model:
    case Group::all:
      return true;
    default:
      return false;
  }
}

class CallMaker {
 public:
  CallMaker(const StageGroup& group, const Plan& plan, const Program& program,
            const RankLayout& layout)
      : job_(*group.own),
        whole_(*group.whole),
        plan_(plan),
        layout_(layout),
        links_(plan_links(job_, plan)),
        one_message_(plan, program) {
    if (plan.overlap.expert_parallel) exchanges_ = shown_of_exchanges(job_, plan, links_);
    if (plan.schedule->route == Route::both_ways) in_pairs_ = shown_in_pairs(job_, plan, links_);
  }

  // Whether passes that run side by side hide some of the operation.
  bool is_hidden_in_pairs(const Operation& operation) const {
    const bool exchange =
        operation.group == Group::expert || operation.group == Group::expert_tensor;
    return exchange && operation.phase != Phase::update && in_pairs_ < 1;
  }

  // Adds the call of an operation between ranks and returns its index. `in_layer`: the operation is
  // in a layer of the network.
  int add(CallList& out, const Operation& operation, bool in_layer, bool paired = false) const {
    const GroupLinks links = links_of(operation);
    Call call{.operation = *collective_of(operation.kind), .message = operation.message};
    const Bytes whole = one_message_.message_of(operation);
    Seconds time =
        operation.message / whole * collective_time(call.operation, links, whole, links_);
    if (operation.kind == OperationKind::pass_on || operation.kind == OperationKind::pass_back) {
      call.operation = kPassOn.operation;
      call.algorithm = &kPassOn;
    } else {
      call.algorithm = collective_algorithm(call.operation, links, whole, links_.choice);
      call.otherwise = runs_anywhere(call.operation);
    }
    Seconds played = call.algorithm->time(links, operation.message);
    if (passes_tokens_on(operation, links)) {
      const double inside = distinct_share(job_.job.model, links.size);
      call.leaving = distinct_share(job_.job.model, links.domains) / inside;
      time = exchange_time(job_, links_, operation.message / inside);
      played = two_level_time(links, operation.message, call.leaving);
    }
    const double shown = (in_layer ? shown_share(operation) : 1) * (paired ? in_pairs_ : 1);
    call.stretch = shown * (time / played);
    call.contention = contention(operation, call.operation, links, whole);
    out.calls.push_back(call);
    out.alone.push_back(time * shown);
    out.loads.push_back(load_of_a_member(call, links, time, shown));
    return static_cast<int>(out.calls.size()) - 1;
  }

  bool communicates(const Operation& operation) const {
    if (!is_communication(operation.kind) || operation.message <= Bytes(0)) return false;
    return operation.kind != OperationKind::receive && links_of(operation).size > 1;
  }

 private:
  GroupLinks links_of(const Operation& operation) const {
    if (operation.group == Group::none) return links_.pipeline;
    const FabricTiers& tiers = (joins_stages(operation) ? whole_ : job_).tiers;
    return group_links(tiers, layout_.members(operation.group, 0).shape);
  }

  // Whether a token is sent once to each domain and passed on there.
  bool passes_tokens_on(const Operation& operation, const GroupLinks& links) const {
    const bool moves_tokens =
        operation.kind == OperationKind::dispatch || operation.kind == OperationKind::combine;
    return moves_tokens && links.domains > 1 && job_.job.training.stack.deduplicated_dispatch;
  }

  // The share of an exchange that stays exposed where the stack overlaps it.
  double shown_share(const Operation& operation) const {
    if (operation.phase == Phase::weight_gradient) return 1;
    if (operation.stream == ProgramStream::expert_parallel && plan_.overlap.expert_parallel) {
      return operation.phase == Phase::forward ? exchanges_.forward : exchanges_.backward;
    }
    if (operation.stream != ProgramStream::tensor_parallel) return 1;
    return shown_of_tensor_parallel(job_.job.training.stack, plan_);
  }

  // How far a call slows compute beside it. For tensor parallelism this is part of the share that
  // the stack hides, so it is 0. Kernels of sends and receives hold their multiprocessors until the
  // message has arrived.
  double contention(const Operation& operation, CollectiveOperation as, const GroupLinks& links,
                    Bytes message) const {
    if (operation.stream == ProgramStream::context_parallel) return 1;
    // As in sends_in_passes() of the estimate.
    if (operation.stream == ProgramStream::pipeline) return 1;
    if (operation.stream != ProgramStream::data_parallel &&
        operation.stream != ProgramStream::embedding) {
      return 0;
    }
    const CollectiveCost cost = collective_cost(as, links, message, links_.choice);
    return contending_share(as, links, message, cost);
  }

  const PreparedJob& job_;
  const PreparedJob& whole_;
  const Plan& plan_;
  const RankLayout& layout_;
  PlanLinks links_;
  OneMessage one_message_;
  ShownShares exchanges_;
  double in_pairs_ = 1;
};

}  // namespace

std::vector<bool> called_by_layers(const Program& program) {
  std::vector<bool> called(program.blocks.size());
  for (const StageProgram& stage : program.stages) {
    for (const Body& body : stage.bodies) {
      for (const BlockCall& call : body.calls) {
        if (call.layer >= 0) called[static_cast<std::size_t>(call.block)] = true;
      }
    }
  }
  return called;
}

StepCalls::StepCalls(const StepSite& site, const Plan& plan, const Program& program,
                     const RankLayout& layout)
    : site_(site), crossing_(site.groups.size()) {
  for (std::size_t group = 0; group < site.groups.size(); ++group) {
    add_group(group, plan, program, layout);
    for (std::size_t other = 0; other < site.groups.size(); ++other) {
      crossing_[group].push_back(
          other == group ? Sends() : sends_over(site.boundary_of(group, other), program));
    }
  }
}

void StepCalls::add_group(std::size_t group, const Plan& plan, const Program& program,
                          const RankLayout& layout) {
  const CallMaker maker(site_.groups[group], plan, program, layout);
  const std::vector<bool> of_layers = called_by_layers(program);
  const std::size_t first = all_.calls.size();
  CallTable table;
  for (std::size_t block = 0; block < program.blocks.size(); ++block) {
    const bool in_layer = of_layers[block];
    std::vector<int> calls, in_pairs;
    for (const Operation& operation : program.blocks[block].operations) {
      const bool has_own = maker.communicates(operation) && !(group > 0 && joins_stages(operation));
      calls.push_back(has_own ? maker.add(all_, operation, in_layer) : -1);
      const bool hidden = has_own && maker.is_hidden_in_pairs(operation);
      in_pairs.push_back(hidden ? maker.add(all_, operation, in_layer, true) : calls.back());
    }
    table.alone.push_back(std::move(calls));
    table.in_pairs.push_back(std::move(in_pairs));
  }
  of_group_.push_back(std::move(table));
  const double slowdown = site_.groups[group].own->job.training.stack.overlap_slowdown;
  if (slowdown == site_.overlap_slowdown()) return;
  for (std::size_t call = first; call < all_.calls.size(); ++call) {
    all_.calls[call].contention *= slowdown / site_.overlap_slowdown();
  }
}

StepCalls::Sends StepCalls::sends_over(const Boundary& boundary, const Program& program) {
  const GroupLinks links = links_over(boundary);
  Sends sends;
  for (const Block& block : program.blocks) {
    sends.emplace_back();
    for (const Operation& operation : block.operations) {
      sends.back().push_back(-1);
      if (operation.kind != OperationKind::send || operation.message <= Bytes(0)) continue;
      const Call call{.operation = CollectiveOperation::send,
                      .algorithm = find_collective_algorithm(CollectiveOperation::send, "direct"),
                      .message = operation.message};
      const Seconds time = call.algorithm->time(links, call.message);
      sends.back().back() = static_cast<int>(all_.calls.size());
      all_.calls.push_back(call);
      all_.alone.push_back(time);
      all_.loads.push_back(load_of_a_member(call, links, time, 1));
    }
  }
  return sends;
}

int StepCalls::of(int stage, const IssuedOperation& issued) const {
  const auto block = static_cast<std::size_t>(issued.call->block);
  const auto at = static_cast<std::size_t>(issued.operation - issued.block->operations.data());
  const std::size_t group = site_.group_of(stage);
  if (issued.operation->kind == OperationKind::send) {
    const std::size_t other = site_.group_of(issued.call->peer);
    if (other != group) return crossing_[group][other][block][at];
  }
  const CallTable& table = of_group_[joins_stages(*issued.operation) ? 0 : group];
  return (issued.step->paired ? table.in_pairs : table.alone)[block][at];
}

}  // namespace trainyard
