#include "planner/findings/notes.h"

#include <gtest/gtest.h>

#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

Job job_of_software() {
  Job job = llama_8b_job(1);
  job.training.stack.name = "software";
  job.training.stack.schedules = {"1f1b"};
  job.training.stack.offload.optimizer = {1};
  job.training.stack.rank_orders = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
  job.training.stack.grouped_sharding = {1};
  return job;
}

Candidate planned(const Job& job, const PlanRequest& request) {
  return {make_plan(request, job.model, job.cluster, job.training).value(), {}, {}};
}

std::vector<PlanNote> notes(const Job& job, const SearchOptions& options,
                            const std::vector<PlanRequest>& requests) {
  std::vector<Candidate> plans;
  for (const PlanRequest& request : requests) plans.push_back(planned(job, request));
  return notes_on(job, options, plans, std::nullopt);
}

TEST(PlanNotes, AreNoneWhereWhatWasFixedHolds) {
  SearchOptions options;
  options.space.sequence_parallel = {true};
  options.space.schedule = {"1f1b"};
  options.space.sharding_group = {2};
  const PlanRequest request{.tensor_parallel = 2,
                            .sequence_parallel = true,
                            .pipeline_parallel = 2,
                            .zero_stage = 1,
                            .sharding_group = 2};
  EXPECT_TRUE(notes(job_of_software(), options, {request}).empty());
}

TEST(PlanNotes, SayWhichFixedValuesHaveNoEffectOnWhichPlans) {
  SearchOptions options;
  options.space.sequence_parallel = {true};
  options.space.context_parallel_algorithm = {"ring"};
  options.space.schedule = {"1f1b"};
  options.space.sharding_group = {2};
  const PlanRequest bare{.zero_stage = 0};
  const PlanRequest tensor{.tensor_parallel = 8, .sequence_parallel = true, .zero_stage = 0};
  const auto found = notes(job_of_software(), options, {bare, tensor});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].text, "sequence_parallel true has no effect without tensor parallelism");
  EXPECT_EQ(found[0].plans, std::vector<std::size_t>({0}));
  EXPECT_EQ(found[1].text,
            "context_parallel_algorithm ring has no effect without context parallelism");
  EXPECT_EQ(found[2].text, "schedule 1f1b has no effect without a pipeline");
  EXPECT_EQ(found[3].text, "sharding_group 2 has no effect under ZeRO-0, which shards nothing");
  for (std::size_t i = 1; i < found.size(); ++i) {
    EXPECT_EQ(found[i].plans, std::vector<std::size_t>({0, 1})) << found[i].text;
  }
}

// If a key has several values, none is fixed.
TEST(PlanNotes, SayNothingOfAChoice) {
  SearchOptions options;
  options.space.sequence_parallel = {true, false};
  options.space.schedule = {"1f1b", "gpipe"};
  options.space.sharding_group = {2, 4};
  EXPECT_TRUE(notes(job_of_software(), options, {{.zero_stage = 0}}).empty());
}

TEST(PlanNotes, SayWhichZeroStageAndRecomputationTheStackIsNotKnownToHave) {
  Job job = llama_8b_job(1);
  job.training.stack.name = "software";
  job.training.stack.pipeline_zero_stages = {0, 1};
  job.training.stack.partial_recompute = PartialRecompute::by_chunk;
  const PlanRequest known{.pipeline_parallel = 4,
                          .virtual_stages = 2,
                          .zero_stage = 1,
                          .recompute = {RecomputeMode::full, 4}};
  PlanRequest sharded = known;
  sharded.zero_stage = 2;
  PlanRequest odd = known;
  odd.recompute.full_layers = 3;
  const auto found = notes(job, {}, {known, sharded, odd});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text, "ZeRO-2 under a pipeline is not known of software");
  EXPECT_EQ(found[0].plans, std::vector<std::size_t>({1}));
  EXPECT_EQ(found[1].text,
            "recompute 3 layers is not known of software, which repeats as many in every chunk of "
            "a pipeline");
  EXPECT_EQ(found[1].plans, std::vector<std::size_t>({2}));
  odd.recompute.full_layers = 1;
  const auto of_one = notes(job, {}, {odd});
  ASSERT_EQ(of_one.size(), 1u);
  EXPECT_TRUE(of_one[0].text.starts_with("recompute 1 layer is not known of software"));
}

TEST(PlanNotes, SayWhatIsBeyondTheLimitsOfTheStack) {
  Job job = llama_8b_job(1);
  job.training.stack.name = "software";
  StackLimits& limits = job.training.stack.limits;
  limits.pipelines = limits.selective_recompute = false;
  limits.sequence_parallel = SequenceParallelism::always;
  limits.context_algorithms = {"ring"};
  limits.tensor_zero_stages = {0};
  const PlanRequest known{
      .tensor_parallel = 2, .sequence_parallel = true, .context_parallel = 2, .zero_stage = 0};
  EXPECT_TRUE(notes(job, {}, {known}).empty());
  PlanRequest beyond{.tensor_parallel = 2,
                     .sequence_parallel = false,
                     .context_parallel = 2,
                     .context_parallel_algorithm = ContextAlgorithm::all_gather,
                     .pipeline_parallel = 2,
                     .zero_stage = 1,
                     .recompute = {RecomputeMode::selective, 0}};
  const auto found = notes(job, {}, {beyond});
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].text, "ZeRO-1 beside tensor parallelism is not known of software");
  EXPECT_EQ(found[1].text, "recompute selective is not known of software");
  EXPECT_EQ(found[2].text, "pipelines are not known of software");
  EXPECT_EQ(found[3].text,
            "tensor parallelism without sequence parallelism is not known of software");
  EXPECT_EQ(found[4].text, "context parallelism all-gather over 2 ranks is not known of software");
}

// The device has 100 GB. A peak estimated at 91 GB may be 100.1 at the high end.
TEST(PlanNotes, NameTheFastestPlanThatFitsAtTheHighEndWhereTheBestDoesNot) {
  Job job = llama_8b_job(1);
  job.cluster.device.memory = Bytes(100e9);
  const auto of = [&](double gigabytes, double seconds) {
    Candidate candidate = planned(job, {});
    candidate.estimate.feasible = true;
    candidate.estimate.peak_memory = Bytes(gigabytes * 1e9);
    candidate.estimate.peak_memory_high = 1.1 * candidate.estimate.peak_memory;
    candidate.estimate.step_time = Seconds(seconds);
    return candidate;
  };
  const auto on = [&](const std::vector<Candidate>& plans) {
    return notes_on(job, {}, plans, std::nullopt);
  };
  EXPECT_TRUE(on({of(90.5, 10), of(50, 11)}).empty());
  const std::string best =
      "at the high end of the interval of its memory, 1.10 times the peak, it does not fit; ";
  const auto alone = on({of(91, 10), of(92, 11)});
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].text, best + "a robust plan (--robust) leaves that room");
  const auto found = on({of(98, 10), of(96, 11), of(90, 12), of(50, 13)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text, best + "plan 3 does, and takes 20.00 % longer");
}

TEST(PlanNotes, SayWhatTheStackIsNotKnownToHave) {
  const PlanRequest known{.zero_stage = 1, .offload = {.optimizer = OffloadTarget::host}};
  PlanRequest other_stage = known;
  other_stage.zero_stage = 0;
  PlanRequest activations{.zero_stage = 1, .offload = {.activations = OffloadTarget::host}};
  Job job = job_of_software();
  job.cluster.device.host_bandwidth = BytesPerSecond(64e9);
  const auto found = notes(job, {}, {known, other_stage, activations});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text,
            "offload optimizer under ZeRO-0 was asked for, and software is not known to have it; "
            "it has optimizer under ZeRO-1");
  EXPECT_EQ(found[0].plans, std::vector<std::size_t>({1}));
  EXPECT_EQ(found[1].text,
            "offload activations under ZeRO-1 was asked for, and software is not known to have "
            "it; it has optimizer under ZeRO-1");
  EXPECT_EQ(found[1].plans, std::vector<std::size_t>({2}));
}

TEST(PlanNotes, SayWhichOrdersAndGroupsAreNotOfTheStack) {
  PlanRequest order{.tensor_parallel = 2, .pipeline_parallel = 2, .zero_stage = 1};
  order.rank_order = "pp-tp-cp-ep-dp";
  PlanRequest same = order;  // cp and ep have one rank: they may stand anywhere
  same.rank_order = "cp-tp-dp-ep-pp";
  const PlanRequest group{.zero_stage = 2, .sharding_group = 4};
  const Job job = job_of_software();
  const auto found = notes(job, {}, {order, same, group});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text,
            "rank order pp-tp-cp-ep-dp is not known of software, which has tp-cp-ep-dp-pp and "
            "tp-cp-ep-pp-dp");
  EXPECT_EQ(found[0].plans, std::vector<std::size_t>({0}));
  EXPECT_EQ(found[1].text, "states of ZeRO-2 sharded over groups of 4 are not known of software");
  EXPECT_EQ(found[1].plans, std::vector<std::size_t>({2}));
  Job ideal = job;
  ideal.training.stack = {};
  EXPECT_TRUE(notes(ideal, {}, {order, group}).empty()) << "no software, no limits";
}

TEST(PlanNotes, AreAboutTheImprovedPlanToo) {
  const Job job = job_of_software();
  PlanRequest order{.tensor_parallel = 2, .pipeline_parallel = 2, .zero_stage = 1};
  const Candidate plain = planned(job, order);
  order.rank_order = "pp-tp-cp-ep-dp";
  const Improvement improvement{
      .candidate = planned(job, order), .of = plain.plan, .placement = true};
  const auto found = notes_on(job, {}, {plain}, improvement);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].improvement);
  EXPECT_TRUE(found[0].plans.empty());
}

}  // namespace
}  // namespace trainyard
