#include "planner/findings/refusal.h"

#include <gtest/gtest.h>

#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

// The refusal for a job of 4 layers, 8 heads and B = 8 on 8 devices.
std::string why(const Job& job, const SearchSpace& space, const PlanRequest& base = {},
                const std::vector<std::string>& suspects = {}) {
  const auto found = why_none_is_legal(prepare(job), space, base, suspects);
  return found ? found->where + ": " + found->message : "";
}

TEST(Refusal, IsNoneWhereSomePlanIsLegal) {
  SearchSpace space;
  EXPECT_EQ(why(small_dense_job(), space), "");
  space.tensor_parallel = {3, 2};
  EXPECT_EQ(why(small_dense_job(), space), "");
}

TEST(Refusal, NamesTheKeyThatHasNoLegalValueAlone) {
  SearchSpace space;
  space.zero_stage = {1};
  space.tensor_parallel = {3};
  EXPECT_EQ(why(small_dense_job(), space),
            "/planner/tensor_parallel: found 3, allowed a divisor of the 8 attention heads; "
            "nearest 2");
  space.tensor_parallel = Numbers::between(16, 32);
  EXPECT_EQ(why(small_dense_job(), space),
            "/planner/tensor_parallel: found 16 to 32, of which no plan is legal; nearest 8");
  space.tensor_parallel.clear();
  space.expert_parallel = {2};
  EXPECT_EQ(why(small_dense_job(), space),
            "/planner/expert_parallel: found 2, allowed 1: the network has no experts; nearest 1");
  space.expert_parallel.clear();
  space.micro_batch = {3};
  EXPECT_EQ(why(small_dense_job(), space),
            "/planner/micro_batch: found 3, allowed a divisor of a replica's share of the 8 "
            "sequences; nearest 2");
}

// With t = 4, two devices are left for the stages: 2 is legal, and nearer to the asked 4 than 1.
TEST(Refusal, NamesTheKeyThatIsNotLegalBesideTheOthers) {
  SearchSpace space;
  space.tensor_parallel = {4};
  space.pipeline_parallel = {4};
  EXPECT_EQ(why(small_dense_job(), space),
            "/planner/pipeline_parallel: found 4, allowed a divisor of 2 = 8 devices / "
            "(tensor_parallel · context_parallel); nearest 2");
  const std::string other = why(small_dense_job(), space, {}, {"tensor_parallel"});
  EXPECT_EQ(other.find("/planner/tensor_parallel: found 4"), 0u) << other;
  EXPECT_NE(other.find("; nearest 2"), std::string::npos) << other;
}

// 2·4·4 needs more than 8 devices; without any one of the three keys, the other two are still too
// many.
TEST(Refusal, NamesTheFirstOfSeveralKeysThatIsNotLegalBesideThoseBefore) {
  SearchSpace space;
  space.tensor_parallel = {4};
  space.context_parallel = {4};
  space.pipeline_parallel = {4};
  const std::string found = why(small_dense_job(), space);
  EXPECT_EQ(found.find("/planner/context_parallel: found 4, allowed a divisor of 2"), 0u) << found;
}

TEST(Refusal, NamesAScheduleThatTheStackLacks) {
  Job job = small_dense_job();
  job.training.stack.name = "software";
  job.training.stack.schedules = {"1f1b"};
  SearchSpace space;
  space.schedule = {"gpipe"};
  space.pipeline_parallel = {2};
  EXPECT_EQ(why(job, space),
            "/planner/schedule: found gpipe, which software does not run, allowed 1f1b");
}

// A group of 1,000 is no part of 8 ranks. ZeRO-0 shards nothing and would not need a group.
TEST(Refusal, BlamesAGroupBeforeTheStageThatNeedsIt) {
  SearchSpace space;
  space.zero_stage = {3};
  space.sharding_group = {1000};
  EXPECT_EQ(why(small_dense_job(), space).find("/planner/sharding_group: found 1000, allowed a "),
            0U);
}

// Four layers; two stages need two entries.
TEST(Refusal, NamesTheRecomputationAndItsRule) {
  const Recompute full_100{RecomputeMode::full, 100};
  SearchSpace space;
  space.recompute = {{full_100, {}}};
  EXPECT_EQ(why(small_dense_job(), space),
            "/planner/recompute: found full 100, allowed 1 to 4 layers");
  space.recompute.push_back({{RecomputeMode::full, 5}, {}});
  EXPECT_EQ(why(small_dense_job(), space),
            "/planner/recompute: found full 100, full 5, allowed 1 to 4 layers");
  space.recompute = {{{}, {{}, {}, {RecomputeMode::full, 0}, {}}}};
  space.pipeline_parallel = {2};
  EXPECT_EQ(why(small_dense_job(), space),
            "/planner/recompute: found [none, none, full, none], allowed 2, one a stage");
}

// Eight devices have no pipeline of three stages, and two stages of two chunks do not need three
// entries.
TEST(Refusal, NamesTheEntriesOfLayersThatNoPipelineHas) {
  SearchSpace space;
  PlanRequest base;
  base.layers_per_stage = {1, 1, 2};
  EXPECT_EQ(why(small_dense_job(), space, base),
            "/planner/layers_per_stage: found 3 entries, allowed as many as the stages or chunks "
            "of a pipeline that 8 devices can have");
  base.layers_per_stage = {2, 2};
  space.pipeline_parallel = {4};
  EXPECT_EQ(why(small_dense_job(), space, base),
            "/planner/layers_per_stage: found 2 entries, allowed 4");
}

// If the algorithm is asked for by name, it is blamed, not the degrees.
TEST(Refusal, NamesTheAlgorithmThatCannotShareTheHeads) {
  Job job = small_dense_job();
  job.model.attention_heads = job.model.kv_heads = 2;
  SearchSpace space;
  space.context_parallel = {4};
  space.context_parallel_algorithm = {"ulysses"};
  EXPECT_EQ(why(job, space, {}, {"context_parallel_algorithm"}),
            "/planner/context_parallel_algorithm: found ulysses, allowed ring, all-gather: "
            "context_parallel 4 does not divide the 2 attention heads of a tensor-parallel rank");
}

TEST(Refusal, NamesTheSequenceParallelismThatExpertsNeed) {
  SearchSpace space;
  space.tensor_parallel = {2};
  space.sequence_parallel = {false};
  EXPECT_EQ(why(small_moe_job(), space, {}, {"sequence_parallel"}),
            "/planner/sequence_parallel: found false, allowed true: experts with tensor_parallel 2 "
            "need it");
}

TEST(Refusal, NamesAnOffloadWithoutALinkToTheHosts) {
  Job job = small_dense_job();
  job.cluster.device.host_bandwidth = BytesPerSecond(0);
  SearchSpace space;
  space.offload = {"optimizer", "all"};
  EXPECT_EQ(why(job, space)
                .find("/planner/offload: found optimizer, all, allowed none: the "
                      "host_bandwidth of "),
            0U);
}

// Eight devices factor as t·c·p·D with D a divisor of the batch, p at most L + 2 = 6 and t at most
// 8. Eleven devices have no such factors except D = 11.
TEST(Refusal, NamesABatchThatNoReplicasShare) {
  Job job = small_dense_job();
  job.cluster.devices_per_node = 11;
  job.cluster.nvlink_domain = 11;
  job.cluster.nodes = 1;
  EXPECT_EQ(why(job, {}),
            "/training/global_batch: found 8, which no number of replicas that 11 devices can "
            "hold shares evenly; nearest 11");
}

// The same devices as nodes of one device: ten nodes are two replicas of five stages.
TEST(Refusal, NamesFewerNodesThatShareTheBatch) {
  Job job = small_dense_job();
  job.cluster.devices_per_node = job.cluster.nvlink_domain = 1;
  job.cluster.inter.nics_per_node = 1;
  job.cluster.nodes = 11;
  EXPECT_EQ(why(job, {}),
            "/training/global_batch: found 8, which no number of replicas that 11 devices can "
            "hold shares evenly; nearest 11, or 10 of the 11 nodes");
}

TEST(Refusal, NamesThePrecisionThatTheDeviceLacks) {
  Job job = small_dense_job();
  job.training.global_batch = 4;  // fewer than devices
  job.training.precision = *find_precision_recipe("bf16");
  job.cluster.device.rates.gemm[static_cast<std::size_t>(Dtype::bf16)] = {};
  const std::string words = why(job, {});
  EXPECT_EQ(words.find("/training/precision: found bf16, which "), 0u) << words;
}

}  // namespace
}  // namespace trainyard
