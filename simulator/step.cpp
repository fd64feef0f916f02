#include "simulator/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/cluster/topology_graph.h"
#include "model/cost/money.h"
#include "model/program/rank_layout.h"
#include "simulator/graph/rank_classes.h"
#include "simulator/simulate.h"
#include "simulator/step/breakdown.h"
#include "simulator/step/site_topology.h"

namespace trainyard {
namespace {

// Why ranks certainly differ, so that folding need not be tried; empty: they may be alike.
std::string unlike_because(const StepOptions& options) {
  if (options.grain == NetworkGrain::message) return "every message is a flow of its own";
  if (!options.conditions.stragglers.empty()) return "ranks differ in speed";
  if (options.conditions.jitter > 0) return "kernels jitter";
  return {};
}

struct Played {
  StepGraph step;
  Timeline timeline;
};

// Splits the stages of a folded step into classes of alike ranks. False: that cannot be done or
// does not pay.
bool part_stages(const StepSite& site, const Plan& plan, const SiteTopology& topology,
                 StepGraph& step) {
  auto fabrics = Fabrics::make(topology.groups(), topology.boundary());
  if (!fabrics) return false;
  const RankLayout layout(plan, site.any().job.model.kv_heads);
  for (int device = 0; device < plan.devices(); ++device) {
    step.played_by.push_back(layout.coordinates(device).stage);
  }
  return part_ranks(*fabrics, step.graph, step.played_by);
}

Expected<Played> play(const StepSite& site, const Plan& plan, const StepOptions& options,
                      const SiteTopology& topology, bool folded) {
  auto step = step_graph(site, plan, folded, options.conditions);
  if (!step) return tl::unexpected(step.error());
  const Conditions conditions{
      .network = NetworkModel(topology.groups(), topology.boundary(), options.grain),
      .speeds = speeds_of(options.conditions, site.any().job.cluster),
      .jitter = options.conditions.jitter,
      .seed = static_cast<std::uint64_t>(options.conditions.seed),
      .overlap_slowdown = site.overlap_slowdown(),
      .interrupted = options.interrupted,
      .progress = options.progress};
  auto timeline = simulate(step->graph, conditions);
  if (folded && !timeline && timeline.error().where == "fold" &&
      part_stages(site, plan, topology, *step)) {
    timeline = simulate(step->graph, conditions);
  }
  if (!timeline) return tl::unexpected(timeline.error());
  return Played{*std::move(step), *std::move(timeline)};
}

// From the first task of a rank that takes time to the end of its last. The all-gathers of updated
// weights after the update count, because the next step begins with these weights; and so does the
// first one at the start of a step, which comes between the update before and the first task.
struct Span {
  Picoseconds start{0}, end{0};
};

bool gathers_in(StepPass pass, const StepTask& task) {
  return task.kind == StepTaskKind::operation && task.issued.step->pass == pass &&
         task.issued.operation->kind == OperationKind::all_gather;
}

// From the start of the step until weights are gathered that a task waits for.
Picoseconds gathered_for(std::size_t task, const StepGraph& step, std::size_t list,
                         std::span<const TaskTimes> times) {
  Picoseconds gathered{0};
  for (const std::int32_t after :
       step.graph.lists[list].dependencies_of(static_cast<std::int32_t>(task))) {
    const auto before = static_cast<std::size_t>(after);
    if (gathers_in(StepPass::start, step.tasks[list][before])) {
      gathered = std::max(gathered, times[before].end);
    }
  }
  return gathered;
}

Span span_of(const StepGraph& step, const Timeline& timeline, int rank) {
  const std::size_t list = step.graph.list_of(rank);
  const std::vector<Task>& tasks = step.graph.lists[list].tasks;
  const std::span<const TaskTimes> times = timeline.of(rank);
  Span span;
  bool begun = false;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (gathers_in(StepPass::finish, step.tasks[list][i])) {
      span.end = std::max(span.end, times[i].end);
    }
    if (tasks[i].stream != Stream::compute || tasks[i].kind == TaskKind::receive) continue;
    if (!begun) span.start = times[i].start - gathered_for(i, step, list, times);
    begun = true;
    span.end = std::max(span.end, times[i].end);
  }
  return span;
}

// Without an optimizer barrier, steps follow each other at the longest span of a rank (handbook
// §8), because work at the ends of a step overlaps that of the next one.
void fill_times(const StepSite& site, const Plan& plan, StepSimulation& out) {
  const auto ranks = static_cast<int>(out.step.graph.ranks.size());
  Picoseconds most{-1};
  Span longest;
  out.stages.resize(out.step.graph.lists.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const Picoseconds busy = busy_time(out.step, out.timeline, rank);
    const std::size_t stage = out.step.graph.list_of(rank);
    out.stages[stage].busy = std::max(out.stages[stage].busy, to_seconds(busy));
    if (busy > most) {
      most = busy;
      out.rank = rank;
    }
    if (plan.optimizer_barrier) continue;
    const Span span = span_of(out.step, out.timeline, rank);
    if (span.end - span.start > longest.end - longest.start) longest = span;
  }
  Span step{Picoseconds(0), out.timeline.makespan};
  if (!plan.optimizer_barrier) {
    step.start = span_of(out.step, out.timeline, out.rank).start;
    step.end = step.start + (longest.end - longest.start);
  }
  const Seconds overhead = site.step_overhead();
  out.step_time = to_seconds(step.end - step.start) + overhead;
  out.breakdown = breakdown_of(out.step, out.timeline, out.rank, step.start, step.end);
  out.breakdown.other += overhead;
  for (StageUse& stage : out.stages) stage.share = stage.busy / out.step_time;
}

void fill_memory(StepSimulation& out) {
  std::vector<bool> done(out.stages.size());
  for (int rank = 0; rank < static_cast<int>(out.step.graph.ranks.size()); ++rank) {
    const std::size_t stage = out.step.graph.list_of(rank);
    if (done[stage]) continue;
    done[stage] = true;
    out.stages[stage].memory = memory_timeline(out.step.graph.lists[stage], out.timeline.of(rank));
  }
}

std::string_view name_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::device:
      return "device";
    case VertexKind::nvlink_switch:
      return "NVLink switch";
    case VertexKind::host:
      return "host";
    case VertexKind::nic:
      return "NIC";
    case VertexKind::leaf:
      return "leaf switch";
    case VertexKind::spine:
      break;
  }
  return "spine switch";
}

using LinkEnds = std::pair<VertexKind, VertexKind>;

// Those of every link of the topologies; a named boundary's links come behind them.
std::vector<LinkEnds> ends_of_links(const SiteTopology& site) {
  std::vector<LinkEnds> ends;
  for (const FabricGroup& group : site.groups()) {
    const TopologyGraph& topology = *group.topology;
    for (const auto edge : boost::make_iterator_range(edges(topology))) {
      const VertexKind from = topology[source(edge, topology)].kind;
      const VertexKind to = topology[target(edge, topology)].kind;
      ends.insert(ends.end(), {LinkEnds(from, to), LinkEnds(to, from)});
    }
  }
  return ends;
}

// The ends of a link; of a boundary's link those of one between devices, and which way it leads.
struct LinkKind {
  LinkEnds ends;
  int boundary = 0;  // 1: to other groups, −1: from them
  friend bool operator==(const LinkKind&, const LinkKind&) = default;
};

LinkKind kind_of_link(const std::vector<LinkEnds>& ends, std::int32_t link) {
  const auto at = static_cast<std::size_t>(link);
  if (at < ends.size()) return {ends[at]};
  const bool leaves = (at - ends.size()) % 2 == 0;
  return {{VertexKind::device, VertexKind::device}, leaves ? 1 : -1};
}

std::string name_of(const LinkKind& kind) {
  if (kind.boundary != 0) {
    return kind.boundary > 0 ? "device to other groups" : "other groups to device";
  }
  return fmt::format("{} to {}", name_of(kind.ends.first), name_of(kind.ends.second));
}

// Kinds are listed in the order of their first link.
void fill_links(const SiteTopology& topology, StepSimulation& out) {
  const std::vector<LinkEnds> ends = ends_of_links(topology);
  std::vector<LinkKind> kinds;  // the kind of each entry of out.links
  for (const LinkTraffic& link : out.timeline.links) {
    const LinkKind kind = kind_of_link(ends, link.link);
    const auto found = std::find(kinds.begin(), kinds.end(), kind);
    const auto place = static_cast<std::size_t>(found - kinds.begin());
    if (found == kinds.end()) {
      kinds.push_back(kind);
      out.links.push_back({.kind = name_of(kind)});
    }
    const double share = link.carried / (link.capacity * out.step_time);
    LinkUtilisation& use = out.links[place];
    ++use.links;
    use.mean += share;
    use.most = std::max(use.most, share);
  }
  for (LinkUtilisation& use : out.links) use.mean /= use.links;
}

using MemoryKindOf = Bytes MemoryByKind::*;

bool makes_logits(const Operation& op) {
  switch (op.kind) {
    case OperationKind::linear:
      return op.part == OperatorKind::output_head;
    case OperationKind::cross_entropy_max:
    case OperationKind::cross_entropy_sum:
    case OperationKind::cross_entropy_gradient:
      return true;
    default:
      return false;
  }
}

// The kind of an activation, by an operation that creates it. What the backward pass creates again
// was not kept; gradients of activations count as buffers.
MemoryKindOf kind_of_made(const Operation& op) {
  if (makes_logits(op)) return &MemoryByKind::logits;
  if (op.recomputed) return &MemoryByKind::recomputation;
  return op.phase == Phase::forward ? &MemoryByKind::activations : &MemoryByKind::buffers;
}

MemoryKindOf kind_of_role(const ProgramBuffer& buffer) {
  switch (buffer.role) {
    case BufferRole::weight:
      return buffer.gathered ? &MemoryByKind::buffers : &MemoryByKind::parameters;
    case BufferRole::gradient:
      return &MemoryByKind::gradients;
    case BufferRole::optimizer:
      return &MemoryByKind::optimizer;
    case BufferRole::activation:
      return &MemoryByKind::activations;
    case BufferRole::data:
    case BufferRole::scalar:
      break;
  }
  return &MemoryByKind::buffers;
}

// The kind of memory, as the estimate has it, of each buffer of the program.
std::vector<MemoryKindOf> kinds_of_buffers(const Program& program) {
  std::vector<MemoryKindOf> kinds;
  for (const ProgramBuffer& buffer : program.buffers) kinds.push_back(kind_of_role(buffer));
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      for (const Operand& operand : op.operands) {
        const auto made = static_cast<std::size_t>(operand.buffer);
        if (operand.access != Access::create) continue;
        if (kinds[made] == &MemoryByKind::activations) kinds[made] = kind_of_made(op);
      }
    }
  }
  return kinds;
}

// Refuses, before playing it, a step that the clock certainly cannot hold. Kernels of a rank follow
// one another, so if no rank has less work or is faster than planned, the step is no shorter than
// the estimate's kernel time of the mean stage, on the fastest of the groups. Estimate and program
// agree on it to a few percent.
Expected<void> check_clock(const StepSite& site, const Plan& plan,
                           const StepConditions& conditions) {
  constexpr double kSame = 0.95;
  const bool less = conditions.jitter > 0 || conditions.sequences || conditions.routing;
  const bool faster =
      std::ranges::any_of(conditions.stragglers, [](const Straggler& of) { return of.speed > 1; });
  if (less || faster) return {};
  for (const StageGroup& group : site.groups) {
    const Estimate estimated = estimate(*group.whole, plan);
    if (kSame * computing_time(plan, estimated) < to_seconds(kEndOfClock)) return {};
  }
  const Estimate estimated = estimate(site.any(), plan);
  return tl::unexpected(beyond_clock(
      fmt::format("a step of {:.0f} days by the estimate", estimated.step_time / kDay)));
}

// Degraded links are known for one cluster only.
Expected<void> check_of_groups(const StepConditions& conditions) {
  if (conditions.links.empty()) return {};
  return failure("/simulation/links",
                 "found degraded links; allowed with groups of unlike nodes: none");
}

Expected<StepSimulation> simulate_on(const StepSite& site, const Plan& plan,
                                     const StepOptions& options) {
  if (auto done = check_clock(site, plan, options.conditions); !done) {
    return tl::unexpected(done.error());
  }
  StepSimulation out;
  out.unfolded_because = options.fold == Fold::off ? "" : unlike_because(options);
  const bool folds = options.fold == Fold::automatic && out.unfolded_because.empty();
  const SiteTopology topology(site, options.conditions.links);
  auto played = play(site, plan, options, topology, folds);
  if (folds && !played && played.error().where == "fold") {
    out.unfolded_because = played.error().message;
    played = play(site, plan, options, topology, false);
  }
  if (!played) return tl::unexpected(played.error());
  out.step = std::move(played->step);
  out.timeline = std::move(played->timeline);
  out.operations = static_cast<std::int64_t>(out.timeline.times.size());
  fill_times(site, plan, out);
  fill_memory(out);
  fill_links(topology, out);
  return out;
}

}  // namespace

Expected<StepSimulation> simulate(const PreparedJob& job, const Plan& plan,
                                  const StepOptions& options) {
  if (auto done = check(options.conditions, job.job); !done) {
    return tl::unexpected(done.error());
  }
  return simulate_on(site_of(job, plan), plan, options);
}

Expected<StepSimulation> simulate(const UnlikePipeline& pipeline, const Plan& plan,
                                  const StepOptions& options) {
  if (auto done = check_of_groups(options.conditions); !done) {
    return tl::unexpected(done.error());
  }
  const StepSite site = pipeline.site();
  if (auto done = check(options.conditions, site.any().job); !done) {
    return tl::unexpected(done.error());
  }
  return simulate_on(site, plan, options);
}

// Runtime and fragmentation are computed as in the estimate.
std::vector<MemoryByKind> simulated_memory(const StepSimulation& simulation, const Stack& stack,
                                           const std::vector<StageEstimate>& estimated) {
  const std::vector<MemoryKindOf> kinds = kinds_of_buffers(*simulation.step.program);
  std::vector<MemoryByKind> all;
  for (std::size_t stage = 0; stage < estimated.size(); ++stage) {
    MemoryByKind held{.runtime = estimated[stage].memory.at_peak.runtime};
    const std::vector<Bytes>& at_peak = simulation.stages[stage].memory.at_peak;
    for (std::size_t owner = 0; owner < at_peak.size(); ++owner) {
      held.*kinds[owner] += at_peak[owner];
    }
    held.fragmentation = held.allocated() * stack.fragmentation;
    all.push_back(held);
  }
  return all;
}

Estimate as_estimate(const PreparedJob& job, const Plan& plan, const StepSimulation& simulation) {
  Estimate out = estimate(job, plan);
  const Seconds busy = computing_time(plan, out) * simulation.step.flop;
  const double slower = simulation.step_time / out.step_time;
  out.step_time = simulation.step_time;
  out.step_time_low *= slower;
  out.step_time_high *= slower;
  out.breakdown = simulation.breakdown;
  out.tokens_per_second *= simulation.step.tokens / slower;
  const double faster = simulation.step.flop / slower;
  out.model_flops_per_device = out.model_flops_per_device * faster;
  for (double* rate : {&out.mfu, &out.mfu_bf16, &out.hfu}) *rate *= faster;
  const auto memory = simulated_memory(simulation, job.job.training.stack, out.stages);
  for (std::size_t i = 0; i < memory.size(); ++i) out.stages[i].memory.at_peak = memory[i];
  fill_peaks(job.job, out);
  const Cluster& cluster = job.job.cluster;
  out.cost_per_step = cost_of(cluster, out.step_time);
  out.energy_per_step = energy_of(cluster, out.step_time, busy);
  return out;
}

}  // namespace trainyard
