#include "model/calibration/fit_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/calibration/stack_parameters.h"
#include "model/cost/estimate.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

// A run of Llama-3.1-8B whose measured step is `factor` times the step that `stack` predicts.
MeasuredRun run_of(const std::string& source, const Stack& stack, int micro_batch, int tensor,
                   double factor = 1) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack = stack;
  const Plan plan =
      legal_plan(job, {.tensor_parallel = tensor, .micro_batch = micro_batch, .zero_stage = 1});
  return {source + std::to_string(micro_batch) + "/" + std::to_string(tensor), source, job, plan,
          estimate(job, plan).step_time * factor};
}

Stack example_stack() { return llama_8b_on_h100().job.training.stack; }

Stack slow_stack() {
  Stack stack = example_stack();
  stack.memory_traffic = 2;
  stack.attention_speed = 0.6;
  return stack;
}

std::vector<MeasuredRun> runs_of(const std::string& source, const Stack& stack) {
  std::vector<MeasuredRun> runs;
  for (const int micro_batch : {1, 2, 4}) {
    for (const int tensor : {1, 2, 4}) runs.push_back(run_of(source, stack, micro_batch, tensor));
  }
  return runs;
}

double fitted(const StackFit& fit, std::string_view name) {
  const auto found = std::ranges::find(fit.parameters, name, &FittedParameter::name);
  return found == fit.parameters.end() ? 0 : found->value;
}

double prior(std::string_view name) {
  return std::ranges::find(stack_parameters(), name, &StackParameter::name)->prior;
}

TEST(FitStack, ReproducesTheRunsThatAStackMade) {
  const StackFit fit = fit_stack(runs_of("a", slow_stack()));
  // The priors move the fit by less than the noise of 3 % that it expects of published runs.
  for (const double error : fit.errors) EXPECT_NEAR(error, 0, 0.02);
  EXPECT_GT(fitted(fit, "memory_traffic"), 1.6);
}

TEST(FitStack, LeavesAtItsPriorWhatTheRunsDoNotDetermine) {
  Stack stack = slow_stack();
  stack.host_moe_layer_forward = Seconds(1e-3);  // 0: under graphs, which is no figure to fit
  const StackFit fit = fit_stack(runs_of("a", stack));  // no experts in any run
  EXPECT_DOUBLE_EQ(fitted(fit, "host_moe_layer_forward"), prior("host_moe_layer_forward"));
  const auto moe =
      std::ranges::find(fit.parameters, "host_moe_layer_forward", &FittedParameter::name);
  EXPECT_FALSE(moe->determined);
}

TEST(FitStack, IsHardlyMovedByOneRunThatNothingExplains) {
  std::vector<MeasuredRun> runs = runs_of("a", slow_stack());
  runs[4].step_time *= 1.5;
  const StackFit fit = fit_stack(runs);
  std::vector<double> errors = fit.errors;
  EXPECT_NEAR(errors[4], 1 / 1.5 - 1, 0.05);
  errors.erase(errors.begin() + 4);
  for (const double error : errors) EXPECT_NEAR(error, 0, 0.04);
}

TEST(FitStack, GivesTheSameBitsTwice) {
  const std::vector<MeasuredRun> runs = runs_of("a", slow_stack());
  const StackFit first = fit_stack(runs);
  const StackFit second = fit_stack(runs);
  ASSERT_EQ(first.parameters.size(), second.parameters.size());
  for (std::size_t i = 0; i < first.parameters.size(); ++i) {
    EXPECT_EQ(first.parameters[i].value, second.parameters[i].value);
  }
}

TEST(FitStack, KeepsParametersThatAStackDoesNotHave) {
  Stack stack = slow_stack();
  stack.overlap.tensor_parallel = false;
  stack.tensor_parallel_hidden = 0;
  const Stack changed = with_parameters(stack, fit_stack(runs_of("a", slow_stack())));
  EXPECT_EQ(changed.tensor_parallel_hidden, 0);
  EXPECT_NE(changed.memory_traffic, stack.memory_traffic);
}

TEST(LeaveOneSourceOut, DoesNotSeeTheTimesOfTheSource) {
  std::vector<MeasuredRun> runs = runs_of("a", slow_stack());
  for (MeasuredRun& run : runs_of("b", slow_stack())) runs.push_back(run);
  const auto before = leave_one_source_out(runs);
  for (std::size_t i = 0; i < 9; ++i) runs[i].step_time *= 3;
  const auto after = leave_one_source_out(runs);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(before[i].predicted, after[i].predicted);
    EXPECT_FALSE(before[i].pooled);
  }
  EXPECT_NE(before[9].predicted, after[9].predicted);
}

TEST(LeaveOneSourceOut, GivesAStackWithoutRunsWhatItsRelativesHave) {
  Stack other = slow_stack();
  other.name = "other";
  std::vector<MeasuredRun> runs = runs_of("a", slow_stack());
  runs.push_back(run_of("b", other, 2, 2));
  const HeldOutPrediction held = leave_one_source_out(runs).back();
  EXPECT_TRUE(held.pooled);
  EXPECT_NEAR(held.predicted / held.measured, 1, 0.02);
}

// Megatron-LM got the kernel that accumulates gradients in the GEMM between 2021 and 2022, so there
// it only marks a release. Among stacks with a flash kernel it tells Megatron-Core from those over
// PyTorch's autograd.
TEST(LeaveOneSourceOut, TakesFusedGradientsForAnotherGenerationUnderFlashAttentionOnly) {
  const auto held = [](bool flash) {
    Stack fused = slow_stack();
    fused.flash_attention = flash;
    Stack other = fused;
    other.name = "other";
    other.gradient_accumulation_fused = false;
    std::vector<MeasuredRun> runs = runs_of("a", fused);
    runs.push_back(run_of("b", other, 1, 2));
    PreparedJob priors = runs.back().job;
    priors.job.training.stack = with_parameters(other, {});
    const Seconds predicted = leave_one_source_out(runs).back().predicted;
    return predicted == estimate(priors, runs.back().plan).step_time;
  };
  EXPECT_TRUE(held(true));
  EXPECT_FALSE(held(false));
}

TEST(LeaveOneSourceOut, FallsBackToThePriors) {
  const std::vector<MeasuredRun> runs = {run_of("a", slow_stack(), 2, 1)};
  const HeldOutPrediction held = leave_one_source_out(runs).front();
  PreparedJob job = runs[0].job;
  job.job.training.stack = with_parameters(slow_stack(), {});
  EXPECT_EQ(held.predicted, estimate(job, runs[0].plan).step_time);
}

}  // namespace
}  // namespace trainyard
