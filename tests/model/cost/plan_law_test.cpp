// Laws that hold for every plan (handbook §12), on random legal plans of three jobs.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "model/cost/estimate.h"
#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

constexpr int kPlansPerJob = 300;

PreparedJob deepseek_on_h100() {
  Training training = modern();
  training.global_batch = 512;
  return prepare({deepseek_v3(), example_cluster(example_h100(), 32), training});
}

class PlanLaw : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const int which = GetParam();
    job_ = which == 0   ? gpt3_on_a100(32, 512)
           : which == 1 ? llama_8b_on_h100(8, 512)
                        : deepseek_on_h100();
  }

  // Calls `check` with random legal plans; requests that make_plan refuses are drawn again.
  template <typename Check>
  void for_random_plans(Check check) {
    std::mt19937 generator(20260000u + static_cast<unsigned>(GetParam()));
    int legal = 0;
    for (int tries = 0; legal < kPlansPerJob && tries < 100 * kPlansPerJob; ++tries) {
      const PlanRequest request = random_request(generator);
      const auto plan = make_plan(request, job_.job.model, job_.job.cluster, job_.job.training);
      if (!plan) continue;
      ++legal;
      check(request, *plan);
    }
    ASSERT_EQ(legal, kPlansPerJob) << "too few random requests are legal";
  }

  PreparedJob job_;

 private:
  PlanRequest random_request(std::mt19937& generator) const {
    const auto pick = [&](auto... values) {
      const std::array options{values...};
      return options[std::uniform_int_distribution<std::size_t>(0, options.size() - 1)(generator)];
    };
    PlanRequest request;
    request.tensor_parallel = pick(1, 2, 4, 8);
    request.context_parallel = pick(1, 1, 2, 4);
    request.pipeline_parallel = pick(1, 2, 4, 8, 16);
    request.virtual_stages = pick(1, 1, 2, 3);
    request.micro_batch = pick(1, 2, 4);
    request.zero_stage = pick(0, 1, 2, 3);
    if (job_.job.model.experts > 0) request.expert_parallel = pick(1, 8, 16, 64);
    request.recompute.mode =
        pick(RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full);
    return request;
  }
};

TEST_P(PlanLaw, BreakdownSumsToTheStepAndNoPartIsNegative) {
  for_random_plans([&](const PlanRequest&, const Plan& plan) {
    const Estimate out = estimate(job_, plan);
    const Breakdown& b = out.breakdown;
    for (const Seconds part : {b.compute, b.embedding_head, b.tensor_parallel, b.context_parallel,
                               b.expert_parallel, b.pipeline, b.data_parallel, b.optimizer,
                               b.recompute, b.offload, b.launch, b.bubble, b.other}) {
      ASSERT_GE(part, Seconds(0));
      ASSERT_TRUE(std::isfinite(part.value()));
    }
    EXPECT_EQ(b.total(), out.step_time);
  });
}

// §12.1: parameters held, summed over all ranks (ZeRO off), is every tensor times its replicas:
// c·D for TP-sharded tensors, t·c·D for replicated ones, D_e for experts, KV heads t/g-fold when
// g < t, once more for a tied embedding when p > 1.
TEST_P(PlanLaw, ParametersHeldAreTensorsTimesReplicas) {
  for_random_plans([&](const PlanRequest&, const Plan& plan) {
    const Transformer& model = job_.job.model;
    const double t = plan.tensor_parallel;
    const double copies = static_cast<double>(plan.context_parallel) * plan.data_parallel;
    const double kv_copies = std::max(1.0, t / model.kv_heads);
    double expected = 0;
    for (int layer = 0; layer < model.layers; ++layer) {
      const LayerParameters p = layer_parameters(model, layer_kind(model, layer));
      expected += copies * (p.attention_sharded + p.mlp_sharded + p.kv_sharded * kv_copies +
                            p.replicated * t) +
                  p.experts * plan.expert_data_parallel;
    }
    // 51,200 and 128,256 rows: t up to 8 divides them, so nothing is padded; 129,280 likewise.
    const EndParameters ends = end_parameters(model, job_.job.training.sequence_length);
    const bool second = model.tied_embeddings && plan.pipeline_parallel > 1;
    expected += copies * (ends.embedding * (second ? 2 : 1) + ends.head +
                          t * (ends.positions + ends.final_norm));
    const double ranks = t * copies;  // of one stage
    double held = 0;
    for (const StageParameters& stage : estimate(job_, plan).held) {
      held += ranks * (stage.dense + stage.experts);
    }
    EXPECT_NEAR(held / expected, 1, 1e-12);
  });
}

// §12.6: with D, m, b, p fixed, state bytes never rise with the ZeRO stage.
TEST_P(PlanLaw, StateBytesNeverRiseWithTheZeroStage) {
  for_random_plans([&](const PlanRequest&, Plan plan) {
    Bytes before(1e30);
    for (int stage = 0; stage <= 3; ++stage) {
      plan.zero_stage = stage;
      const Estimate out = estimate(job_, plan);
      const Bytes states = state_memory(job_.job.training, plan, out.held.front()).allocated();
      EXPECT_LE(states, before);
      before = states;
    }
  });
}

// §12.6: stored activations never rise with recomputation.
TEST_P(PlanLaw, StoredActivationsNeverRiseWithRecomputation) {
  for_random_plans([&](const PlanRequest&, Plan plan) {
    Bytes before(1e30);
    for (const RecomputeMode mode :
         {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
      plan.recompute = {mode, 0};
      const Bytes kept = estimate(job_, plan).stages.front().memory.at_peak.activations;
      EXPECT_LE(kept, before);
      before = kept;
    }
  });
}

// §12.6: stored activations and states do not rise with t either, at fixed D, m, b, p. The number
// of devices grows with t; memory does not depend on the cluster.
TEST_P(PlanLaw, StatesAndActivationsNeverRiseWithTensorParallelism) {
  for_random_plans([&](const PlanRequest&, Plan plan) {
    if (plan.expert_parallel > 1) return;  // e·e_t would no longer divide t·c·D
    const int full = plan.tensor_parallel;
    Bytes states(1e30), kept(1e30);
    for (int t = 1; t <= full; t *= 2) {
      plan.tensor_parallel = t;
      plan.sequence_parallel = t > 1;
      plan.expert_data_parallel = t * plan.context_parallel * plan.data_parallel;
      const Estimate out = estimate(job_, plan);
      const Bytes held = state_memory(job_.job.training, plan, out.held.front()).allocated();
      EXPECT_LE(held, states);
      EXPECT_LE(out.stages.front().memory.at_peak.activations, kept);
      states = held;
      kept = out.stages.front().memory.at_peak.activations;
    }
  });
}

// A faster network never makes the step longer, whatever is overlapped. The exception is less than
// a percent, where another algorithm becomes the fastest whose steps take more from the compute
// beside them.
TEST_P(PlanLaw, StepTimeNeverRisesWithTheBandwidthOfTheNics) {
  std::vector<PreparedJob> faster;
  for (const double times : {0.5, 1.0, 1.5, 2.0, 3.0, 4.0}) {
    Job job = job_.job;
    job.cluster.inter.bandwidth = times * job.cluster.inter.bandwidth;
    faster.push_back(prepare(job));
  }
  for_random_plans([&](const PlanRequest&, Plan plan) {
    plan.overlap.data_parallel = true;
    Seconds before(1e30);
    for (const PreparedJob& job : faster) {
      const Seconds step = estimate(job, plan).step_time;
      EXPECT_LE(step, before * 1.01);
      before = step;
    }
  });
}

std::string job_name(const testing::TestParamInfo<int>& job) {
  constexpr std::array<const char*, 3> kNames = {"Gpt3OnA100", "Llama8bOnH100", "DeepSeekV3OnH100"};
  return kNames[static_cast<std::size_t>(job.param)];
}

INSTANTIATE_TEST_SUITE_P(OfJobs, PlanLaw, testing::Values(0, 1, 2), job_name);

}  // namespace
}  // namespace trainyard
