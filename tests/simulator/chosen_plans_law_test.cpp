// Simulates the plans that the planner chooses. A search prefers plans that the estimate prices too
// low, so the errors of its answers are larger than those of random plans (the winner's curse).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "planner/planner.h"
#include "scenarios/scenario.h"
#include "simulator/step.h"

namespace trainyard {
namespace {

struct Asked {
  std::string model, node;
  int nodes = 1;
  int global_batch = 1, sequence_length = 1;
  std::string stack, precision = "bf16";
};

void PrintTo(const Asked& question, std::ostream* out) {
  *out << question.model << " on " << question.nodes << " " << question.node << " with "
       << question.stack;
}

Job job_of(const Asked& q) {
  const std::string text = fmt::format(
      R"({{"trainyard": "scenario/1", "model": "{}", "cluster": {{"node": "{}", "nodes": {}}},
          "training": {{"global_batch": {}, "sequence_length": {}, "stack": "{}",
                       "precision": "{}"}}}})",
      q.model, q.node, q.nodes, q.global_batch, q.sequence_length, q.stack, q.precision);
  return parse_scenario(text, "question").value().job;
}

class ChosenPlans : public testing::TestWithParam<Asked> {};

// The times of the worked questions; and no plan is chosen that does not fit in memory when
// simulated.
TEST_P(ChosenPlans, AreWhatTheEstimateSaysWhenPlayed) {
  const PreparedJob job = prepare(job_of(GetParam()));
  const SearchResult found = search(job, {.top = 3}, analytic_evaluator(job));
  ASSERT_FALSE(found.plans.empty());
  for (const Candidate& candidate : found.plans) {
    const auto simulation = simulate(job, candidate.plan);
    ASSERT_TRUE(simulation) << simulation.error().message;
    const Estimate played = as_estimate(job, candidate.plan, *simulation);
    EXPECT_NEAR(played.step_time / candidate.estimate.step_time, 1, 0.03);
    EXPECT_NEAR(played.peak_memory / candidate.estimate.peak_memory, 1, 0.03);
    EXPECT_TRUE(played.feasible);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, ChosenPlans,
    testing::Values(Asked{"gpt-oss-120b", "dgx-h200", 32, 512, 8192, "megatron-core"},
                    Asked{"qwen3-30b-a3b", "dgx-h200", 8, 128, 4096, "megatron-core"},
                    Asked{"deepseek-v3", "dgx-b200", 64, 2048, 4096, "megatron-core", "fp8"},
                    Asked{"mixtral-8x7b", "dgx-h100-80gb", 8, 256, 4096, "megatron-core"},
                    Asked{"llama-2-13b", "dgx-h100-80gb", 16, 32, 131072, "megatron-core"},
                    Asked{"llama-3.1-70b", "dgx-h100-80gb", 32, 512, 8192, "torchtitan"},
                    Asked{"llama-3.1-405b", "dgx-a100-80gb", 64, 512, 8192, "torchtitan"},
                    Asked{"gemma-3-27b", "dgx-h100-80gb", 8, 256, 8192, "torchtitan"},
                    Asked{"llama-3.1-8b", "dgx-h100-80gb", 8, 256, 8192, "fsdp"},
                    Asked{"llama-3.1-70b", "dgx-a100-80gb", 8, 256, 4096, "deepspeed"}),
    [](const auto& instance) {
      std::string name;
      for (const char c : instance.param.model + "_" + instance.param.stack) {
        name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      }
      return name;
    });

}  // namespace
}  // namespace trainyard
