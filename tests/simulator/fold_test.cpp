// Ranks that behave alike, played once: the same times as all of them played, on random legal
// plans, and a refusal wherever they do not behave alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model/schedule/schedule.h"
#include "simulator/critical_path.h"
#include "simulator/step.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

int drawn(std::mt19937_64& random, std::initializer_list<int> from) {
  return *(from.begin() + static_cast<std::ptrdiff_t>(random() % from.size()));
}

// Up to 64 ranks, tensor groups inside and across nodes, every schedule that can be lowered.
std::optional<Plan> random_plan(const PreparedJob& job, std::mt19937_64& random) {
  PlanRequest request;
  request.tensor_parallel = drawn(random, {1, 2, 4, 8});
  request.pipeline_parallel = drawn(random, {1, 2, 4});
  request.context_parallel = drawn(random, {1, 1, 2});
  request.sequence_parallel = drawn(random, {0, 1}) == 1 && request.tensor_parallel > 1;
  request.zero_stage = drawn(random, {0, 1});
  request.recompute.mode = drawn(random, {0, 1}) == 0 ? RecomputeMode::none : RecomputeMode::full;
  const auto all = schedules();
  const Schedule& schedule = *all[random() % all.size()];
  if (schedule.route == Route::both_ways) return std::nullopt;
  request.schedule = schedule.name;
  if (schedule.needs_chunks) request.virtual_stages = 2;
  return plan_if_legal(request, job.job.model, job.job.cluster, job.job.training);
}

PreparedJob job_on(int nodes, InterNodeKind kind, double oversubscription) {
  Job job = llama_8b_on_h100(nodes, 64).job;
  job.model.layers = 8;
  job.cluster.inter.kind = kind;
  job.cluster.inter.oversubscription = oversubscription;
  job.cluster.inter.nodes_per_leaf = 2;
  return prepare(job);
}

// A rank of the whole that each folded rank stands for.
int representative(const StepSimulation& whole, int stage) {
  for (std::size_t rank = 0; rank < whole.step.graph.ranks.size(); ++rank) {
    if (whole.step.graph.ranks[rank].list == stage) return static_cast<int>(rank);
  }
  return -1;
}

void expect_same_times(const StepSimulation& folded, const StepSimulation& whole) {
  const auto path = critical_path(folded.step, folded.timeline);
  ASSERT_FALSE(path.empty());
  const auto allowed = static_cast<std::int64_t>(path.size());
  EXPECT_NEAR(static_cast<double>(folded.timeline.makespan.count()),
              static_cast<double>(whole.timeline.makespan.count()), static_cast<double>(allowed));
  for (const PathStep& step : path) {
    const auto task = static_cast<std::size_t>(step.task);
    const TaskTimes one = folded.timeline.of(step.rank)[task];
    const TaskTimes other = whole.timeline.of(representative(whole, step.rank))[task];
    ASSERT_NEAR(static_cast<double>(one.end.count()), static_cast<double>(other.end.count()),
                static_cast<double>(allowed));
  }
}

TEST(Folding, GivesTheTimesOfAllRanksOnRandomPlans) {
  std::mt19937_64 random{7};
  int compared = 0;
  for (int i = 0; i < 120; ++i) {
    const PreparedJob job =
        job_on(drawn(random, {2, 4, 8}),
               drawn(random, {0, 1}) == 0 ? InterNodeKind::fat_tree : InterNodeKind::rail,
               drawn(random, {1, 2}));
    const auto plan = random_plan(job, random);
    if (!plan) continue;
    const auto folded = simulate(job, *plan);
    const auto whole = simulate(job, *plan, {.fold = Fold::off});
    ASSERT_TRUE(folded && whole) << (folded ? whole : folded).error().message;
    if (!folded->step.folded()) continue;
    expect_same_times(*folded, *whole);
    if (testing::Test::HasFailure()) return;
    ++compared;
  }
  EXPECT_GE(compared, 40);
}

StepSimulation under(const StepConditions& conditions) {
  const PreparedJob job = job_on(4, InterNodeKind::fat_tree, 1);
  PlanRequest request;
  request.tensor_parallel = 4;
  request.pipeline_parallel = 2;
  request.zero_stage = 1;
  auto simulation = simulate(job, legal_plan(job, request), {.conditions = conditions});
  if (!simulation) ADD_FAILURE() << simulation.error().message;
  return *std::move(simulation);
}

TEST(Folding, HappensWhereRanksAreAlike) {
  const StepSimulation simulation = under({});
  EXPECT_TRUE(simulation.step.folded());
  EXPECT_EQ(simulation.step.graph.ranks.size(), 2U);
}

// Links that are loaded alike are one class, whatever they join: up and down, to NICs and leaves.
TEST(Folding, CountsTheLinksOfAllRanksByTheirKind) {
  const PreparedJob job = job_on(8, InterNodeKind::fat_tree, 2);
  PlanRequest request;
  request.tensor_parallel = 4;
  request.pipeline_parallel = 2;
  const Plan plan = legal_plan(job, request);
  const auto folded = simulate(job, plan);
  const auto whole = simulate(job, plan, {.fold = Fold::off});
  ASSERT_TRUE(folded && whole);
  ASSERT_TRUE(folded->step.folded());
  ASSERT_FALSE(whole->links.empty());
  ASSERT_EQ(folded->links.size(), whole->links.size());
  for (std::size_t i = 0; i < whole->links.size(); ++i) {
    EXPECT_EQ(folded->links[i].kind, whole->links[i].kind);
    EXPECT_EQ(folded->links[i].links, whole->links[i].links) << whole->links[i].kind;
    EXPECT_NEAR(folded->links[i].mean, whole->links[i].mean, 1e-9);
    EXPECT_NEAR(folded->links[i].most, whole->links[i].most, 1e-9);
  }
}

TEST(Folding, RefusesItselfForAStraggler) {
  EXPECT_FALSE(under({.stragglers = {{.rank = 5, .speed = 0.9}}}).step.folded());
}

TEST(Folding, RefusesItselfForJitter) {
  EXPECT_FALSE(under({.jitter = 0.05, .seed = 1}).step.folded());
}

TEST(Folding, RefusesItselfForASlowNicAndTheStepShowsIt) {
  const StepSimulation slow = under({.links = {{.of = {VertexKind::nic, 3}, .rate = 0.1}}});
  EXPECT_FALSE(slow.step.folded());
  EXPECT_NE(slow.unfolded_because.find("unlike links"), std::string::npos) << slow.unfolded_because;
  EXPECT_GT(slow.step_time, under({}).step_time);
}

// Tensor groups of 4 in nodes of 6 lie in one node or in two: two kinds of groups on one stage.
TEST(Folding, RefusesItselfForAPlacementThatMakesGroupsUnlike) {
  Job job = llama_8b_on_h100(4, 48).job;
  job.model.layers = 8;
  job.cluster.devices_per_node = job.cluster.nvlink_domain = 6;
  job.cluster.inter.nics_per_node = 6;
  const PreparedJob prepared = prepare(job);
  PlanRequest request;
  request.tensor_parallel = 4;
  request.pipeline_parallel = 2;
  request.zero_stage = 0;
  const auto simulation = simulate(prepared, legal_plan(prepared, request));
  ASSERT_TRUE(simulation) << simulation.error().message;
  EXPECT_FALSE(simulation->step.folded());
}

}  // namespace
}  // namespace trainyard
