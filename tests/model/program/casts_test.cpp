// Recipes of 8 and 4 bits: what a cast rounds to, and that the sharded program computes what the
// unsharded program computes if both cast.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

#include "executor/cpu/kernels/kernels.h"
#include "model/schedule/schedule.h"
#include "tests/model/program/equivalence.h"

namespace trainyard {
namespace {

using Matrix = Tensor<double>;

// ---- Numbers --------------------------------------------------------------------------------

// All magnitudes of a format, from sign, exponent and mantissa bits of every code (OFP8 1.0, table
// 2; MX 1.0, table 5). In e4m3 one code is not a number; e5m2 has the codes of IEEE.
std::vector<double> magnitudes(int exponent_bits, int mantissa_bits, int bias, int numbers) {
  std::vector<double> all;
  for (int code = 0; code < numbers; ++code) {
    const int exponent = code >> mantissa_bits;
    const double mantissa = (code & ((1 << mantissa_bits) - 1)) / std::pow(2, mantissa_bits);
    all.push_back(exponent == 0 ? std::pow(2, 1 - bias) * mantissa
                                : std::pow(2, exponent - bias) * (1 + mantissa));
  }
  EXPECT_LT(exponent_bits, 6);
  return all;
}

struct Format {
  NarrowFloat number;
  std::vector<double> magnitudes;
  double largest;  // by the same tables
};

std::vector<Format> formats() {
  return {{NarrowFloat::e4m3, magnitudes(4, 3, 7, 127), 448},
          {NarrowFloat::e5m2, magnitudes(5, 2, 15, 124), 57344},
          {NarrowFloat::e2m1, magnitudes(2, 1, 1, 8), 6}};
}

// The nearest magnitude; of two equally near, the one with an even code.
double nearest_of(const Format& format, double number) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < format.magnitudes.size(); ++i) {
    const double before = std::abs(std::abs(number) - format.magnitudes[best]);
    const double now = std::abs(std::abs(number) - format.magnitudes[i]);
    if (now < before || (now == before && i % 2 == 0)) best = i;
  }
  return std::copysign(format.magnitudes[best], number);
}

// Rounds one row. Its largest number is the format's largest, so that the scale is one.
Matrix rounded_row(const Format& format, std::vector<double> numbers) {
  numbers.push_back(format.largest);
  const Matrix row =
      Eigen::Map<const Matrix>(numbers.data(), 1, static_cast<Eigen::Index>(numbers.size()));
  return rounded(row, CastFormat{format.number});
}

TEST(Cast, RoundsToTheNearestNumberOfTheFormat) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> fraction(-1, 1);
  for (const Format& format : formats()) {
    ASSERT_EQ(format.magnitudes.back(), format.largest);
    std::vector<double> numbers;
    for (std::size_t i = 0; i < format.magnitudes.size(); ++i) {
      numbers.push_back(format.magnitudes[i]);
      if (i == 0) continue;
      const double middle = (format.magnitudes[i - 1] + format.magnitudes[i]) / 2;
      numbers.push_back(middle);
      numbers.push_back(-middle);
    }
    for (int i = 0; i < 500; ++i) {
      numbers.push_back(format.largest * std::pow(2, 20 * (fraction(random) - 1)));
    }
    const Matrix row = rounded_row(format, numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(row(0, static_cast<Eigen::Index>(i)), nearest_of(format, numbers[i]))
          << numbers[i] << " in format " << static_cast<int>(format.number);
    }
  }
}

TEST(Cast, ScalesByTheSmallestPowerOfTwoThatLeavesNothingBeyondTheFormat) {
  for (const Format& format : formats()) {
    if (format.number == NarrowFloat::e2m1) continue;  // scaled by blocks only
    for (const double factor : {1.0, 1.01, 1.99, 2.0, 1e-9, 3e7}) {
      const double scale = std::pow(2, std::ceil(std::log2(factor)));
      const Matrix numbers{{factor * format.largest, 0.3 * factor, 0.0}};
      const Matrix row = rounded(numbers, CastFormat{format.number});
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(row(0, i), scale * nearest_of(format, numbers(0, i) / scale)) << factor;
      }
    }
  }
}

TEST(Cast, OfBlocksScalesEachOfThemAlone) {
  Matrix numbers = Matrix::Constant(1, 64, 1.0);
  numbers.rightCols(32).setConstant(1e9);
  const Matrix whole = rounded(numbers, CastFormat{NarrowFloat::e4m3});
  EXPECT_EQ(whole(0, 0), 0.0);  // 2^-30 of the largest
  const Matrix blocks = rounded(numbers, CastFormat{NarrowFloat::e4m3, 32});
  EXPECT_EQ(blocks(0, 0), 1.0);
  EXPECT_NEAR(blocks(0, 63), 1e9, 1e9 / 16);  // half a step of three bits
}

// A block's largest number becomes 6 times a scale in e4m3, which is off by at most half a step of
// three bits.
TEST(Cast, ToFourBitsScalesBlocksByNumbersOfEightBits) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> number(-1, 1);
  for (int draw = 0; draw < 100; ++draw) {
    Matrix numbers(1, 32);
    for (double& x : numbers.reshaped()) x = number(random);
    numbers.rightCols(16) *= 1000;
    const Matrix row = rounded(numbers, find_precision_recipe("nvfp4")->input_cast);
    for (const int first : {0, 16}) {
      const double most = numbers.middleCols(first, 16).cwiseAbs().maxCoeff();
      const double scale = row.middleCols(first, 16).cwiseAbs().maxCoeff() / 6;
      EXPECT_NEAR(scale, most / 6, most / 6 / 16);
      for (int i = first; i < first + 16; ++i) {
        EXPECT_EQ(row(0, i), scale * nearest_of(formats()[2], numbers(0, i) / scale));
      }
    }
  }
}

TEST(Cast, LeavesWhatIsNoNumberAndNothingAsTheyAre) {
  const Matrix numbers{{std::nan(""), 1.0}};
  EXPECT_TRUE(std::isnan(rounded(numbers, CastFormat{NarrowFloat::e4m3})(0, 0)));
  EXPECT_EQ(rounded(Matrix(Matrix::Zero(2, 40)), CastFormat{NarrowFloat::e2m1, 16}).norm(), 0.0);
  EXPECT_EQ(rounded(Matrix(0, 8), CastFormat{NarrowFloat::e5m2}).size(), 0);
}

// ---- Programs -------------------------------------------------------------------------------

// Widths such that half a row still consists of whole blocks of nvfp4.
Transformer wide(Transformer model) {
  model.hidden_size = 32;
  model.head_dim = 16;
  model.ffn_size = 64;
  model.expert_ffn_size = model.experts > 0 ? 32 : 0;
  model.layers = 2;
  return model;
}

Transformer wide_moe() {
  Transformer model = wide(tiny_moe());
  model.shared_experts = 1;
  model.shared_expert_ffn_size = 32;
  return model;
}

Transformer wide_latent() {
  Transformer model = wide(tiny_latent());
  model.latent_attention = {.query_rank = 32,
                            .kv_rank = 16,
                            .nope_head_dim = 16,
                            .rope_head_dim = 16,
                            .value_head_dim = 16};
  return model;
}

Training training_in(std::string_view recipe) {
  Training training = tiny_training();
  training.precision = *find_precision_recipe(recipe);
  return training;
}

PlanRequest degrees(int tensor, int pipeline, int data) {
  PlanRequest request;
  request.tensor_parallel = tensor;
  request.sequence_parallel = tensor > 1;
  request.pipeline_parallel = pipeline;
  request.data_parallel = data;
  return request;
}

class CastProgram : public testing::TestWithParam<const char*> {};

// The norm of the difference of all gradients, relative to their norm.
double distance(const interpreter::Outcome& found, const interpreter::Outcome& expected) {
  double difference = 0;
  double norm = 0;
  EXPECT_EQ(found.gradients.size(), expected.gradients.size());
  for (const auto& [name, gradients] : expected.gradients) {
    const auto& others = found.gradients.at(name);
    for (const auto& [place, gradient] : gradients) {
      difference += std::pow(others.at(place) - gradient, 2);
      norm += gradient * gradient;
    }
  }
  return std::sqrt(difference / norm);
}

// Half a step is 1/16 of a number in e4m3, 1/8 in e5m2, 1/4 in e2m1. A gradient is a sum of many
// products of such numbers, through some layers.
double one_rounding(std::string_view recipe) { return recipe == "nvfp4" ? 0.6 : 0.2; }

TEST_P(CastProgram, OfOneRankIsNearTheOneThatDoesNotCast) {
  for (const Transformer& model : {wide(tiny_gpt(false)), wide_moe(), wide_latent()}) {
    const auto exact = run_lowered(tiny_setting(model, training_in("bf16"), unsharded(2)));
    const auto cast = run_lowered(tiny_setting(model, training_in(GetParam()), unsharded(2)));
    EXPECT_LT(distance(cast, exact), one_rounding(GetParam()));
    EXPECT_GT(distance(cast, exact), 0.01);  // it did cast
    EXPECT_NEAR(cast.loss, exact.loss, 0.05 * exact.loss);
  }
}

TEST_P(CastProgram, IsTheUnshardedOneOnEveryDegree) {
  for (const auto& [t, p, d] : {std::tuple{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 2}}) {
    for (const bool gathers_casts : {false, true}) {
      for (const bool sequence_parallel : {false, true}) {
        Training training = training_in(GetParam());
        training.stack.quantised_gathers = gathers_casts;
        training.stack.quantised_activation_input = gathers_casts;
        training.stack.copies_sharded_sequences = gathers_casts;
        PlanRequest request = degrees(t, p, d);
        const bool sp = sequence_parallel && t > 1;
        request.sequence_parallel = sp;
        const std::string what = fmt::format("t {} p {} D {} sp {}: ", t, p, d, sp);
        expect_equivalent(tiny_setting(wide(tiny_gpt(true)), training, request), what, 3);
        if (t == 1) expect_equivalent(tiny_setting(wide_latent(), training, request), what, 4);
      }
    }
  }
}

// The gradient of a latent vector is summed over the ranks only with that of the layer's input.
// Until then each rank casts its own part of it, and each part is rounded alone.
TEST_P(CastProgram, OfLatentAttentionOnTensorRanksIsAsNearAsOneRounding) {
  const Training training = training_in(GetParam());
  const auto whole = run_lowered(tiny_setting(wide_latent(), training, unsharded(1)));
  for (const bool sequence_parallel : {false, true}) {
    PlanRequest request = degrees(2, 1, 2);
    request.sequence_parallel = sequence_parallel;
    const auto sharded = run_lowered(tiny_setting(wide_latent(), training, request));
    ASSERT_EQ(sharded.stuck, "");
    EXPECT_NEAR(sharded.loss, whole.loss, 1e-5 * whole.loss);  // forward is the same
    EXPECT_LT(distance(sharded, whole), one_rounding(GetParam()));
  }
}

TEST_P(CastProgram, OfExpertsIsTheUnshardedOne) {
  for (const bool aligned : {false, true}) {
    for (const auto& [expert, expert_tensor] : {std::pair{2, 1}, {4, 1}, {2, 2}}) {
      Training training = training_in(GetParam());
      training.stack.quantised_gathers = true;
      training.stack.expert_padding = aligned;
      PlanRequest request = degrees(2, 1, 2);
      request.expert_parallel = expert;
      request.expert_tensor_parallel = expert_tensor;
      expect_equivalent(tiny_setting(wide_moe(), training, request),
                        fmt::format("e {} e_t {}: ", expert, expert_tensor), 5);
    }
  }
}

TEST_P(CastProgram, IsTheUnshardedOneUnderEveryScheduleAndShardedOrRepeated) {
  for (const Schedule* schedule : schedules()) {
    for (const int zero_stage : {1, 3}) {
      Training training = training_in(GetParam());
      training.stack.quantised_gathers = true;
      PlanRequest request = degrees(2, 2, 2);
      request.schedule = schedule->name;
      request.virtual_stages = schedule->needs_chunks ? 2 : 1;
      request.zero_stage = zero_stage;
      request.overlap = {.tensor_parallel = true, .pipeline = true, .data_parallel = true};
      if (zero_stage == 3) request.recompute.mode = RecomputeMode::full;
      Transformer model = wide(tiny_llama(false));
      model.layers = 4;
      expect_equivalent(tiny_setting(model, training, request), std::string(schedule->name), 6);
    }
  }
}

TEST_P(CastProgram, OverContextRanksIsTheUnshardedOne) {
  for (const auto algorithm :
       {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
    PlanRequest request = degrees(1, 1, 1);
    request.context_parallel = 2;
    request.context_parallel_algorithm = algorithm;
    expect_equivalent(tiny_setting(wide(tiny_llama(true)), training_in(GetParam()), request), "",
                      7);
  }
}

INSTANTIATE_TEST_SUITE_P(In, CastProgram, testing::Values("fp8", "mxfp8", "nvfp4"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace trainyard
