// Compares the bounds of nodes with each other and with the plans they bound: a floor is never
// above the bound of its node, and the memory that a node needs never falls with the micro-batch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "planner/bound/traffic_floor.h"
#include "planner/findings/baseline.h"
#include "planner/planner.h"
#include "planner/search/node.h"
#include "tests/planner/jobs.h"
#include "tests/planner/random_jobs.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

struct VisitedNode {
  const Degrees& degrees;
  const ShapeRange& range;
  PlanBound bound;
  Seconds without_experts, with_experts;
};

void each_node(const PreparedJob& job, const Enumeration& space,
               const std::function<void(const VisitedNode&)>& visit) {
  const ParameterShares shares = parameter_shares(job);
  const PlanRequest base;
  const Estimator estimator(job);
  NodeFloors floors(estimator, job, space, base);
  NodeBounds bounds(estimator, job, space, shares);
  for (const Degrees& degrees : space.degrees) {
    floors.start(degrees);
    bounds.start();
    for (const ShapeRange& range : space.ranges[degrees.shapes]) {
      auto look = bounds.look(degrees, range, base);
      if (!look) continue;
      visit({degrees, range, bounds.bound(degrees, range, *std::move(look)),
             floors.without_experts(range), floors.with_experts(range)});
    }
  }
}

void each_node(const PreparedJob& job, const std::function<void(const VisitedNode&)>& visit) {
  each_node(job, enumerate(job, {}), visit);
}

// Every combination of overlaps in turn, because what hides an exchange could make a floor too
// high.
Job with_overlap(Job job, int kinds) {
  Stack& stack = job.training.stack;
  stack.overlap.tensor_parallel = (kinds & 1) != 0;
  stack.overlap.context_parallel = (kinds & 2) != 0;
  stack.overlap.expert_parallel = (kinds & 4) != 0;
  stack.copies_sharded_sequences = kinds % 3 == 1;
  stack.tensor_parallel_hidden = 0.7;
  stack.host_layer_forward = Seconds((kinds & 8) != 0 ? 1e-3 : 0);
  return job;
}

// Puts every other job on oversubscribed leaves, where recursive collectives take longer.
Job on_narrow_leaves(Job job, int i) {
  if (i / 2 % 2 == 1) return job;
  job.cluster.inter.kind = i % 2 == 0 ? InterNodeKind::fat_tree : InterNodeKind::rail;
  job.cluster.inter.nodes_per_leaf = job.cluster.nodes % 2 == 0 ? 2 : 1;
  job.cluster.inter.oversubscription = 8;
  return job;
}

TEST(NodeFloors, AreNeverAboveTheBoundOfTheNode) {
  RandomJobs jobs(5);
  int nodes = 0;
  for (int i = 0; i < 64; ++i) {
    const PreparedJob job = prepare(on_narrow_leaves(with_overlap(jobs.next(), i % 16), i / 16));
    each_node(job, [&](const VisitedNode& node) {
      ++nodes;
      ASSERT_LE(node.with_experts, node.bound.step) << "job " << i;
      ASSERT_LE(node.without_experts, node.bound.step) << "job " << i;
    });
  }
  EXPECT_GT(nodes, 1000);
}

// Calls `visit` with all plans of a node that make_plan accepts.
void each_plan(const Job& job, const Enumeration& space, const VisitedNode& node,
               const std::function<void(const Plan&)>& visit) {
  PlanRequest request;
  set_degrees(space, node.degrees, request);
  for (std::size_t i = node.range.first; i < node.range.last; ++i) {
    set_shape(space.shapes[node.degrees.shapes][i], request);
    for (const Sharding& sharding : space.shardings[node.degrees.shardings]) {
      set_sharding(sharding, request);
      for (const RecomputeChoice& recompute : space.recomputes) {
        set_recompute(recompute, request);
        const auto plan = plan_if_legal(request, job.model, job.cluster, job.training);
        if (plan) visit(*plan);
      }
    }
  }
}

// Schedules with whole backward passes: for these the bound knows how long stages wait.
TEST(NodeBounds, AreNeverAboveAPlanThatFits) {
  RandomJobs jobs(8);
  SearchSpace whole;
  whole.schedule = {"1f1b", "interleaved-1f1b", "gpipe"};
  int plans = 0, close = 0, close_to_computing = 0;
  for (int i = 0; i < 48; ++i) {
    const PreparedJob job = prepare(on_narrow_leaves(with_overlap(jobs.next(), i % 16), i / 8));
    const Enumeration space = enumerate(job, whole);
    const Estimator estimator(job);
    Estimate priced;
    each_node(job, space, [&](const VisitedNode& node) {
      each_plan(job.job, space, node, [&](const Plan& plan) {
        estimator.estimate(plan, priced);
        if (!priced.feasible) return;
        ++plans;
        close += node.bound.step > 0.9 * priced.step_time && plan.pipeline_parallel > 1 ? 1 : 0;
        ASSERT_LE(node.bound.step, priced.step_time) << "job " << i;
        const Seconds computing = computing_time(plan, priced);
        close_to_computing += node.bound.busy > 0.99 * computing ? 1 : 0;
        ASSERT_LE(node.bound.busy, computing) << "job " << i;
      });
    });
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(close_to_computing, 100);
  EXPECT_GT(plans, 5000);
  EXPECT_GT(close, 100);
}

// A job whose link to the hosts is slow, so that copies outlast passes, or fast.
Job with_hosts(Job job, int i) {
  constexpr std::array kBandwidths = {1e9, 8e9, 64e9, 1e12};
  job.cluster.device.host_bandwidth = BytesPerSecond(kBandwidths[static_cast<std::size_t>(i % 4)]);
  return with_overlap(std::move(job), i % 16);
}

SearchSpace every_offload() {
  SearchSpace space;
  for (const OffloadChoice& choice : kOffloads) space.offload.emplace_back(choice.name);
  space.recompute = {{},
                     {{RecomputeMode::selective, 0}, {}},
                     {{RecomputeMode::full, 1}, {}},
                     {{RecomputeMode::full, 2}, {}},
                     {{RecomputeMode::full, 0}, {}}};
  return space;
}

// What the search knows about one plan from its stages.
PlanBound bound_by_stages(const PreparedJob& job, const ParameterShares& shares, const Plan& plan) {
  const StageCosts costs = stage_costs(job, plan, plan_links(job, plan));
  StageBounds stages(job, costs);
  stages.set_stages(plan);
  const PlanBound common = plan_bound(job, shares, pass_sums(job, costs), plan);
  Plan plain = plan;
  plain.recompute = {};
  stages.set_passes(plain);
  const bool some = plan.recompute.mode == RecomputeMode::full && plan.recompute.full_layers > 0;
  const int repeated = some ? plan.recompute.full_layers : 0;
  Seconds span = some ? std::max(stages.busy_with(plan, repeated), stages.link_with(plan, repeated))
                      : Seconds(0);
  stages.set_passes(plan);
  span = std::max({span, stages.busy(), stages.pipeline(plan)});
  PlanBound bound = with_span(common, span);
  const Seconds computing = computing_floor(pass_sums(job, costs), plan, stages.repeated(plan));
  EXPECT_LE(bound.busy * (1 - 1e-12), computing);  // sums in another order
  bound.busy = computing;
  return bound;
}

std::string described(int job, const Plan& plan) {
  const bool states = plan.offload.parameters != OffloadTarget::none;
  const bool activations = plan.offload.activations != OffloadTarget::none;
  return fmt::format("job {} {} p {} v {} zero {} full {} states {} activations {}", job,
                     plan.schedule->name, plan.pipeline_parallel, plan.virtual_stages,
                     plan.zero_stage, plan.recompute.full_layers, states, activations);
}

TEST(StageBounds, AreNeverAboveAPlanWhateverLiesOnTheHosts) {
  RandomJobs jobs(9);
  const SearchSpace every = every_offload();
  int plans = 0, close = 0;
  for (int i = 0; i < random_cases(24); ++i) {
    const PreparedJob job = prepare(with_hosts(jobs.next(), i));
    const ParameterShares shares = parameter_shares(job);
    const Enumeration space = enumerate(job, every);
    const Estimator estimator(job);
    Estimate priced;
    each_node(job, space, [&](const VisitedNode& node) {
      each_plan(job.job, space, node, [&](const Plan& plan) {
        if (++plans % 7 != 0) return;
        estimator.estimate(plan, priced);
        const PlanBound bound = bound_by_stages(job, shares, plan);
        close += bound.step > 0.99 * priced.step_time ? 1 : 0;
        ASSERT_LE(bound.step, priced.step_time) << described(i, plan);
        // All compute except the optimizer.
        const Seconds computing = computing_time(plan, priced);
        ASSERT_LE(bound.busy, computing) << described(i, plan);
        ASSERT_GE(bound.busy * (1 + 1e-6), computing - priced.breakdown.optimizer)
            << described(i, plan);
      });
    });
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(plans, random_cases(20000));
  EXPECT_GT(close, random_cases(1000));
}

// Networks at full speed, a tenth and a hundredth of it, where passes count for little; with and
// without overlap of the parameters' traffic.
Job on_slow_network(Job job, int i) {
  constexpr std::array kPaces = {1.0, 0.1, 0.01};
  const double pace = kPaces[static_cast<std::size_t>(i % 3)];
  job.cluster.inter.bandwidth = job.cluster.inter.bandwidth * pace;
  job.cluster.intra.bandwidth = job.cluster.intra.bandwidth * pace;
  job.training.stack.overlap.data_parallel = i / 3 % 2 == 0;
  return with_hosts(std::move(job), i);
}

std::vector<std::size_t> placements_of(const Enumeration& space, const Degrees& degrees) {
  std::vector<std::size_t> placements = space.other_placements[degrees.others];
  placements.push_back(degrees.placement);
  return placements;
}

Seconds floor_by_traffic(const Estimator& estimator, const PreparedJob& job,
                         const Enumeration& space, const std::vector<std::size_t>& placements,
                         const Plan& plan) {
  const StageCosts costs = stage_costs(job, plan, plan_links(job, plan));
  StageBounds stages(job, costs);
  stages.set_stages(plan);
  stages.set_passes(plan);
  TrafficFloors floors(estimator, job);
  floors.start(space.placements, placements);
  return with_span({}, floors.step(plan, stages.first_stage(), stages.first_passes())).step;
}

TEST(TrafficFloors, AreNeverAboveAPlanWhereverItsRanksLie) {
  RandomJobs jobs(11);
  SearchSpace every = every_offload();
  every.zero_stage = {{2, 3}};
  every.sharding_group = {{1, 2, 4, 8}};
  every.rank_order = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
  int plans = 0, close = 0, elsewhere = 0;
  for (int i = 0; i < random_cases(24); ++i) {
    const PreparedJob job = prepare(on_slow_network(jobs.next(), i));
    const Enumeration space = enumerate(job, every);
    const Estimator estimator(job);
    Estimate priced;
    each_node(job, space, [&](const VisitedNode& node) {
      const std::vector<std::size_t> placements = placements_of(space, node.degrees);
      elsewhere += placements.size() > 1 ? 1 : 0;
      each_plan(job.job, space, node, [&](const Plan& found) {
        if (++plans % 7 != 0) return;
        const Seconds floor = floor_by_traffic(estimator, job, space, placements, found);
        for (const std::size_t placement : placements) {
          Plan plan = found;
          plan.rank_order = space.placements[placement].rank_order;
          estimator.estimate(plan, priced);
          close += floor > 0.9 * priced.step_time ? 1 : 0;
          ASSERT_LE(floor, priced.step_time) << described(i, plan) << " " << plan.rank_order;
        }
      });
    });
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(plans, random_cases(20000));
  EXPECT_GT(close, random_cases(1000));
  EXPECT_GT(elsewhere, random_cases(20));
}

// This is why a search considers offloading only where it makes a plan fit or avoids recomputation.
// It holds only up to rounding: a pass that copies lengthen hides more of the parameters' traffic,
// so zb-h2 with ZeRO-1 and activations on the hosts was 5e-6 faster.
TEST(Offload, NeverMakesAPlanFaster) {
  RandomJobs jobs(10);
  const SearchSpace every = every_offload();
  int plans = 0, slower = 0;
  for (int i = 0; i < 24; ++i) {
    const PreparedJob job = prepare(with_hosts(jobs.next(), i));
    const Enumeration space = enumerate(job, every);
    const Estimator estimator(job);
    Estimate priced, on_device;
    each_node(job, space, [&](const VisitedNode& node) {
      each_plan(job.job, space, node, [&](const Plan& plan) {
        if (plan.offload == Offload{} || plan.zero_stage >= 2 || ++plans % 7 != 0) return;
        estimator.estimate(plan, priced);
        Plan same = plan;
        same.offload = {};
        estimator.estimate(same, on_device);
        slower += priced.step_time > 1.01 * on_device.step_time ? 1 : 0;
        ASSERT_GE(priced.step_time, on_device.step_time * (1 - 1e-5)) << described(i, plan);
      });
    });
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(plans, 20000);
  EXPECT_GT(slower, 1000);
}

TEST(NodeFloors, KnowTheExchangeOfTheExperts) {
  RandomJobs jobs(6);
  int higher = 0;
  for (int i = 0; i < 32; ++i) {
    each_node(prepare(jobs.next()), [&](const VisitedNode& node) {
      ASSERT_GE(node.with_experts, node.without_experts);
      higher += node.with_experts > node.without_experts ? 1 : 0;
    });
  }
  EXPECT_GT(higher, 0);
}

// This is why a micro-batch whose node cannot fit rules out all larger ones of the same degrees.
TEST(NodeMemory, NeverFallsWithTheMicroBatch) {
  RandomJobs jobs(7);
  for (int i = 0; i < 64; ++i) {
    const Degrees* degrees = nullptr;
    Bytes smaller;
    each_node(prepare(with_overlap(jobs.next(), i % 16)), [&](const VisitedNode& node) {
      if (degrees == &node.degrees) {
        ASSERT_GE(node.bound.memory, smaller)
            << "job " << i << ", micro-batch " << node.range.micro_batch;
      }
      degrees = &node.degrees;
      smaller = node.bound.memory;
    });
  }
}

// A search that is interrupted after `plans` plans. Its time limit counts for what follows: the
// longest time that a stopped search takes to bound what it has not visited.
SearchResult stopped_after(const PreparedJob& job, std::int64_t plans) {
  std::atomic<bool> interrupted = false;
  std::int64_t priced = 0;
  return search(job,
                {.top = 1, .threads = 1, .time_limit = Seconds(600), .interrupted = &interrupted},
                [&](const Plan& plan, Estimate& out) {
                  estimate(job, plan, out);
                  if (++priced == plans) interrupted = true;
                });
}

// Tokens beyond the experts' capacity are not computed, although they count as model FLOP.
TEST(ObjectiveBound, KnowsThatDroppedTokensAreNotComputed) {
  Job raw = small_moe_job();
  raw.model.expert_ffn_size = 65536;
  raw.training.global_batch = 512;
  const PreparedJob job = prepare(raw);
  PlanRequest request{.capacity_factor = 0.05};
  const auto plan = make_plan(request, raw.model, raw.cluster, raw.training);
  ASSERT_TRUE(plan) << plan.error().message;
  const double step = estimate(job, *plan).step_time.value();
  const auto bound = [&job](double computed) {
    return objective_bound(job, parameter_shares(job), Objective::step_time, Offload{}, computed);
  };
  EXPECT_GT(bound(1), step);  // the case is one that tells
  EXPECT_LE(bound(0.05), step);
}

// The gap refers to the open frontier: its bound is never above the best plan of all, and never
// below the lowest bound of any node that may fit. Both are found without the search that stops.
TEST(Gap, IsThatOfTheOpenFrontier) {
  Job mixture = llama_8b_job(8);
  mixture.model.experts = 8;
  mixture.model.experts_per_token = 2;
  mixture.model.expert_ffn_size = 14336;
  for (const Job& raw : {llama_8b_job(16), mixture}) {
    const PreparedJob job = prepare(raw);
    const SearchResult whole = search(job, {.top = 1, .threads = 1}, analytic_evaluator(job));
    ASSERT_TRUE(whole.optimal);
    const double best = whole.plans.at(0).estimate.step_time.value();
    double least = std::numeric_limits<double>::infinity();
    each_node(job, [&](const VisitedNode& node) {
      if (node.bound.memory > raw.cluster.device.memory) return;
      least = std::min(least, node.bound.step.value());
    });
    ASSERT_GT(least, objective_bound(job, parameter_shares(job), Objective::step_time, Offload{}));
    for (const std::int64_t plans : {std::int64_t{1}, whole.evaluated / 4, whole.evaluated / 2}) {
      const SearchResult found = stopped_after(job, plans);
      ASSERT_FALSE(found.optimal);
      ASSERT_LT(found.considered, found.space_size);
      const double step = found.plans.at(0).estimate.step_time.value();
      EXPECT_LE(step * (1 - found.gap), best * (1 + 1e-12)) << plans;
      EXPECT_GE(step * (1 - found.gap), least * (1 - 1e-12)) << plans;
    }
  }
}

// The baselines are plans that people take without a search; the first plans that a search prices
// are seldom better.
TEST(StoppedSearch, IsNoWorseThanTheBaselines) {
  Job large = llama_8b_job(8);  // 70 billion parameters
  large.model.layers = 80;
  large.model.hidden_size = 8192;
  large.model.ffn_size = 28672;
  large.model.attention_heads = 64;
  const PreparedJob job = prepare(large);
  const Evaluator evaluate = analytic_evaluator(job);
  Seconds least(std::numeric_limits<double>::infinity());
  for (const auto& baseline :
       {rule_of_thumb(job, {}, evaluate), data_parallel_only(job, 0, {}, evaluate),
        data_parallel_only(job, 3, {}, evaluate)}) {
    if (baseline && baseline->estimate.feasible) {
      least = std::min(least, baseline->estimate.step_time);
    }
  }
  int taken = 0;
  for (const std::int64_t plans : {1, 2, 5, 20, 60}) {
    const SearchResult found = stopped_after(job, plans);
    ASSERT_FALSE(found.optimal);
    if (found.plans.empty()) continue;
    const Seconds step = found.plans.at(0).estimate.step_time;
    EXPECT_LE(step, least) << plans;
    taken += step == least ? 1 : 0;
  }
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace trainyard
