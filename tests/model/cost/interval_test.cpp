// Expected widenings are computed by hand from the factors of model/cost/interval.h.
#include "model/cost/interval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kPrecision = 1e-12;

// A dense network on one node of H100, with an interval whose evidence covers the job.
struct Question {
  PreparedJob job = llama_8b_on_h100();
  Stack& stack = job.job.training.stack;

  Question() {
    stack.name = "house-stack";
    job.job.cluster.device.name = "new-gpu";
    stack.interval_low = 0.9;
    stack.interval_high = 1.2;
    stack.evidence = {.runs = 10, .devices = 8, .hopper = true};
  }
  double widening(const PlanRequest& request = {}) const {
    return interval_widening(job.job, legal_plan(job, request));
  }
  std::vector<std::string> reasons(const PlanRequest& request = {}) const {
    return widening_reasons(job.job, legal_plan(job, request));
  }
};

TEST(MemoryInterval, IsThatOfTheStackAroundThePeak) {
  Question question;
  question.stack.memory_interval_low = 0.96;
  question.stack.memory_interval_high = 1.12;
  const Estimate answer = estimate(question.job, legal_plan(question.job, {}));
  EXPECT_NEAR(answer.peak_memory_low / answer.peak_memory, 0.96, kPrecision);
  EXPECT_NEAR(answer.peak_memory_high / answer.peak_memory, 1.12, kPrecision);
  question.stack.memory_interval_low = 1.02;  // all peaks were higher; it holds the prediction
  EXPECT_EQ(memory_interval(question.stack).low, 1);
}

TEST(StepInterval, IsThatOfTheStackForRunsLikeItsOwn) {
  const Question question;
  EXPECT_DOUBLE_EQ(question.widening(), 1);
  const Interval interval = step_interval(question.job.job, legal_plan(question.job, {}));
  EXPECT_NEAR(interval.low, 0.9, kPrecision);
  EXPECT_NEAR(interval.high, 1.2, kPrecision);
}

TEST(StepInterval, StandsInTheEstimate) {
  const Question question;
  const Estimate answer = estimate(question.job, legal_plan(question.job, {}));
  EXPECT_NEAR(answer.step_time_low / answer.step_time, 0.9, kPrecision);
  EXPECT_NEAR(answer.step_time_high / answer.step_time, 1.2, kPrecision);
}

TEST(StepInterval, ContainsTheEstimateEvenWhereTheStackIsBiased) {
  Question question;
  question.stack.interval_low = 1.05;
  EXPECT_EQ(step_interval(question.job.job, legal_plan(question.job, {})).low, 1);
}

TEST(StepInterval, WidensInLogarithmOnAnotherGenerationOfDevices) {
  Question question;
  question.stack.evidence = {.runs = 10, .devices = 8, .ampere = true};
  EXPECT_NEAR(question.widening(), kUnseenGeneration, kPrecision);
  const Interval interval = step_interval(question.job.job, legal_plan(question.job, {}));
  EXPECT_NEAR(std::log(interval.low), kUnseenGeneration * std::log(0.9), kPrecision);
  EXPECT_NEAR(std::log(interval.high), kUnseenGeneration * std::log(1.2), kPrecision);
}

// Devices such as an MI300X, a TPU or a V100: no published run of any stack was on one.
TEST(StepInterval, WidensOnADeviceOfNoNamedGeneration) {
  Question question;
  question.job.job.cluster.device.generation.reset();
  question.stack.evidence = {
      .runs = 10, .devices = 8, .ampere = true, .hopper = true, .blackwell = true};
  EXPECT_NEAR(question.widening(), kUnseenGeneration, kPrecision);
  EXPECT_THAT(question.reasons(),
              ElementsAre("no published run of house-stack had this generation of devices"));
}

TEST(StepInterval, WidensForEachKindOfParallelismThatNoRunHad) {
  Question question;
  const PlanRequest all{.tensor_parallel = 2, .context_parallel = 2, .pipeline_parallel = 2};
  EXPECT_NEAR(question.widening(all), std::pow(kUnseenParallelism, 3), kPrecision);
  question.stack.evidence.tensor_parallel = true;
  EXPECT_NEAR(question.widening(all), std::pow(kUnseenParallelism, 2), kPrecision);
}

// Eight devices against runs on two: two doublings; against runs on 64: none.
TEST(StepInterval, WidensWithEachDoublingOfDevicesBeyondTheLargestRun) {
  Question question;
  question.stack.evidence.devices = 2;
  EXPECT_NEAR(question.widening(), 1 + 2 * kPerDoubling, kPrecision);
  question.stack.evidence.devices = 64;
  EXPECT_DOUBLE_EQ(question.widening(), 1);
}

// Sixteen devices on two nodes, against runs that were all inside one: a doubling, and a network.
TEST(StepInterval, WidensBetweenNodesWhereAllRunsWereInsideOne) {
  Question question;
  question.job.job.cluster.nodes = 2;
  question.job = prepare(question.job.job);
  EXPECT_NEAR(question.widening(), kUnseenNetwork * (1 + kPerDoubling), kPrecision);
  EXPECT_THAT(question.reasons(), ElementsAre("no published run of house-stack had traffic between "
                                              "nodes, more than 8 devices"));
  question.stack.evidence.devices = 16;
  EXPECT_DOUBLE_EQ(question.widening(), 1);
}

// Four times the longest sequence: two doublings; half of it: none.
TEST(StepInterval, WidensWithEachDoublingOfTheSequenceBeyondTheLongest) {
  Question question;
  std::int64_t& longest = question.stack.evidence.sequence_length;
  const std::int64_t sequence = question.job.job.training.sequence_length;
  longest = sequence / 4;
  EXPECT_NEAR(question.widening(), 1 + 2 * kPerDoubling, kPrecision);
  longest = sequence * 2;
  EXPECT_DOUBLE_EQ(question.widening(), 1);
}

TEST(StepInterval, OfAStackThatStatesNoneIsAPointWithoutReasons) {
  Question question;
  question.stack.interval_low = question.stack.interval_high = 1;
  question.job.job.cluster.device.interval_widening = 2;
  EXPECT_THAT(question.reasons(), IsEmpty());
}

TEST(StepInterval, SaysWhatNoRunHad) {
  Question question;
  EXPECT_THAT(question.reasons(), IsEmpty());
  question.stack.evidence = {.runs = 1, .devices = 4, .sequence_length = 64, .ampere = true};
  EXPECT_THAT(
      question.reasons({.tensor_parallel = 2, .context_parallel = 2, .pipeline_parallel = 2}),
      ElementsAre("no published run of house-stack had this generation of devices, tensor "
                  "parallelism, pipeline parallelism, context parallelism, more than 4 "
                  "devices, a sequence longer than 64 tokens"));
}

TEST(StepInterval, IsWiderForExpertsByTheFactorOfTheStack) {
  Question question;
  question.job.job.model.experts = 8;
  question.stack.interval_moe = 3;
  EXPECT_DOUBLE_EQ(question.widening(), 3);
}

// The kernel rates were carried over from another device, so it does not matter which runs the
// stack has.
TEST(StepInterval, IsWiderOnADeviceWhoseKernelsNobodyMeasured) {
  Question question;
  question.job.job.cluster.device.interval_widening = 2;
  EXPECT_DOUBLE_EQ(question.widening(), 2);
  EXPECT_THAT(question.reasons(), ElementsAre("no kernel of new-gpu was measured"));
  const Interval interval = step_interval(question.job.job, legal_plan(question.job, {}));
  EXPECT_NEAR(interval.low, 0.81, kPrecision);
  EXPECT_NEAR(interval.high, 1.44, kPrecision);
  question.stack.evidence = {.runs = 10, .devices = 8, .ampere = true};
  EXPECT_NEAR(question.widening(), 2 * kUnseenGeneration, kPrecision);
  question.stack.evidence = {};
  EXPECT_DOUBLE_EQ(question.widening(), 2);
}

TEST(StepInterval, WithoutEvidenceIsTakenAsTheStackHasIt) {
  Question question;
  question.stack.evidence = {};
  EXPECT_DOUBLE_EQ(question.widening({.tensor_parallel = 8}), 1);
}

}  // namespace
}  // namespace trainyard
