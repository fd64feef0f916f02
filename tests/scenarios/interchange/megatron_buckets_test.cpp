// How Megatron-LM's arguments say in which buckets gradients are reduced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/interchange/megatron/megatron.h"
#include "tests/scenarios/interchange/plans.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string arguments_with_buckets(double parameters, double per_rank, bool overlapped) {
  Scenario scenario = scenario_of("llama-3.1-8b", "megatron-core", 2);
  scenario.job.training.stack.bucket_parameters = parameters;
  scenario.job.training.stack.bucket_parameters_per_rank = per_rank;
  PlanRequest request;
  request.overlap.data_parallel = overlapped;
  const Job& job = scenario.job;
  const auto plan = make_plan(request, job.model, job.cluster, job.training).value();
  return export_megatron(scenario, plan).value().files.front().text;
}

// Megatron-Bridge: bucket_size = 128 * 1024 * 1024, which overlap_grad_reduce alone has a use for.
TEST(MegatronExport, SaysTheBucketsOfOverlappedReductions) {
  const double usual =
      scenario_of("llama-3.1-8b", "megatron-core", 2).job.training.stack.bucket_parameters;
  EXPECT_EQ(usual, 128.0 * 1024 * 1024);
  EXPECT_THAT(arguments_with_buckets(usual, 0, true), HasSubstr("--ddp-bucket-size 134217728\n"));
  EXPECT_THAT(arguments_with_buckets(usual, 0, false), Not(HasSubstr("--ddp-bucket-size")));
}

// Sixteen data-parallel ranks. The argument is a whole number of parameters, whatever the stack
// says.
TEST(MegatronExport, SaysBucketsAsAWholeNumber) {
  EXPECT_THAT(arguments_with_buckets(4e7, 1e6, true), HasSubstr("--ddp-bucket-size 40000000\n"));
  EXPECT_THAT(arguments_with_buckets(1e6, 1e7, true), HasSubstr("--ddp-bucket-size 160000000\n"));
  EXPECT_THAT(arguments_with_buckets(0.5, 0, true), HasSubstr("--ddp-bucket-size 1\n"));
  EXPECT_THAT(arguments_with_buckets(1e13, 1e18, true),
              HasSubstr("--ddp-bucket-size 1000000000000000000\n"));
}

}  // namespace
}  // namespace trainyard
