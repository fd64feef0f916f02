#include "planner/refusal.h"

#include <gtest/gtest.h>

#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

// 4 layers, 8 heads, B = 8 on 8 devices.
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

// With t = 4 two devices are left to the stages: 2 is legal, and nearer to 4 than 1.
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

// Eight devices are t·c·p·D with D a divisor of the batch; p is at most L + 2 = 6, t at most 8.
// Eleven devices have no such factors but D = 11.
TEST(Refusal, NamesABatchThatNoReplicasShare) {
  Job job = small_dense_job();
  job.cluster.devices_per_node = 11;
  job.cluster.nvlink_domain = 11;
  job.cluster.nodes = 1;
  EXPECT_EQ(why(job, {}),
            "/training/global_batch: found 8, which no number of replicas that 11 devices can "
            "hold shares evenly; nearest 11");
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
