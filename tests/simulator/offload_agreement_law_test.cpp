// Compares the analytic estimate with the simulation, in step time and peak memory, for plans that
// offload, that recompute every second GEMM, or whose rings keep scores in memory. They are drawn
// apart from the plans of agreement_law_test.cpp.
//
// By hand any number of plans: TRAINYARD_AGREEMENT_PLANS=200 simulator_offload_agreement_test
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "model/schedule/schedule.h"
#include "tests/simulator/drawn_plans.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

constexpr int kPlansInTheSuite = 60;

// The aim for the time is that of agreement_law_test.cpp: median 4 %, 95th percentile 10 %. The
// bounds are what the plans reach, rounded up, and may only decrease. The error in memory of the
// same plans without offloading is printed beside it.
struct Drawn {
  std::vector<std::string> stacks;
  Offload offload;
  RecomputeMode recompute = RecomputeMode::none;
  double median, p95;  // of the step's time
  double memory_median, memory_p95;
  int most_context = 2;  // ranks that share a sequence
};

struct Named {
  const char* name;
  Drawn drawn;
};

const std::vector<Named>& draws() {
  constexpr OffloadTarget kHost = OffloadTarget::host;
  static const std::vector<Named> all = {
      {"activations",
       {{"megatron-core"}, {.activations = kHost}, RecomputeMode::none, 0.01, 0.055, 0.01, 0.065}},
      {"some_activations",
       {{"megatron-core", "ideal"},
        {.activations = kHost, .activation_layers = 1},
        RecomputeMode::none,
        0.005,
        0.085,
        0.01,
        0.07}},
      {"optimizer",
       {{"megatron-core", "deepspeed"},
        {.optimizer = kHost},
        RecomputeMode::none,
        0.005,
        0.01,
        0.005,
        0.015}},
      {"both",
       {{"megatron-core", "deepspeed"},
        {.optimizer = kHost, .activations = kHost},
        RecomputeMode::selective,
        0.005,
        0.035,
        0.015,
        0.08}},
      {"weights",
       {{"megatron-core", "deepspeed"},
        {.parameters = kHost},
        RecomputeMode::none,
        0.01,
        0.045,
        0.005,
        0.05}},
      {"gradients",
       {{"megatron-core", "deepspeed"},
        {.gradients = kHost},
        RecomputeMode::none,
        0.005,
        0.085,
        0.005,
        0.02}},
      {"all",
       {{"megatron-core", "deepspeed", "torchtitan"},
        {.parameters = kHost, .gradients = kHost, .optimizer = kHost, .activations = kHost},
        RecomputeMode::none,
        0.015,
        0.09,
        0.045,
        0.235}},
      {"unfused_ring",
       {{"megatron-2022", "megatron-deepspeed"},
        {},
        RecomputeMode::none,
        0.005,
        0.025,
        0.005,
        0.015,
        4}},
      {"unfused_ring_again",
       {{"megatron-2022", "megatron-deepspeed"},
        {},
        RecomputeMode::selective,
        0.005,
        0.02,
        0.01,
        0.08,
        4}},
      {"every_second_matmul",
       {{"torchtitan"}, {}, RecomputeMode::selective, 0.005, 0.025, 0.005, 0.025}},
  };
  return all;
}

Job drawn_job(Choices& choices, const Drawn& drawn) {
  const std::string training = fmt::format(R"("stack": "{}")", choices.one_of_names(drawn.stacks));
  return drawn_job(choices, {1, 2, 4, 8, 16}, {64, 128, 256, 512}, training);
}

PlanRequest drawn_request(Choices& choices, const Drawn& drawn, int layers) {
  PlanRequest request;
  const auto& schedule = *choices.one_of<const Schedule*>({schedules().begin(), schedules().end()});
  request.schedule = schedule.name;
  request.tensor_parallel = choices.one_of<int>({1, 1, 2, 4, 8});
  request.pipeline_parallel = choices.one_of<int>({1, 1, 2, 4, 8});
  request.context_parallel = drawn.most_context > 2
                                 ? choices.one_of<int>({2, 2, drawn.most_context})
                                 : choices.one_of<int>({1, 1, 2});
  request.expert_parallel = choices.one_of<int>({1, 2, 4, 8});
  request.micro_batch = choices.one_of<int>({1, 1, 2});
  request.zero_stage = choices.one_of<int>({0, 1, 1, 2, 3});
  if (schedule.needs_chunks) request.virtual_stages = choices.one_of<int>({2, 2, 3, 4});
  if (schedule.route == Route::vee) request.virtual_stages = 2;
  request.recompute.mode = drawn.recompute;
  request.offload = drawn.offload;
  if (drawn.offload.activation_layers > 0) {  // any number of a stage's
    const double share = choices.one_of<double>({0.05, 0.25, 0.5, 0.75, 0.95});
    request.offload.activation_layers =
        1 + static_cast<int>(share * (layers / request.pipeline_parallel - 1));
  }
  return request;
}

struct Compared {
  std::string name;
  double time = 0, memory = 0;
  double memory_without = 0;  // for the same plan with everything on the device and kept
};

double memory_error_without(const PreparedJob& job, Plan plan) {
  plan.offload = {};
  plan.recompute = {};
  const auto simulation = simulate(job, plan);
  if (!simulation) ADD_FAILURE() << simulation.error().message;
  return simulation ? disagreement(job, plan, *simulation).memory : 0;
}

std::vector<Compared> compare(const Named& named, int plans) {
  std::vector<Compared> all;
  for (int attempt = 0; attempt < 2000 * plans; ++attempt) {
    if (static_cast<int>(all.size()) == plans) break;
    Choices choices(named.name, attempt);
    const Job drawn = drawn_job(choices, named.drawn);
    const PlanRequest request = drawn_request(choices, named.drawn, drawn.model.layers);
    if (drawn.cluster.device.host_bandwidth <= BytesPerSecond(0)) continue;  // nothing can leave it
    const auto plan = plan_if_legal(request, drawn.model, drawn.cluster, drawn.training);
    if (!plan || !is_small(drawn, *plan)) continue;
    const PreparedJob job = prepare(drawn);
    const auto simulation = simulate(job, *plan);
    if (!simulation) {
      ADD_FAILURE() << described(drawn, *plan) << ": " << simulation.error().message;
      continue;
    }
    const auto [time, memory] = disagreement(job, *plan, *simulation);
    all.push_back({described(drawn, *plan), time, memory, memory_error_without(job, *plan)});
  }
  return all;
}

class OffloadAgreement : public testing::TestWithParam<Named> {};

std::vector<double> errors_of(const std::vector<Compared>& all, double Compared::*which) {
  std::vector<double> errors;
  errors.reserve(all.size());
  for (const Compared& one : all) errors.push_back(one.*which);
  return errors;
}

void print_worst(std::vector<Compared> all, double Compared::*which, const char* what) {
  std::sort(all.begin(), all.end(), [which](const Compared& a, const Compared& b) {
    return std::abs(a.*which) > std::abs(b.*which);
  });
  for (std::size_t i = 0; i < std::min<std::size_t>(8, all.size()); ++i) {
    fmt::print("  {} {:+6.1f} % ({:+.1f} %)  {}\n", what, 100 * (all[i].*which),
               100 * all[i].memory_without, all[i].name);
  }
}

TEST_P(OffloadAgreement, OfEstimateAndSimulationOnRandomPlans) {
  const Named& named = GetParam();
  const int plans = plans_to_draw(kPlansInTheSuite);
  const std::vector<Compared> all = compare(named, plans);
  ASSERT_EQ(static_cast<int>(all.size()), plans);
  const std::vector<double> time = errors_of(all, &Compared::time);
  const std::vector<double> memory = errors_of(all, &Compared::memory);
  const std::vector<double> without = errors_of(all, &Compared::memory_without);
  fmt::print(
      "{}: {} plans; time: median {:.1f} %, p95 {:.1f} %; memory: median {:.1f} %, p95 {:.1f} %, "
      "without: {:.1f} %, {:.1f} %; the worst:\n",
      named.name, all.size(), 100 * quantile(time, 0.5), 100 * quantile(time, 0.95),
      100 * quantile(memory, 0.5), 100 * quantile(memory, 0.95), 100 * quantile(without, 0.5),
      100 * quantile(without, 0.95));
  print_worst(all, &Compared::time, "time  ");
  print_worst(all, &Compared::memory, "memory");
  if (is_drawn_by_hand()) return;  // other plans: figures only
  if (kSanitized) {                // few plans: the aim
    EXPECT_LE(quantile(time, 0.5), 0.04);
    return;
  }
  EXPECT_LE(quantile(time, 0.5), named.drawn.median);
  EXPECT_LE(quantile(memory, 0.5), named.drawn.memory_median);
  EXPECT_LE(quantile(time, 0.95), named.drawn.p95);
  EXPECT_LE(quantile(memory, 0.95), named.drawn.memory_p95);
}

INSTANTIATE_TEST_SUITE_P(EveryKind, OffloadAgreement, testing::ValuesIn(draws()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace trainyard
