#include "planner/findings/explain.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/held_memory.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

Candidate candidate(Breakdown breakdown, bool feasible = true) {
  Candidate candidate;
  candidate.estimate.breakdown = breakdown;
  candidate.estimate.step_time = breakdown.total();
  candidate.estimate.feasible = feasible;
  return candidate;
}

TEST(BreakdownParts, SumToTheStep) {
  Breakdown breakdown;
  Seconds sum;
  double value = 1;
  for (const BreakdownPart& part : breakdown_parts()) {
    breakdown.*part.time = Seconds(value);
    sum += Seconds(value);
    value *= 2;  // a part listed twice or left out changes the sum
  }
  EXPECT_EQ(breakdown.total(), sum);
}

Cluster of(Bytes device_memory) {
  Cluster cluster;
  cluster.device.memory = device_memory;
  return cluster;
}

TEST(Compare, PutsTheLargestLossFirst) {
  const Candidate winner = candidate({.compute = Seconds(10), .bubble = Seconds(2)});
  const Candidate other =
      candidate({.compute = Seconds(9), .tensor_parallel = Seconds(1), .bubble = Seconds(5)});
  const Comparison comparison = compare(winner, other, of(Bytes(1)));
  EXPECT_EQ(comparison.lost, Seconds(3));  // 15 − 12
  ASSERT_EQ(comparison.differences.size(), 3u);
  EXPECT_EQ(comparison.differences[0].part->key, "bubble");
  EXPECT_EQ(comparison.differences[0].lost(), Seconds(3));
  EXPECT_EQ(comparison.differences[1].part->key, "tensor_parallel");
  EXPECT_EQ(comparison.differences[2].lost(), Seconds(-1));  // it computed faster
  EXPECT_FALSE(comparison.memory);
}

TEST(Compare, NamesTheStageThatDoesNotFit) {
  const Candidate winner = candidate({.compute = Seconds(10)});
  Candidate other = candidate({.compute = Seconds(9)}, false);
  other.estimate.fullest_stage = 3;
  other.estimate.peak_memory = Bytes(90e9);
  const Comparison comparison = compare(winner, other, of(Bytes(80e9)));
  ASSERT_TRUE(comparison.memory);
  EXPECT_EQ(comparison.memory->stage, 3);
  EXPECT_EQ(comparison.memory->required, Bytes(90e9));
  EXPECT_EQ(comparison.memory->available, Bytes(80e9));
}

TEST(Compare, NamesTheHostsThatAreTooSmall) {
  const Candidate winner = candidate({.compute = Seconds(10)});
  Candidate other = candidate({.compute = Seconds(9)}, false);
  other.estimate.peak_memory = Bytes(70e9);
  other.estimate.host_memory = Bytes(3e12);
  other.estimate.stages.resize(2);
  other.estimate.stages[1].memory.on_host = Bytes(3e12 / 8);
  Cluster cluster = of(Bytes(80e9));
  cluster.host_memory = Bytes(2e12);
  const Comparison comparison = compare(winner, other, cluster);
  ASSERT_TRUE(comparison.memory);
  EXPECT_TRUE(comparison.memory->on_hosts);
  EXPECT_EQ(comparison.memory->stage, 1);
  EXPECT_EQ(comparison.memory->required, Bytes(3e12));
  EXPECT_EQ(comparison.memory->available, Bytes(2e12));
}

TEST(HeldMemory, AreAllThatTheFullestStageHolds) {
  Estimate estimate;
  estimate.stages.resize(2);
  estimate.fullest_stage = 1;
  MemoryByKind& held = estimate.stages[1].memory.at_peak;
  held.parameters = Bytes(1);
  held.gradients = Bytes(2);
  held.optimizer = Bytes(4);
  held.activations = Bytes(8);
  held.recomputation = Bytes(16);
  held.logits = Bytes(32);
  held.buffers = Bytes(64);
  held.runtime = Bytes(128);
  held.fragmentation = Bytes(256);
  const HeldMemory all = held_memory(estimate);
  EXPECT_EQ(all.states, Bytes(7));
  EXPECT_EQ(all.activations, Bytes(56));
  EXPECT_EQ(all.others, Bytes(448));
  EXPECT_FALSE(all.by_states());
}

TEST(Limits, TellsUsefulWorkFromOverhead) {
  const Limits found = limits(
      candidate({.compute = Seconds(10), .pipeline = Seconds(1), .bubble = Seconds(3)}).estimate);
  EXPECT_EQ(found.largest->key, "compute");
  EXPECT_EQ(found.largest_overhead->key, "bubble");
}

TEST(Limits, FindNoOverheadWhereThereIsNone) {
  const Limits found =
      limits(candidate({.compute = Seconds(1), .embedding_head = Seconds(2)}).estimate);
  EXPECT_EQ(found.largest->key, "embedding_head");
  EXPECT_EQ(found.largest_overhead, nullptr);
}

TEST(HardwareRemedies, RankWhatTheStepDependsOn) {
  // A step of 11 s of arithmetic at 100 TFLOP/s and 5.5 s of traffic over 100 GB/s links: a tenth
  // more of a resource saves 1/11 of its time, 1 s and 0.5 s.
  const Job job = small_dense_job();
  const JobEvaluator price = [](const PreparedJob& j) {
    return [&cluster = j.job.cluster](const Plan&, Estimate& out) {
      const double flops = cluster.device.peak_of(Dtype::bf16).value() / 100e12;
      const double link = cluster.intra.bandwidth.value() / 100e9;
      out.step_time = Seconds(11 / flops + 5.5 / link);
    };
  };
  Candidate plan;
  plan.estimate.step_time = Seconds(16.5);
  const auto remedies = hardware_remedies(prepare(job), plan, price);
  ASSERT_GE(remedies.size(), 5u);
  EXPECT_EQ(remedies[0].change, "10 % more FLOP/s");
  EXPECT_NEAR(remedies[0].saved.value(), 1.0, 1e-12);
  EXPECT_EQ(remedies[1].change, "10 % more bandwidth inside the node");
  EXPECT_NEAR(remedies[1].saved.value(), 0.5, 1e-12);
  EXPECT_NEAR(remedies[2].saved.value(), 0, 1e-12);
}

TEST(HardwareRemedies, SaveATenthTogetherWhereEverythingIsARate) {
  // Identity 4 of the handbook: doubling all rates and halving all fixed times halves the step. So
  // the savings from a tenth more of each must add up to 1 − 1/1.1 of the step, to first order.
  // Memory capacity and overlap make the parts interact, hence the loose tolerance.
  const PreparedJob job = prepare(llama_8b_job(2));
  const auto plan = make_plan({.tensor_parallel = 4, .pipeline_parallel = 2}, job.job.model,
                              job.job.cluster, job.job.training);
  ASSERT_TRUE(plan);
  const Candidate start{*plan, estimate(job, *plan), {}};
  Seconds saved;
  for (const Remedy& remedy : hardware_remedies(job, start, analytic_evaluator)) {
    EXPECT_GE(remedy.saved, Seconds(-1e-9)) << remedy.change;
    saved += remedy.saved;
  }
  EXPECT_NEAR(saved / start.estimate.step_time, 1 - 1 / 1.1, 0.02);
}

TEST(PlanRemedies, AreLegalNeighboursTheFastestFirst) {
  const PreparedJob job = prepare(small_dense_job());
  const auto plan = make_plan({.tensor_parallel = 2, .pipeline_parallel = 2}, job.job.model,
                              job.job.cluster, job.job.training);
  ASSERT_TRUE(plan);
  Candidate start{*plan, {}, {}};
  start.estimate.step_time = Seconds(8);
  // Halving the tensor degree halves the time; nothing else matters.
  const auto remedies = plan_remedies(job, start, [](const Plan& p, Estimate& out) {
    out.step_time = Seconds(4.0 * p.tensor_parallel);
    out.feasible = true;
  });
  ASSERT_FALSE(remedies.empty());
  EXPECT_EQ(remedies[0].change, "tensor_parallel 1");
  EXPECT_EQ(remedies[0].saved, Seconds(4));
}

// A tenth more of the hosts' memory bandwidth saves 1 − 1/1.1 of an update there, and nothing of
// what lies on the devices.
TEST(HardwareRemedies, KnowTheMemoryOfTheHosts) {
  Job slow = llama_8b_job(1);
  slow.cluster.device.host_bandwidth = BytesPerSecond(1e15);
  slow.cluster.host_memory_bandwidth = BytesPerSecond(1e9);
  const PreparedJob job = prepare(slow);
  for (const OffloadTarget target : {OffloadTarget::host, OffloadTarget::none}) {
    const auto plan =
        make_plan({.tensor_parallel = 8, .zero_stage = 1, .offload = {.optimizer = target}},
                  job.job.model, job.job.cluster, job.job.training);
    ASSERT_TRUE(plan);
    const Candidate start{*plan, estimate(job, *plan), {}};
    const auto remedies = hardware_remedies(job, start, analytic_evaluator);
    const auto memory =
        std::ranges::find(remedies, "10 % more host memory bandwidth", &Remedy::change);
    ASSERT_NE(memory, remedies.end());
    const bool away = target == OffloadTarget::host;
    const Seconds saved = start.estimate.breakdown.offload * (1 - 1 / 1.1);
    EXPECT_NEAR(memory->saved / start.estimate.step_time, saved / start.estimate.step_time, 1e-3);
    EXPECT_EQ(remedies.front().change == memory->change, away);
  }
}

const Remedy* find_remedy(const std::vector<Remedy>& remedies, std::string_view change) {
  const auto found = std::find_if(remedies.begin(), remedies.end(), [change](const Remedy& remedy) {
    return remedy.change == change;
  });
  return found == remedies.end() ? nullptr : &*found;
}

// Only the first stage recomputes. The remedies are: all stages recompute, none does, and another
// number of stages.
TEST(PlanRemedies, LeaveARecomputationOfEachStagesOwn) {
  const PreparedJob job = prepare(llama_8b_job(1));
  const auto candidate_of = [&job](const PlanRequest& request) {
    const Job& j = job.job;
    const Plan plan = make_plan(request, j.model, j.cluster, j.training).value();
    return Candidate{plan, estimate(job, plan), {}};
  };
  PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 4};
  const Seconds without = candidate_of(request).estimate.step_time;
  request.recompute = {RecomputeMode::full, 0};
  const Seconds everywhere = candidate_of(request).estimate.step_time;
  request.recompute_per_stage.assign(4, {RecomputeMode::none, 0});
  request.recompute_per_stage[0] = request.recompute;
  const Candidate start = candidate_of(request);
  const auto remedies = plan_remedies(job, start, analytic_evaluator(job));
  const Remedy* none = find_remedy(remedies, "recompute none");
  const Remedy* full = find_remedy(remedies, "recompute full");
  ASSERT_TRUE(none != nullptr && full != nullptr);
  EXPECT_EQ(none->saved, start.estimate.step_time - without);
  EXPECT_GT(none->saved, Seconds(0));
  EXPECT_EQ(full->saved, start.estimate.step_time - everywhere);
  EXPECT_LT(full->saved, none->saved);
  EXPECT_NE(find_remedy(remedies, "pipeline_parallel 2, recompute full"), nullptr);
}

// Of what the stack offloads under the plan's ZeRO stage.
TEST(PlanRemedies, MoveToTheHostsWhatTheStackCan) {
  PreparedJob job = prepare(llama_8b_job(1));
  Job& j = job.job;
  j.cluster.device.host_bandwidth = BytesPerSecond(50e9);
  PlanRequest request;
  request.zero_stage = 1;
  const Plan plan = make_plan(request, j.model, j.cluster, j.training).value();
  const Candidate start{plan, estimate(job, plan), {}};
  const auto find = [&](std::string_view change) {
    return find_remedy(plan_remedies(job, start, analytic_evaluator(job)), change) != nullptr;
  };
  EXPECT_FALSE(find("offload optimizer"));
  j.training.stack.offload.optimizer = {1};
  EXPECT_TRUE(find("offload optimizer"));
  j.training.stack.offload.optimizer = {2};
  EXPECT_FALSE(find("offload optimizer"));
}

TEST(PlanRemedies, LeaveOutWhatTheStackCannot) {
  PreparedJob job = prepare(small_dense_job());
  const auto plan = make_plan({}, job.job.model, job.job.cluster, job.job.training);
  ASSERT_TRUE(plan);
  const auto evaluate = analytic_evaluator(job);
  auto remedies = plan_remedies(job, {*plan, {}, {}}, evaluate);
  EXPECT_NE(find_remedy(remedies, "recompute selective"), nullptr);
  job.job.training.stack.limits.selective_recompute = false;
  remedies = plan_remedies(job, {*plan, {}, {}}, evaluate);
  EXPECT_EQ(find_remedy(remedies, "recompute selective"), nullptr);
  EXPECT_NE(find_remedy(remedies, "recompute full"), nullptr);
}

TEST(PlanRemedies, TakeBackWhatTheHostsCannotHold) {
  const PreparedJob job = prepare(small_dense_job());
  PlanRequest request;
  request.offload.optimizer = OffloadTarget::host;
  const auto plan = make_plan(request, job.job.model, job.job.cluster, job.job.training);
  ASSERT_TRUE(plan);
  const auto remedies = plan_remedies(job, {*plan, {}, {}}, [](const Plan& p, Estimate& out) {
    out.feasible = p.offload == Offload{};
  });
  EXPECT_TRUE(remedies.at(0).fits);
  EXPECT_EQ(remedies[0].change, "everything on the device");
}

TEST(PlanRemedies, PutWhatFitsBeforeWhatIsFast) {
  const PreparedJob job = prepare(small_dense_job());
  const auto plan =
      make_plan({.tensor_parallel = 2}, job.job.model, job.job.cluster, job.job.training);
  ASSERT_TRUE(plan);
  Candidate start{*plan, {}, {}};
  start.estimate.step_time = Seconds(8);
  const auto remedies = plan_remedies(job, start, [](const Plan& p, Estimate& out) {
    out.feasible = p.recompute.mode == RecomputeMode::full;
    out.step_time = Seconds(out.feasible ? 20 : 1);
    out.fullness = p.zero_stage == 3 ? 5 : 10;
  });
  ASSERT_GE(remedies.size(), 2u);
  EXPECT_EQ(remedies[0].change, "recompute full");
  EXPECT_EQ(remedies[1].change, "zero_stage 3");  // of those that do not fit, the smallest
}

// Progress goes evenly from the first change to the last; a user who stops it gets nothing.
TEST(Remedies, SayHowFarTheyAreAndEndWhenAsked) {
  const PreparedJob job = prepare(small_dense_job());
  const auto plan = make_plan({}, job.job.model, job.job.cluster, job.job.training);
  ASSERT_TRUE(plan);
  const Candidate start{*plan, estimate(job, *plan), {}};
  std::vector<double> told;
  const auto listens = [&told](double done) {
    told.push_back(done);
    return false;
  };
  const auto expect_even = [&told] {
    ASSERT_GT(told.size(), 3U);
    const auto all = static_cast<double>(told.size());
    for (std::size_t i = 0; i < told.size(); ++i) {
      EXPECT_NEAR(told[i], static_cast<double>(i) / all, 1e-12);
    }
  };
  EXPECT_FALSE(plan_remedies(job, start, analytic_evaluator(job), listens).empty());
  expect_even();
  told.clear();
  EXPECT_FALSE(hardware_remedies(job, start, analytic_evaluator, listens).empty());
  expect_even();
  const auto late = [](double done) { return done > 0.5; };
  EXPECT_TRUE(plan_remedies(job, start, analytic_evaluator(job), late).empty());
  EXPECT_TRUE(hardware_remedies(job, start, analytic_evaluator, late).empty());
}

}  // namespace
}  // namespace trainyard
