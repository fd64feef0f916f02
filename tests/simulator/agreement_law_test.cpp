// Compares the analytic estimate with the simulation of the same plan, on random legal plans. They
// are drawn uniformly over catalog models, nodes, numbers of nodes and legal degrees, and over
// stacks if the default one does not run the schedule. They include plans without tensor
// parallelism (whose ranks share NICs), context and expert parallelism across nodes, and uneven
// stages.
//
// The suite draws 203 small plans in all, and 140 in recipes of 8 and 4 bits, always the same. By
// hand, any number per schedule:
//   TRAINYARD_AGREEMENT_PLANS=200 simulator_agreement_test
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "model/schedule/schedule.h"
#include "scenarios/catalog.h"
#include "scenarios/scenario.h"
#include "simulator/step.h"
#include "tests/simulator/drawn_nodes.h"

namespace trainyard {
namespace {

constexpr int kPlansOfEachInTheSuite = 29;  // 203 in all
constexpr int kLowPrecisionPlansOfEachInTheSuite = 20;
// Limits on layers × micro-batches × the ranks that may have to be played: a step takes a fraction
// of a second in the suite, and seconds by hand.
constexpr std::int64_t kMostInTheSuite = 20'000;
constexpr std::int64_t kMostByHand = 100'000;

struct Tolerance {
  double median, p95;
};

// The aim is 2 % and 5 % for gpipe, 1f1b and interleaved-1f1b, and 4 % and 10 % for the others. The
// bound is the aim, or, if it is less, what a schedule reaches, rounded up. A bound may only
// decrease. It once increased, when rings replaced recursive gathers that no library has: traffic
// beside a ring meets it throughout, and the estimate assumes more of this than happens. The
// remaining differences are explained in simulator/README.md.
struct Bound {
  std::string_view schedule;
  Tolerance aim, reached;
  // Reached in 8 and 4 bits, where kernels are shorter but exchanges are not.
  Tolerance low_precision;
};
constexpr Bound kBounds[] = {
    {"gpipe", {0.02, 0.05}, {0.02, 0.035}, {0.02, 0.025}},
    {"1f1b", {0.02, 0.05}, {0.02, 0.02}, {0.02, 0.02}},
    {"interleaved-1f1b", {0.02, 0.05}, {0.02, 0.04}, {0.02, 0.025}},
    {"zb-h1", {0.04, 0.10}, {0.04, 0.035}, {0.04, 0.015}},
    {"zb-h2", {0.04, 0.10}, {0.04, 0.06}, {0.04, 0.04}},
    {"zb-v", {0.04, 0.10}, {0.04, 0.055}, {0.04, 0.03}},
    {"dualpipe", {0.04, 0.10}, {0.04, 0.05}, {0.04, 0.02}},
};

Bound bound_of(std::string_view schedule) {
  const auto* found = std::find_if(std::begin(kBounds), std::end(kBounds),
                                   [&](const Bound& b) { return b.schedule == schedule; });
  return found == std::end(kBounds) ? Bound{schedule, {0.04, 0.10}, {0.04, 0.10}, {0.04, 0.10}}
                                    : *found;
}

int plans_of_each_schedule(int plans) {
  const char* asked = std::getenv("TRAINYARD_AGREEMENT_PLANS");
  if (asked != nullptr) std::from_chars(asked, asked + std::string_view(asked).size(), plans);
  return plans;
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  template <typename Value>
  Value one_of(const std::vector<Value>& values) {
    return values[random_() % values.size()];
  }

  // A scenario of a random model, node and training in one of the recipes; `request` draws the
  // plan.
  Scenario scenario(const Schedule& schedule, const std::vector<std::string>& recipes) {
    const std::string recipe = recipes.size() == 1 ? recipes.front() : one_of(recipes);
    const std::string text = fmt::format(
        R"({{"trainyard": "scenario/1", "model": "{}", "cluster": {{"node": "{}", "nodes": {}}},
            "training": {{"global_batch": {}, "sequence_length": {}, "stack": "{}",
                         "precision": "{}"}}}})",
        one_of(catalog_names("model")), one_of(drawn_nodes()),
        one_of<int>({1, 2, 4, 8, 16, 32, 64}), one_of<int>({64, 128, 256, 512, 1024}),
        one_of<int>({2048, 4096, 8192}), stack(schedule), recipe);
    const auto file = std::filesystem::temp_directory_path() /
                      fmt::format("trainyard-agreement-{}.json", ::getpid());
    std::ofstream(file) << text;
    auto read = read_scenario(file);
    std::filesystem::remove(file);
    if (!read) ADD_FAILURE() << text << ": " << read.error().message;
    return *std::move(read);
  }

  PlanRequest request(const Schedule& schedule) {
    PlanRequest request;
    request.schedule = schedule.name;
    request.tensor_parallel = one_of<int>({1, 1, 2, 4, 8, 16});
    request.pipeline_parallel = one_of<int>({1, 2, 4, 8, 16});
    request.context_parallel = one_of<int>({1, 1, 2, 4, 8});
    request.context_parallel_algorithm = one_of<ContextAlgorithm>(
        {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses});
    request.expert_parallel = one_of<int>({1, 2, 4, 8, 16, 32});
    request.micro_batch = one_of<int>({1, 1, 2, 4});
    request.zero_stage = one_of<int>({0, 1, 1, 2, 3});
    request.recompute.mode =
        one_of<RecomputeMode>({RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full});
    if (schedule.needs_chunks) request.virtual_stages = one_of<int>({2, 2, 3, 4});
    if (schedule.route == Route::vee) request.virtual_stages = 2;
    return request;
  }

 private:
  // The default stack runs two schedules with a pipeline. For the others any stack may be drawn,
  // except megatron-2021, which is refused with ZeRO (megatron-deepspeed has the same layers), and
  // gpt-neox, whose attention other stacks have fused too.
  std::string stack(const Schedule& schedule) {
    const bool by_default = schedule.name == "1f1b" || schedule.name == "interleaved-1f1b";
    std::vector<std::string> stacks = catalog_names("stack");
    for (const char* alike : {"megatron-2021", "gpt-neox"}) std::erase(stacks, alike);
    return by_default ? "megatron-core" : one_of(stacks);
  }

  std::mt19937_64 random_;
};

struct Compared {
  std::string name;
  double error = 0;   // estimate over simulation, less 1
  double memory = 0;  // the same for the peak of allocated memory
};

std::string described(const Scenario& scenario, const Plan& plan) {
  const Job& job = scenario.job;
  return fmt::format(
      "{} on {} × {}, {}, {}, B {}, s {}: t {}{} c {}/{} p {} v {} D {} e {} b {} m {} zero {} "
      "recompute {}",
      job.model.name, job.cluster.nodes, job.cluster.name, job.training.stack.name,
      job.training.precision.name, job.training.global_batch, job.training.sequence_length,
      plan.tensor_parallel, plan.sequence_parallel ? "+sp" : "", plan.context_parallel,
      static_cast<int>(plan.context_parallel_algorithm), plan.pipeline_parallel,
      plan.virtual_stages, plan.data_parallel, plan.expert_parallel, plan.micro_batch,
      plan.microbatches, plan.zero_stage, static_cast<int>(plan.recompute.mode));
}

// Where ranks cannot be folded, all of them are played.
bool is_small(const Job& job, const Plan& plan) {
  const auto passes = static_cast<std::int64_t>(job.model.layers) * plan.microbatches * 2;
  const bool by_hand = std::getenv("TRAINYARD_AGREEMENT_PLANS") != nullptr;
  if (by_hand) return passes <= kMostByHand;
  return passes * plan.devices() / plan.pipeline_parallel <= kMostInTheSuite;
}

// offload_agreement_law_test.cpp draws these plans. Adding them here would change all later draws.
bool has_draw_of_its_own(const Job& job, const Plan& plan) {
  return recomputes(plan, RecomputeMode::selective) &&
         job.training.stack.selective == SelectiveRecompute::every_second_matmul;
}

struct Draw {
  std::uint64_t seed = 0;
  std::vector<std::string> recipes;
  int plans = 0;
  Tolerance bound;
};

std::vector<Compared> compare(const Schedule& schedule, const Draw& draw, int& left_out) {
  const int plans = draw.plans;
  Generator generator(draw.seed);
  std::vector<Compared> all;
  for (int attempt = 0; attempt < 2000 * plans && static_cast<int>(all.size()) < plans; ++attempt) {
    const Scenario scenario = generator.scenario(schedule, draw.recipes);
    const PlanRequest request = generator.request(schedule);
    const Job& j = scenario.job;
    const auto plan = plan_if_legal(request, j.model, j.cluster, j.training);
    if (!plan || !is_small(j, *plan)) continue;
    if (has_draw_of_its_own(j, *plan)) {
      ++left_out;
      continue;
    }
    const PreparedJob job = prepare(j);
    const auto simulation = simulate(job, *plan);
    if (!simulation) {
      ADD_FAILURE() << described(scenario, *plan) << ": " << simulation.error().message;
      continue;
    }
    const Estimate expected = estimate(job, *plan);
    const Estimate played = as_estimate(job, *plan, *simulation);
    all.push_back({described(scenario, *plan), expected.step_time / simulation->step_time - 1,
                   expected.peak_allocated / played.peak_allocated - 1});
  }
  std::sort(all.begin(), all.end(), [](const Compared& a, const Compared& b) {
    return std::abs(a.error) > std::abs(b.error);
  });
  return all;
}

class Agreement : public testing::TestWithParam<const Schedule*> {};

double median_of_memory(std::vector<Compared> all) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end(), [](const Compared& a, const Compared& b) {
    return std::abs(a.memory) < std::abs(b.memory);
  });
  return std::abs(middle->memory);
}

void expect_agreement(const Schedule& schedule, const Draw& draw) {
  int left_out = 0;
  const std::vector<Compared> all = compare(schedule, draw, left_out);
  ASSERT_EQ(static_cast<int>(all.size()), draw.plans);
  const auto quantile = [&](double q) {
    return std::abs(all[static_cast<std::size_t>((1 - q) * static_cast<double>(all.size()))].error);
  };
  fmt::print("{}: {} plans, median {:.1f} %, p95 {:.1f} %, {} left out; the ten worst:\n",
             schedule.name, all.size(), 100 * quantile(0.5), 100 * quantile(0.95), left_out);
  for (std::size_t i = 0; i < std::min<std::size_t>(10, all.size()); ++i) {
    fmt::print("  {:+6.1f} %  {}\n", 100 * all[i].error, all[i].name);
  }
  fmt::print("  peak memory: median {:.1f} %\n", 100 * median_of_memory(all));
  const Bound bound = bound_of(schedule.name);
  fmt::print("  the aim: median {:.0f} %, p95 {:.0f} %\n", 100 * bound.aim.median,
             100 * bound.aim.p95);
  if (std::getenv("TRAINYARD_AGREEMENT_PLANS") != nullptr) return;  // other plans: figures only
  EXPECT_LE(quantile(0.5), draw.bound.median);
  EXPECT_LE(quantile(0.95), draw.bound.p95);
}

TEST_P(Agreement, OfEstimateAndSimulationOnRandomPlans) {
  const Schedule& schedule = *GetParam();
  expect_agreement(schedule, {std::hash<std::string_view>{}(schedule.name),
                              {"bf16"},
                              plans_of_each_schedule(kPlansOfEachInTheSuite),
                              bound_of(schedule.name).reached});
}

TEST_P(Agreement, OfEstimateAndSimulationOnRandomPlansInLowPrecision) {
  const Schedule& schedule = *GetParam();
  expect_agreement(schedule, {std::hash<std::string_view>{}(schedule.name) + 1,
                              {"fp8", "mxfp8", "nvfp4"},
                              plans_of_each_schedule(kLowPrecisionPlansOfEachInTheSuite),
                              bound_of(schedule.name).low_precision});
}

INSTANTIATE_TEST_SUITE_P(EverySchedule, Agreement,
                         testing::ValuesIn(schedules().begin(), schedules().end()),
                         [](const auto& instance) {
                           std::string name(instance.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return "Of_" + name;
                         });

}  // namespace
}  // namespace trainyard
