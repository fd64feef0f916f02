// The loss scale under fp16: when it changes; that a skipped step leaves everything as it was; and
// that it keeps gradients below fp16's smallest number.
#include "executor/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "executor/cpu/cpu_backend.h"
#include "executor/rank_run.h"
#include "executor/transport/transport.h"
#include "model/program/lower.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

constexpr double kOverflow = std::numeric_limits<double>::infinity();

Setting scaled_setting(std::string_view recipe, double loss_scale = 65536, bool barrier = true) {
  PlanRequest request;
  request.data_parallel = 1;
  Training training = tiny_training();
  training.precision = *find_precision_recipe(recipe);
  training.optimizer = *find_optimizer("adam");
  Setting setting = tiny_setting(tiny_llama(false), training, request);
  setting.plan.optimizer_barrier = barrier;
  setting.descent = {.learning_rate = 1e-2, .loss_scale = loss_scale};
  setting.seed = 5;
  return setting;
}

// ---- When it changes ----------------------------------------------------------------------------

TEST(LossScale, HalvesWhereTheGradientOverflows) {
  LossScale scale(scaled_setting("fp16"));
  EXPECT_EQ(scale.value(), 65536);
  EXPECT_TRUE(scale.update(kOverflow));
  EXPECT_EQ(scale.value(), 32768);
  EXPECT_TRUE(scale.update(std::nan("")));
  EXPECT_EQ(scale.value(), 16384);
  EXPECT_FALSE(scale.update(1));
  EXPECT_EQ(scale.value(), 16384);
}

TEST(LossScale, DoublesAfterTwoThousandGoodStepsInARow) {
  LossScale scale(scaled_setting("fp16"));
  for (int step = 0; step < 1999; ++step) scale.update(1);
  EXPECT_TRUE(scale.update(kOverflow));
  for (int step = 0; step < 1999; ++step) scale.update(1);
  EXPECT_EQ(scale.value(), 32768);
  EXPECT_FALSE(scale.update(1));
  EXPECT_EQ(scale.value(), 65536);
}

TEST(LossScale, StaysWhereNothingSaysThatAStepOverflowed) {
  LossScale scale(scaled_setting("fp16", 1024, false));
  EXPECT_FALSE(scale.update(kOverflow));
  EXPECT_EQ(scale.value(), 1024);
}

TEST(LossScale, IsOneInOtherRecipes) {
  for (const char* recipe : {"fp32", "bf16", "fp8"}) {
    LossScale scale(scaled_setting(recipe));
    EXPECT_FALSE(scale.update(kOverflow));
    EXPECT_EQ(scale.value(), 1);
  }
}

// ---- In a run -----------------------------------------------------------------------------------

class Unwatched final : public Watch {
  void begins(std::int64_t, const IssuedOperation&) override {}
};

// One rank that trains on the same batch in every step.
class OneRank {
 public:
  explicit OneRank(Setting setting)
      : setting_(std::move(setting)),
        program_(*lower(setting_.model, setting_.training, setting_.plan)),
        layout_(setting_.plan, setting_.model.kv_heads),
        transport_(make_single_rank_transport()),
        backend_(make_cpu_backend(setting_, program_, layout_, *transport_)),
        executor_(setting_, program_, layout_, 0, *backend_, nobody_) {}

  StepOutcome step() { return *executor_.step(steps_++, 0, nobody_); }
  std::vector<std::vector<float>> weights() {
    std::vector<std::vector<float>> all;
    for (HeldTensor& held : executor_.weights(nobody_)) all.push_back(std::move(held.numbers));
    return all;
  }

 private:
  Setting setting_;
  Program program_;
  RankLayout layout_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Backend> backend_;
  Unwatched nobody_;
  RankExecutor executor_;
  int steps_ = 0;
};

// Scales are powers of two. So the first step that is not skipped equals the first step of a run
// that starts with the scale reached by then.
TEST(ScaledRun, LeavesOutStepsThatOverflowAsIfTheyHadNotBeen) {
  constexpr double kTooMuch = 0x1p40;
  OneRank halving(scaled_setting("fp16", kTooMuch));
  const auto before = halving.weights();
  double scale = kTooMuch;
  while (halving.step().skipped) {
    scale /= 2;
    ASSERT_GT(scale, 1);
    ASSERT_EQ(halving.weights(), before);
  }
  EXPECT_LT(scale, kTooMuch);
  OneRank plain(scaled_setting("fp16", scale));
  EXPECT_FALSE(plain.step().skipped);
  EXPECT_NE(plain.weights(), before);
  EXPECT_EQ(halving.weights(), plain.weights());
  halving.step();
  plain.step();
  EXPECT_EQ(halving.weights(), plain.weights());
}

// A logit's gradient is at most 1/32 here, for each of 32 tokens. With the small scale it is below
// 2^-24.
TEST(ScaledRun, KeepsGradientsThatFp16AloneWouldLose) {
  const auto norm = [](std::string_view recipe, double scale) {
    return std::sqrt(OneRank(scaled_setting(recipe, scale)).step().squared_norm);
  };
  const double expected = norm("fp32", 1);
  EXPECT_NEAR(norm("fp16", 1024), expected, 1e-2 * expected);
  EXPECT_GT(std::abs(norm("fp16", 0x1p-20) - expected), 0.1 * expected);
}

// Without an optimizer barrier no step is skipped, so an overflow is not a difference between two
// plans.
TEST(ScaledRun, SaysThatItOverflowedWhereNothingCanBeVerified) {
  const Setting setting = scaled_setting("fp16", 0x1p40, false);
  const Program program = *lower(setting.model, setting.training, setting.plan);
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const RunPlan plan{.warmup = 0, .steps = 1, .verify = true};
  auto board = Board::create(testing::TempDir(), 7, program.stages[0].operations, 1);
  ASSERT_TRUE(board);
  const auto transport = make_single_rank_transport();
  const auto ran = run_rank(setting, plan, program, layout, *transport, *board);
  ASSERT_FALSE(ran);
  EXPECT_TRUE(ran.error().message.starts_with("met a gradient that overflowed in fp16"))
      << ran.error().message;
}

}  // namespace
}  // namespace trainyard
