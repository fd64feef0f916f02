#include "planner/findings/ways_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "model/cluster/fabric_shape.h"
#include "model/plan/validity.h"
#include "planner/search/enumeration.h"
#include "planner/search/ranking.h"

namespace trainyard {
namespace {

std::optional<WayOut> way(std::string change, Job job, SearchOptions options,
                          const JobEvaluator& evaluate) {
  options.top = 1;
  options.second.reset();
  const PreparedJob prepared = prepare(std::move(job));
  SearchResult found = search(prepared, options, evaluate(prepared));
  if (found.plans.empty()) return std::nullopt;
  Candidate best = std::move(found.plans.front());
  const double cost = best.plan.devices() / best.estimate.tokens_per_second;
  return WayOut{std::move(change), std::move(best), cost};
}

std::optional<WayOut> more_nodes(const Job& job, const SearchOptions& options,
                                 const JobEvaluator& evaluate) {
  for (int times = 2; times <= kMostTimesNodes; times *= 2) {
    Job larger = job;
    larger.cluster.nodes = times * job.cluster.nodes;
    if (!connects(larger.cluster)) continue;
    auto found = way(fmt::format("{} nodes instead of {}", larger.cluster.nodes, job.cluster.nodes),
                     larger, options, evaluate);
    if (found) return found;
  }
  return std::nullopt;
}

constexpr std::array kDegrees = {
    &SearchSpace::tensor_parallel,       &SearchSpace::context_parallel,
    &SearchSpace::pipeline_parallel,     &SearchSpace::virtual_stages,
    &SearchSpace::data_parallel,         &SearchSpace::expert_parallel,
    &SearchSpace::expert_tensor_parallel};

bool bounds_degrees(const SearchSpace& space) {
  return std::ranges::any_of(
      kDegrees, [&space](Numbers SearchSpace::*degree) { return !(space.*degree).empty(); });
}

}  // namespace

bool connects(const Cluster& cluster) {
  const InterNodeKind kind = cluster.inter.kind;
  return kind != InterNodeKind::none && check_fabric(cluster).has_value();
}

std::vector<Freedom> freedoms(const Job& job, const SearchOptions& options) {
  const SearchSpace& space = options.space;
  const std::vector<SearchedOffload> searched = offloads_of(job, space, options.base);
  std::vector<Freedom> result;
  const auto free = [&](const char* change, auto member) {
    if ((space.*member).empty()) return;
    result.push_back({change, options});
    (result.back().options.space.*member).clear();
  };
  free("any ZeRO stage", &SearchSpace::zero_stage);
  free("any sharding group", &SearchSpace::sharding_group);
  free("any recomputation", &SearchSpace::recompute);
  free("any micro-batch", &SearchSpace::micro_batch);
  free("any schedule", &SearchSpace::schedule);
  free("sequence parallelism or not", &SearchSpace::sequence_parallel);
  free("any way of context parallelism", &SearchSpace::context_parallel_algorithm);
  free("host memory as the stack can", &SearchSpace::offload);
  if (!options.base.layers_per_stage.empty()) {
    result.push_back({"layers as even as they go, on any stages", options});
    result.back().options.base.layers_per_stage.clear();
  }
  if (bounds_degrees(space)) {
    result.push_back({"any degrees", options});
    for (Numbers SearchSpace::*degree : kDegrees) (result.back().options.space.*degree).clear();
  }
  if (result.size() > 1) {
    result.push_back({"all that the planner section leaves out", options});
    result.back().options.space = {};
    result.back().options.base.layers_per_stage.clear();
  }
  // The search has tried all offload that real software can; a stack that is none might have any.
  const bool any_offload = job.training.stack.schedules.empty() && space.offload.empty() &&
                           job.cluster.device.host_bandwidth > BytesPerSecond(0);
  for (const OffloadChoice& choice : kOffloads) {
    const bool known =
        std::ranges::find(searched, choice.offload, &SearchedOffload::offload) != searched.end();
    const bool can = any_offload && can_offload(job.model, job.training, choice.offload, 0);
    if (known || choice.offload == Offload{} || !can) continue;
    result.push_back({fmt::format("{} in host memory",
                                  choice.name == "all" ? "states and activations" : choice.name),
                      options});
    result.back().options.space.offload = {std::string(choice.name)};
  }
  return result;
}

namespace {

// Whether the plans agree in all keys that a search chooses, in micro-batches and in layers.
bool lead_to_same(const WayOut& one, const WayOut& other) {
  const Plan& a = one.candidate.plan;
  const Plan& b = other.candidate.plan;
  return same_choices(a, b) && a.microbatches == b.microbatches &&
         a.layers_per_stage == b.layers_per_stage;
}

}  // namespace

std::vector<WayOut> ways_out(const Job& job, const SearchOptions& options,
                             const JobEvaluator& evaluate) {
  std::vector<WayOut> ways;
  const auto add = [&ways](std::optional<WayOut> found) {
    if (found) ways.push_back(*std::move(found));
  };
  for (Freedom& freedom : freedoms(job, options)) {
    add(way(std::move(freedom.change), job, std::move(freedom.options), evaluate));
  }
  if (job.training.global_batch % 2 == 0) {
    Job smaller = job;
    smaller.training.global_batch /= 2;
    add(way(fmt::format("a global batch of {}", smaller.training.global_batch), smaller, options,
            evaluate));
  }
  add(more_nodes(job, options, evaluate));
  return cheapest_distinct(std::move(ways), lead_to_same);
}

namespace {

// The largest prime factor of the devices that are left when as many replicas as possible share the
// batch. Tensor, pipeline and context parallelism can seldom use a factor above 2 but for stages
// with unlike numbers of layers.
std::int64_t awkwardness(const Job& job, int nodes) {
  const std::int64_t devices = std::int64_t{nodes} * job.cluster.devices_per_node;
  std::int64_t left = devices / std::gcd(devices, job.training.global_batch);
  std::int64_t largest = 1;
  for (std::int64_t factor = 2; factor * factor <= left; ++factor) {
    for (; left % factor == 0; left /= factor) largest = factor;
  }
  return std::max(largest, left);
}

}  // namespace

std::optional<WayOut> fewer_nodes(const Job& job, const SearchOptions& options,
                                  const Candidate& winner, const JobEvaluator& evaluate) {
  constexpr double kWorthSaying = 0.99;
  const int nodes = job.cluster.nodes;
  if (options.objective != Objective::step_time || options.second) return std::nullopt;
  const std::int64_t awkward = awkwardness(job, nodes);
  if (awkward <= 2) return std::nullopt;
  SearchOptions faster = options;
  faster.worth = winner.estimate.step_time.value() * kWorthSaying;
  std::optional<WayOut> best;
  int before = nodes;
  for (int power = 1; power < nodes; power *= 2) {
    Job fewer = job;
    fewer.cluster.nodes = (nodes - 1) / power * power;
    if (fewer.cluster.nodes == before || 2 * fewer.cluster.nodes < nodes) continue;
    before = fewer.cluster.nodes;
    if (awkwardness(job, before) > awkward) continue;
    if (before > 1 && !connects(fewer.cluster)) continue;
    auto found =
        way(fmt::format("{} of the {} nodes", before, nodes), std::move(fewer), faster, evaluate);
    if (!found) continue;
    faster.worth = found->candidate.estimate.step_time.value();
    best = std::move(found);
  }
  return best;
}

}  // namespace trainyard
