// `"schedule": "auto"`, compared with every named schedule and every number of chunks per stage,
// priced by the estimate, on stages with uneven layers, ends, recomputation and sends.
#include "planner/passes/auto_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>

#include "model/cost/estimate.h"
#include "model/schedule/schedule.h"
#include "planner/improvement.h"
#include "planner/request.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

using namespace literals;

struct Question {
  PreparedJob job;
  PlanRequest request;  // of `auto`
};

// Pipelines of two to eight devices.
class UnevenPipelines {
 public:
  explicit UnevenPipelines(unsigned seed) : random_(seed) {}

  Question next() {
    Job job = pick({0, 1}) == 0 ? small_dense_job() : small_moe_job();
    PlanRequest request{.pipeline_parallel = pick({2, 4, 8}), .schedule = "auto"};
    job.model.layers = pick({8, 12, 14, 16, 22, 24});
    job.model.vocabulary = pick({1024, 50'000, 250'000});
    job.model.dense_layers = pick({0, 1, 3});
    job.cluster.nodes = std::max(1, request.pipeline_parallel / 4);
    job.cluster.devices_per_node = job.cluster.nvlink_domain =
        std::min(4, request.pipeline_parallel);
    job.cluster.inter.nics_per_node = job.cluster.devices_per_node;
    job.cluster.intra.bandwidth = job.cluster.inter.bandwidth = 1.0_GBps * pick({5, 25, 100});
    job.training.global_batch = pick({4, 8, 12, 16, 24, 32});
    job.training.stack.overlap.pipeline = pick({0, 1}) == 1;
    job.training.stack.optimizer_barrier = pick({0, 1}) == 1;
    if (pick({0, 1}) == 0) job.training.stack.schedules = {"1f1b", "interleaved-1f1b", "zb-v"};
    if (pick({0, 1, 2}) == 0) request.virtual_stages = pick({1, 2, 3});
    if (pick({0, 1, 2}) == 0) request.layers_per_stage = layers(job.model.layers, request);
    recompute(request);
    const double states = 18 * prepare(job).parameters / request.pipeline_parallel;
    job.cluster.device.memory = Bytes(states * 0.1 * pick({10, 14, 30, 100}) + 1e9);
    return {prepare(std::move(job)), std::move(request)};
  }

 private:
  int pick(std::initializer_list<int> values) { return values.begin()[random_() % values.size()]; }
  // An entry per stage; all entries are even numbers in half of the cases.
  std::vector<int> layers(int all, const PlanRequest& request) {
    const int share = pick({1, 2});
    std::vector<int> entries(static_cast<std::size_t>(request.pipeline_parallel));
    for (int left = all; left > 0; left -= share) entries[random_() % entries.size()] += share;
    return entries;
  }
  void recompute(PlanRequest& request) {
    const int kind = pick({0, 1, 2});
    if (kind == 0) request.recompute.mode = RecomputeMode::automatic;
    for (int stage = 0; kind == 1 && stage < request.pipeline_parallel; ++stage) {
      request.recompute_per_stage.push_back(
          pick({0, 1}) == 0 ? Recompute{} : Recompute{RecomputeMode::full, pick({0, 1})});
    }
  }

  std::mt19937 random_;
};

struct Tally {
  std::map<std::string, int> became;
  int compared = 0, chunked = 0;
  double largest_gain = 0;  // over the best named schedule
};

// Second computation: whatever make_plan allows of any schedule and any number of chunks.
void expect_best(const Question& question, Tally& tally) {
  const PreparedJob& job = question.job;
  const Job& j = job.job;
  const auto plan = complete_plan(job, question.request);
  Estimate best_named;
  for (const Schedule* schedule : schedules()) {
    for (int chunks = 0; chunks <= j.model.layers + 2; ++chunks) {
      PlanRequest request = question.request;
      request.schedule = schedule->name;
      if (chunks > 0 && request.virtual_stages.value_or(chunks) != chunks) continue;
      if (chunks > 0) request.virtual_stages = chunks;
      const auto named = plan_if_legal(request, j.model, j.cluster, j.training);
      if (!named) continue;
      ASSERT_TRUE(plan) << plan.error().message;
      const Estimate found = estimate(job, *plan);
      const Estimate other = estimate(job, resolve_recompute(job, *named));
      ++tally.compared;
      if (!other.feasible) continue;
      EXPECT_TRUE(found.feasible);
      EXPECT_LE(found.step_time, other.step_time) << schedule->name << " with " << chunks;
      if (!best_named.feasible || other.step_time < best_named.step_time) best_named = other;
    }
  }
  if (!plan || !best_named.feasible) return;
  ++tally.became[plan->passes ? "found order" : std::string(plan->schedule->name)];
  tally.chunked += plan->virtual_stages > 1 ? 1 : 0;
  const Seconds step = estimate(job, *plan).step_time;
  tally.largest_gain = std::max(tally.largest_gain, 1 - step / best_named.step_time);
}

void expect_best_of(int instances) {
  UnevenPipelines draw(17);
  Tally tally;
  for (int i = 0; i < instances && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    expect_best(draw.next(), tally);
  }
  EXPECT_GT(tally.compared, 3 * instances);
  EXPECT_GT(tally.chunked, 0);
  EXPECT_GT(tally.became["found order"], 0);
  for (const auto& [name, count] : tally.became) {
    std::printf("%s: %d\n", name.c_str(), count);
  }
  std::printf("largest gain over the best named schedule: %.2f %%\n", 100 * tally.largest_gain);
}

TEST(AutoSchedule, IsNeverSlowerThanAnyNamedOneOnUnevenStages) { expect_best_of(60); }

// Some seconds: --gtest_also_run_disabled_tests.
TEST(AutoSchedule, DISABLED_IsNeverSlowerThanAnyNamedOneOn400UnevenPipelines) {
  expect_best_of(400);
}

// ---- In the improvement of a search ---------------------------------------------------------

// An entry per stage; no entries if the layers are even.
std::vector<int> layers_of_stages(const Plan& plan) {
  const PipelineShape shape = pipeline_shape(plan);
  std::vector<int> sums(
      plan.layers_per_stage.empty() ? 0 : static_cast<std::size_t>(plan.pipeline_parallel));
  for (int chunk = 0; !sums.empty() && chunk < layer_chunks(shape); ++chunk) {
    const auto stage = static_cast<std::size_t>(place_of(shape, 0, chunk).stage);
    sums[stage] += plan.layers_per_stage[static_cast<std::size_t>(chunk)];
  }
  return sums;
}

// Compares with named schedules that have the layers and the recomputation of the improved plan's
// stages.
void expect_improvement_best(const Question& question, int& changed) {
  const PreparedJob& job = question.job;
  const Job& j = job.job;
  SearchOptions options{.top = kImprovedAmong};
  options.space.pipeline_parallel = {question.request.pipeline_parallel};
  const Evaluator evaluate = analytic_evaluator(job);
  const SearchResult found = search(job, options, evaluate);
  if (found.plans.empty()) return;
  const auto improvement = improve(job, options, found.plans, evaluate);
  const Candidate& best = improvement ? improvement->candidate : found.plans.front();
  changed += improvement && improvement->order && !best.plan.passes ? 1 : 0;
  for (const Schedule* schedule : schedules()) {
    for (int chunks = 1; chunks <= j.model.layers; ++chunks) {
      PlanRequest request = request_of(best.plan);
      request.schedule = schedule->name;
      request.passes = nullptr;
      request.layers_per_stage = layers_of_stages(best.plan);
      request.optimizer_barrier.reset();
      request.virtual_stages = chunks;
      const auto named = plan_if_legal(request, j.model, j.cluster, j.training);
      if (!named) continue;
      const Estimate other = estimate(job, *named);
      if (!other.feasible) continue;
      EXPECT_LE(best.estimate.step_time.value(), other.step_time.value())
          << schedule->name << " with " << chunks;
      EXPECT_TRUE(!improvement || improvement->bound <= other.step_time) << schedule->name;
    }
  }
}

TEST(Improvement, IsNeverSlowerThanANamedScheduleOnItsStages) {
  UnevenPipelines draw(5);
  int changed = 0;
  for (int i = 0; i < 12 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Question question = draw.next();
    // Most cases have no order to find; the rest take seconds.
    if (i % 4 > 0)
      question.job.job.training.stack.schedules = {"gpipe", "1f1b", "interleaved-1f1b"};
    expect_improvement_best(question, changed);
  }
  EXPECT_GT(changed, 0);
}

}  // namespace
}  // namespace trainyard
