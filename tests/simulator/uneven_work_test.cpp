// Uneven work: sequences of unlike lengths and experts of unlike popularity. What is dealt is
// counted by hand. What it costs is compared with steps of other jobs, which the model prices
// without any of this.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/cluster/topology_graph.h"
#include "simulator/simulate.h"
#include "tests/model/cluster/clusters.h"
#include "tests/model/workload/models.h"
#include "tests/simulator/call_graph.h"
#include "tests/simulator/disturbed_step.h"

namespace trainyard {
namespace {

// ---- The engine ---------------------------------------------------------------------------------

TEST(Loads, SayHowMuchOfItsTasksARankDoes) {
  TaskList list;
  list.add({.load = 1, .duration = Picoseconds(1000)});
  list.add({.duration = Picoseconds(1000)});
  TaskGraph graph{.lists = {list}, .ranks = {{0, {}, 0}, {0, {}, 1}, {0, {}}}};
  graph.loads = {{9, 0.5}, {9, 3}};
  const Timeline timeline = simulate(graph).value();
  EXPECT_EQ(timeline.of(0)[1].end, Picoseconds(500 + 1000));
  EXPECT_EQ(timeline.of(1)[1].end, Picoseconds(3000 + 1000));
  EXPECT_EQ(timeline.of(2)[1].end, Picoseconds(1000 + 1000));
  graph.loads[1].pop_back();
  EXPECT_EQ(simulate(graph).error().message, "found no load for some of its tasks");
}

// 1 GB over NICs of 50 GB/s in a ring of four over four nodes: 2·3/4 of it, with the load of the
// busiest member.
TEST(Loads, OfACallAreThoseOfItsBusiestMember) {
  Cluster cluster = fat_tree_cluster(4, 4, 1);
  cluster.inter.latency = {};
  const TopologyGraph topology = make_topology(cluster);
  TaskGraph graph = call_graph(cluster.devices(), {{0, 8, 16, 24}},
                               {named_call(CollectiveOperation::all_reduce, "ring", Bytes(1e9))});
  for (TaskList& list : graph.lists) {
    for (Task& task : list.tasks) task.load = 0;
  }
  graph.loads = {{1}, {2.5}};
  graph.ranks[0].loads = 0;
  graph.ranks[16].loads = 1;
  for (const NetworkGrain grain : {NetworkGrain::collective, NetworkGrain::message}) {
    EXPECT_NEAR(seconds_taken(graph, cluster, topology, grain), 2.5 * 1.5 * 1e9 / 50e9, 1e-9);
  }
}

// ---- What is dealt ------------------------------------------------------------------------------

// Deals sequences of Llama-3.1-8B, at most 4096 tokens long, to `replicas` replicas with
// `micro_batch` sequences per micro-batch.
DealtSequences dealt(const SequenceMix& mix, std::int64_t global_batch, int replicas,
                     int micro_batch = 1, std::uint64_t seed = 0) {
  Training training = modern();
  training.global_batch = global_batch;
  Plan plan;
  plan.data_parallel = replicas;
  plan.micro_batch = micro_batch;
  return deal(mix, llama_8b(), training, plan, seed);
}

TEST(Sequences, GoToTheReplicasInTurn) {
  const DealtSequences found = dealt({.lengths = {4096, 2048, 1024, 512}}, 4, 2);
  ASSERT_EQ(found.work.size(), 2U);
  EXPECT_EQ(found.work[0][0].tokens, 1);
  EXPECT_EQ(found.work[1][0].tokens, 0.5);
  EXPECT_EQ(found.work[0][1].tokens, 0.25);
  EXPECT_EQ(found.work[1][1].tokens, 0.125);
  // Causal attention grows with l²/2, up to the diagonal.
  EXPECT_NEAR(found.work[1][0].attention, 0.25, 1e-3);
  EXPECT_NEAR(found.work[0][1].attention, 0.0625, 1e-3);
  EXPECT_EQ(found.tokens, 1.875 / 4);
}

TEST(Sequences, AreCutAndBeginAgain) {
  const DealtSequences found = dealt({.lengths = {9000, 2048}}, 8, 1, 2);
  for (const SequenceWork& work : found.work[0]) EXPECT_EQ(work.tokens, 0.75);
}

// Rows are full whatever they contain; four documents per row need a quarter of the attention.
TEST(Sequences, PackedFillTheirRows) {
  const DealtSequences found = dealt({.lengths = {1024}, .packed = true}, 4, 2);
  for (const auto& replica : found.work) {
    for (const SequenceWork& work : replica) {
      EXPECT_EQ(work.tokens, 1);
      EXPECT_NEAR(work.attention, 0.25, 1e-3);
    }
  }
  // The first row holds 3072 tokens and 1024 of the next document, whose other 2048 begin the
  // second row.
  const DealtSequences cut = dealt({.lengths = {3072}, .packed = true}, 2, 1);
  EXPECT_NEAR(cut.work[0][0].attention, (9.0 + 1) / 16, 1e-3);
  EXPECT_NEAR(cut.work[0][1].attention, (4.0 + 4) / 16, 1e-3);
}

TEST(Sequences, BalancedAreSpreadOverTheMicrobatches) {
  const SequenceMix mix{.lengths = {4096, 4096, 512, 512}};
  const DealtSequences in_order = dealt(mix, 4, 1, 2);
  EXPECT_EQ(in_order.work[0][0].tokens, 1);
  EXPECT_EQ(in_order.work[0][1].tokens, 0.125);
  SequenceMix even = mix;
  even.balanced = true;
  const DealtSequences balanced = dealt(even, 4, 1, 2);
  for (const SequenceWork& work : balanced.work[0]) EXPECT_EQ(work.tokens, 0.5625);
  EXPECT_EQ(balanced.tokens, in_order.tokens);
}

// Means within four standard errors.
TEST(Sequences, AreDrawnFromTheirDistribution) {
  constexpr std::int64_t kMany = 20000;
  const double error = 4 / std::sqrt(static_cast<double>(kMany));
  const DealtSequences uniform =
      dealt({.law = LengthLaw::uniform, .shortest = 1024}, kMany, 1, 1, 5);
  EXPECT_NEAR(uniform.tokens * 4096, (1024 + 4096) / 2.0, error * 3072 / std::sqrt(12.0));
  // So short that none is cut: of a lognormal with mean 200, one in 10^8 is over 4096.
  const DealtSequences lognormal =
      dealt({.law = LengthLaw::lognormal, .mean = 200, .deviation = 0.6}, kMany, 1, 1, 5);
  EXPECT_NEAR(lognormal.tokens * 4096, 200, error * 0.6 * 200);
  double squares = 0;
  for (const SequenceWork& work : lognormal.work[0]) {
    squares += std::pow(work.tokens * 4096 / 200 - 1, 2);
  }
  EXPECT_NEAR(std::sqrt(squares / kMany), 0.6, 0.05);
}

// ---- What it costs ------------------------------------------------------------------------------

StepConditions with_lengths(std::vector<std::int64_t> lengths) {
  return {.sequences = SequenceMix{.lengths = std::move(lengths)}};
}

TEST(UnevenSequences, OfTheFullLengthChangeNothing) {
  const PreparedJob job = job_of(1, 2, 8);
  PlanRequest request;
  request.pipeline_parallel = 2;
  const StepSimulation whole = disturbed(job, request, {});
  const StepSimulation same = disturbed(job, request, with_lengths({4096}));
  EXPECT_EQ(same.timeline.times, whole.timeline.times);
  EXPECT_TRUE(same.step.folded());
}

// Second computation: a job whose sequences all have that length, whose kernels and exchanges the
// model prices at their own shapes. Here the whole of a kernel scales with its tokens. What does
// not scale (weights that are read, gradients that are added) is at most a tenth of a short
// micro-batch.
TEST(UnevenSequences, OfHalfTheLengthAreAJobOfHalfTheLength) {
  const PreparedJob job = job_of(1, 4, 8);
  Job half = job.job;
  half.training.sequence_length /= 2;
  const PreparedJob other = prepare(half);
  PlanRequest request;
  request.tensor_parallel = 2;
  request.pipeline_parallel = 2;
  request.sequence_parallel = true;
  const StepSimulation found = disturbed(job, request, with_lengths({2048}));
  const StepSimulation expected = disturbed(other, request, {});
  EXPECT_NEAR(found.step_time / expected.step_time, 1, 0.1);
  EXPECT_NEAR(found.breakdown.tensor_parallel / expected.breakdown.tensor_parallel, 1, 0.1);
  const Estimate rates = as_estimate(job, legal_plan(job, request), found);
  const Estimate of_half = as_estimate(other, legal_plan(other, request), expected);
  const double faster = expected.step_time / found.step_time;
  EXPECT_NEAR(rates.tokens_per_second / of_half.tokens_per_second, faster, 1e-9);
  EXPECT_NEAR(rates.mfu / of_half.mfu, faster, 1e-9);
}

// One of two replicas has full sequences, so the step is as long as if both had.
TEST(UnevenSequences, MakeReplicasWaitForTheLongest) {
  const PreparedJob job = job_of(1, 2, 8);
  PlanRequest request;
  request.zero_stage = 0;
  request.overlap.data_parallel = false;
  const StepSimulation whole = disturbed(job, request, {});
  const StepSimulation uneven = disturbed(job, request, with_lengths({4096, 1024}));
  EXPECT_FALSE(uneven.step.folded());
  EXPECT_EQ(uneven.unfolded_because, "replicas have unlike sequences");
  EXPECT_NEAR(uneven.step_time / whole.step_time, 1, 1e-6);
  StepConditions even = with_lengths({4096, 1024});
  even.sequences->balanced = true;
  EXPECT_LT(disturbed(job, request, even).step_time, 0.95 * whole.step_time);
}

TEST(UnevenSequences, TakeTheSameTimeFoldedAndNot) {
  const PreparedJob job = job_of(1, 4, 8);
  PlanRequest request;
  request.tensor_parallel = 2;
  request.pipeline_parallel = 2;
  const StepConditions conditions = with_lengths({4096, 1024, 3000, 77});
  const StepSimulation folded = disturbed(job, request, conditions);
  const auto whole =
      simulate(job, legal_plan(job, request), {.fold = Fold::off, .conditions = conditions});
  ASSERT_TRUE(whole);
  ASSERT_TRUE(folded.step.folded());
  EXPECT_NEAR(folded.step_time / whole->step_time, 1, 1e-9);
}

// ---- Experts ------------------------------------------------------------------------------------

TEST(Routing, BySkewFollowsZipf) {
  std::vector<double> shares = expert_shares({.skew = 1}, 64, 1, 3, 0);
  EXPECT_NE(shares, expert_shares({.skew = 1}, 64, 1, 3, 1));  // another expert in each layer
  EXPECT_EQ(shares, expert_shares({.skew = 1}, 64, 1, 3, 0));
  std::sort(shares.begin(), shares.end(), std::greater<>());
  for (std::size_t k = 1; k < shares.size(); ++k) {
    EXPECT_NEAR(shares[k] * static_cast<double>(k + 1), shares[0], 1e-12);
  }
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
}

// With two experts per token, one expert can have at most half of all tokens; the rest stays in
// proportion.
TEST(Routing, GivesAnExpertATokenOnce) {
  const std::vector<double> shares = expert_shares({.shares = {8, 1, 1}}, 3, 2, 0, 0);
  EXPECT_NEAR(shares[0], 0.5, 1e-12);
  EXPECT_NEAR(shares[1], 0.25, 1e-12);
  EXPECT_EQ(expert_loads({0.4, 0.1, 0.3, 0.2}, 2), (std::vector<double>{1, 1}));
}

PreparedJob mixture_job() {
  Job job = job_of(1, 8, 16).job;
  const int layers = job.model.layers;
  job.model = mixtral_8x7b();
  job.model.layers = layers;
  return prepare(job);
}

PlanRequest expert_parallel() {
  PlanRequest request;
  request.expert_parallel = 8;
  request.zero_stage = 1;
  return request;
}

TEST(Routing, ThatIsEvenChangesNothing) {
  const PreparedJob job = mixture_job();
  const StepSimulation whole = disturbed(job, expert_parallel(), {});
  const StepSimulation even =
      disturbed(job, expert_parallel(), {.routing = ExpertRouting{.skew = 0}});
  EXPECT_TRUE(even.step.folded());
  EXPECT_EQ(even.timeline.makespan, whole.timeline.makespan);
}

// Second computation: a plan that says that the slowest rank has twice the mean load. Every layer
// waits for that rank, so it does not matter that the others have less. Kernels with twice the rows
// take a little less than twice the time.
TEST(Routing, ToAHotExpertCostsWhatThePlansImbalanceSays) {
  const PreparedJob job = mixture_job();
  PlanRequest said = expert_parallel();
  said.load_imbalance = 2;
  const StepSimulation expected = disturbed(job, said, {});
  const StepConditions hot{.routing = ExpertRouting{.shares = {14, 6, 6, 6, 6, 6, 6, 6}}};
  const StepSimulation found = disturbed(job, expert_parallel(), hot);
  EXPECT_FALSE(found.step.folded());
  EXPECT_EQ(found.unfolded_because, "ranks have experts of unlike popularity");
  EXPECT_NEAR(found.step_time / expected.step_time, 1, 0.05);
  const StepSimulation even = disturbed(job, expert_parallel(), {});
  EXPECT_GT(found.step_time, 1.05 * even.step_time);
}

TEST(Routing, IsRefusedWhereEveryExpertComputesItsCapacity) {
  const PreparedJob job = mixture_job();
  PlanRequest request = expert_parallel();
  request.capacity_factor = 1.25;
  const auto refused = simulate(job, legal_plan(job, request),
                                {.conditions = {.routing = ExpertRouting{.skew = 1}}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "/simulation/routing");
}

}  // namespace
}  // namespace trainyard
