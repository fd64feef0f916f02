#include "tests/model/program/equivalence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/program/check.h"
#include "model/program/lower.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

using interpreter::Elements;
using interpreter::Outcome;

}  // namespace

Outcome run_lowered(const Setting& setting, std::uint64_t seed, const interpreter::Nudge& nudge) {
  const auto program = lower(setting.model, setting.training, setting.plan);
  if (!program) {
    ADD_FAILURE() << program.error().where << ": " << program.error().message;
    return {};
  }
  const auto checked = check(*program, RankLayout(setting.plan, setting.model.kv_heads));
  EXPECT_TRUE(checked) << (checked ? "" : checked.error().message);
  return interpreter::run(setting, *program, seed, nudge);
}

namespace {

// In double precision sums differ only by rounding. Where GEMMs cast, a rank scales only its part
// of what one rank scales as a whole. Numbers 2^15 times smaller than the largest of the whole are
// then rounded in other steps, of 2^-18 of it, and a few numbers computed from them round the other
// way.
double tolerance_of(const Setting& setting) {
  return setting.training.precision.casts_gemm_inputs() ? 1e-4 : 1e-11;
}

void expect_same(const Elements& found, const Elements& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0;
  double worst = 0;
  std::string where;
  for (const auto& [name, values] : expected) {
    const auto tensor = found.find(name);
    ASSERT_NE(tensor, found.end()) << what << name.first;
    ASSERT_EQ(tensor->second.size(), values.size()) << what << name.first;
    for (const auto& [place, value] : values) {
      const auto match = tensor->second.find(place);
      ASSERT_NE(match, tensor->second.end()) << what << name.first;
      largest = std::max(largest, std::abs(value));
      const double error = std::abs(match->second - value);
      if (error <= worst || std::isnan(worst)) continue;
      worst = error;
      where = fmt::format("{} of layer {} [{}, {}]: {} instead of {}", name.first, name.second,
                          place.first, place.second, match->second, value);
    }
  }
  EXPECT_LE(worst, tolerance * largest) << what << where;
}

}  // namespace

PlanRequest unsharded(int micro_batch) {
  PlanRequest request;
  request.data_parallel = 1;
  request.micro_batch = micro_batch;
  return request;
}

void expect_equivalent(const Setting& setting, const std::string& what, std::uint64_t seed) {
  if (!is_next_tried()) return;
  const Outcome sharded = run_lowered(setting, seed);
  ASSERT_EQ(sharded.stuck, "") << what;
  const bool drops = setting.plan.capacity_factor > 0;  // counted over a micro-batch
  PlanRequest request = unsharded(drops ? setting.plan.micro_batch : 1);
  if (drops) request.capacity_factor = setting.plan.capacity_factor;
  Setting whole = tiny_setting(setting.model, setting.training, request);
  whole.blocks = setting.plan;
  const Outcome expected = run_lowered(whole);
  const double tolerance = tolerance_of(setting);
  EXPECT_NEAR(sharded.loss, expected.loss, tolerance / 10 * expected.loss) << what;
  EXPECT_LE(sharded.disagreement, 1e-12) << what;
  expect_same(sharded.gradients, expected.gradients, tolerance, what);
  if (setting.plan.optimizer_barrier) {
    expect_same(sharded.weights, expected.weights, tolerance, what);
  }
}

// ---- The unsharded program against its own loss -----------------------------------------

void expect_gradients_of_loss(const Setting& setting) {
  const Outcome outcome = run_lowered(setting);
  ASSERT_EQ(outcome.stuck, "");
  constexpr double kStep = 1e-5;
  std::size_t i = 0;
  std::string last;
  for (const auto& [name, gradients] : outcome.gradients) {
    std::string weight = name.first;
    weight.resize(weight.size() - std::string_view(" gradient").size());
    for (const auto& [place, gradient] : gradients) {
      const bool another = weight != last;
      last = weight;
      if ((i++ % 61 != 0 && !another) || !is_next_tried()) continue;
      interpreter::Nudge nudge{weight, name.second, place.first, place.second, kStep};
      const double above = run_lowered(setting, 0, nudge).loss;
      nudge.by = -kStep;
      const double below = run_lowered(setting, 0, nudge).loss;
      EXPECT_NEAR((above - below) / (2 * kStep), gradient, 1e-9 + 1e-6 * std::abs(gradient))
          << weight << " of layer " << nudge.layer << " [" << nudge.row << ", " << nudge.column
          << "]";
    }
  }
}

}  // namespace trainyard
