// Products in 8 bits of every layout, compared with sums of the host's roundings
// (executor/cpu/kernels). Also: how many shapes are remembered, and the order of heads that cuDNN
// uses.
#include <gtest/gtest.h>

#include <cmath>

#include "executor/cuda/compute.h"
#include "executor/random.h"

namespace trainyard {
namespace {

class NarrowGemm : public testing::Test {
 protected:
  void SetUp() override {
    int major = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    if (major < 9) GTEST_SKIP() << "needs compute capability 9.0";
    blocks_ = major >= 10;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override { cudaStreamDestroy(stream_); }

  static Tensor<float> noise(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
    Tensor<float> numbers(rows, columns);
    for (Eigen::Index i = 0; i < numbers.size(); ++i) {
      numbers.data()[i] =
          static_cast<float>(uniform_signed(mixed(seed) + static_cast<std::uint64_t>(i)) - 0.5);
    }
    return numbers;
  }

  // The tolerance relative to Σ |products|. NVIDIA does not say with how many bits tensor cores add
  // products in 8 bits. Without CUBLASLT_MATMUL_DESC_FAST_ACCUM, as here, intermediate results are
  // promoted "periodically" (cublasLt.h). So the bound is chosen such that an error shows: rounding
  // one average product of the most that are summed here once more to e4m3 moves the sum by 2^-4 /
  // 192 = 1/3072 of it. Sums in float lose at most 192 · 2^-24.
  static constexpr double kLost = 1.0 / 4096;

  struct Layout {
    Eigen::Index rows = 0, summed = 0, columns = 0;
    bool a_transposed = false, b_transposed = true;
  };

  void expect_sums(const Layout& of, ElementType left, ElementType right, int block) {
    CudaStatus status;
    DeviceMemory memory(status, 0, 1);
    Gemm gemm(status);
    const Queue queue{status, stream_, memory.pool()};
    const Tensor<float> a =
        of.a_transposed ? noise(of.summed, of.rows, 1) : noise(of.rows, of.summed, 1);
    const Tensor<float> b =
        of.b_transposed ? noise(of.columns, of.summed, 2) : noise(of.summed, of.columns, 2);
    const Scratch on_left(queue, a.rows(), a.cols(), left, block),
        on_right(queue, b.rows(), b.cols(), right, block),
        sum(queue, of.rows, of.columns, ElementType::f32);
    upload(queue, *on_left, {a.data(), a.data() + a.size()});
    upload(queue, *on_right, {b.data(), b.data() + b.size()});
    fill(queue, *sum, 1);
    GemmOperand x = operand_of(*on_left), y = operand_of(*on_right);
    x.transposed = of.a_transposed;
    y.transposed = of.b_transposed;
    gemm.multiply(queue, x, y, operand_of(*sum), true);
    const std::vector<float> found = downloaded(queue, *sum);
    ASSERT_TRUE(status.ok()) << status.message();
    const Tensor<float> p = rounded(a, format_of(left, block)),
                        q = rounded(b, format_of(right, block));
    for (Eigen::Index row = 0; row < of.rows; ++row) {
      for (Eigen::Index column = 0; column < of.columns; ++column) {
        double expected = 1, magnitude = 1;
        for (Eigen::Index k = 0; k < of.summed; ++k) {
          const double product = static_cast<double>(of.a_transposed ? p(k, row) : p(row, k)) *
                                 static_cast<double>(of.b_transposed ? q(column, k) : q(k, column));
          expected += product;
          magnitude += std::abs(product);
        }
        ASSERT_NEAR(static_cast<double>(found[static_cast<std::size_t>(row * of.columns + column)]),
                    expected, magnitude * kLost)
            << row << ", " << column;
      }
    }
  }

  static CastFormat format_of(ElementType type, int block) {
    return {type == ElementType::e4m3 ? NarrowFloat::e4m3 : NarrowFloat::e5m2, block};
  }

  cudaStream_t stream_ = nullptr;
  bool blocks_ = false;
};

// The layouts of a layer's three GEMMs, with a number of tokens that is a multiple of 16 and one
// that is not.
TEST_F(NarrowGemm, SumsWhatACastLeavesInEveryLayout) {
  for (const Eigen::Index tokens : {32, 37}) {
    expect_sums({tokens, 48, 32}, ElementType::e4m3, ElementType::e4m3, 0);
    expect_sums({tokens, 48, 32, false, false}, ElementType::e5m2, ElementType::e4m3, 0);
    expect_sums({48, tokens, 32, true, false}, ElementType::e5m2, ElementType::e4m3, 0);
  }
}

// The library accepts neither widths that are no multiple of 16 nor two operands in e5m2.
TEST_F(NarrowGemm, SumsWhatTheLibraryDoesNotTake) {
  expect_sums({5, 12, 32}, ElementType::e4m3, ElementType::e4m3, 0);
  expect_sums({16, 32, 7}, ElementType::e4m3, ElementType::e4m3, 0);
  expect_sums({16, 32, 16}, ElementType::e5m2, ElementType::e5m2, 0);
}

// More rows than a tile of scales has, and more blocks.
TEST_F(NarrowGemm, SumsBlocksInEveryLayout) {
  if (!blocks_) GTEST_SKIP() << "needs compute capability 10.0";
  constexpr auto type = ElementType::e4m3;
  expect_sums({160, 192, 32}, type, type, 32);
  expect_sums({160, 192, 32, false, false}, type, type, 32);
  expect_sums({64, 160, 32, true, false}, type, type, 32);
  expect_sums({64, 8, 32, true, false}, type, type, 32);
}

// Layouts of a single row that differ in the distance between rows.
TEST(GemmChoices, AreForgottenBeforeTheyFillTheHost) {
  constexpr int kLayouts = 5000;
  CudaStatus status;
  DeviceMemory memory(status, 0, 1);
  Gemm gemm(status);
  const Queue queue{status, nullptr, memory.pool()};
  const Scratch one(queue, 1, 1, ElementType::f32), sum(queue, 1, 1, ElementType::f32);
  fill(queue, *one, 1);
  fill(queue, *sum, 0);
  for (int leading = 1; leading <= kLayouts; ++leading) {
    GemmOperand apart = operand_of(*one);
    apart.leading = leading;
    gemm.multiply(queue, apart, operand_of(*one), operand_of(*sum), true);
  }
  EXPECT_EQ(downloaded(queue, *sum).front(), kLayouts);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_GT(gemm.remembered(), 0U);
  EXPECT_LE(gemm.remembered(), Gemm::kMostRemembered);
  EXPECT_LT(Gemm::kMostRemembered, std::size_t{kLayouts});
}

constexpr std::int64_t kTokens = 80, kWidth = 64;  // two tiles of queries of one head

std::vector<float> in_eighths(std::uint64_t seed) {
  std::vector<float> numbers(static_cast<std::size_t>(kTokens * kWidth));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = std::round(static_cast<float>(uniform_signed(mixed(seed) + i) * 8)) / 8;
  }
  return numbers;
}

double number_of(const std::vector<float>& of, std::int64_t row, std::int64_t column) {
  return static_cast<double>(of[static_cast<std::size_t>(row * kWidth + column)]);
}

struct AttentionInputs {
  std::vector<float> q = in_eighths(1), k = in_eighths(2), v = in_eighths(3);
};

// Attention on tensor cores; empty if they do not take these types.
std::vector<float> attended(const AttentionInputs& in, ElementType type, ElementType of_keys) {
  CudaStatus status;
  DeviceMemory memory(status, 0, 1);
  const Queue queue{status, nullptr, memory.pool()};
  const Scratch q(queue, kTokens, kWidth, type), k(queue, kTokens, kWidth, of_keys),
      v(queue, kTokens, kWidth, type), out(queue, kTokens, kWidth, type),
      log_sums(queue, kTokens, 1, ElementType::f32);
  upload(queue, *q, in.q);
  upload(queue, *k, in.k);
  upload(queue, *v, in.v);
  fill(queue, *out, 0);
  AttentionPlan plan{.heads = 1, .kv_heads = 1};
  plan.queries.part = plan.keys.part = plan.length = kTokens;
  plan.query_width = plan.value_width = kWidth;
  const bool taken = tensor_attention(
      queue, plan,
      {.queries = *q, .keys = *k, .values = *v, .output = *out, .statistics = *log_sums});
  EXPECT_TRUE(status.ok()) << status.message();
  return taken ? downloaded(queue, *out) : std::vector<float>();
}

// The largest distance of a query's numbers from sums in double, relative to the magnitude of what
// is summed.
double farthest(const AttentionInputs& in, const std::vector<float>& found, std::int64_t row) {
  std::vector<double> weights;
  double sum = 0, most = 0;
  for (std::int64_t key = 0; key <= row; ++key) {
    double score = 0;
    for (std::int64_t i = 0; i < kWidth; ++i) {
      score += number_of(in.q, row, i) * number_of(in.k, key, i);
    }
    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(kWidth))));
    sum += weights.back();
  }
  for (std::int64_t column = 0; column < kWidth; ++column) {
    double expected = 0, magnitude = 0;
    for (std::int64_t key = 0; key <= row; ++key) {
      const double part =
          weights[static_cast<std::size_t>(key)] / sum * number_of(in.v, key, column);
      expected += part;
      magnitude += std::abs(part);
    }
    if (magnitude == 0) continue;
    most = std::max(most, std::abs(number_of(found, row, column) - expected) / magnitude);
  }
  return most;
}

// A number of the type is off by at most half its last bit: 2^-8 for bf16, 2^-11 for fp16, relative
// to itself. The probabilities and the sum are rounded once each; the inputs are numbers of the
// type.
TEST(TensorAttention, TakesBothTypesOf16Bits) {
  const AttentionInputs in;
  for (const auto& [type, bits] : {std::pair{ElementType::bf16, 8}, {ElementType::f16, 11}}) {
    const std::vector<float> found = attended(in, type, type);
    ASSERT_FALSE(found.empty());
    for (std::int64_t row = 0; row < kTokens; ++row) {
      EXPECT_LE(farthest(in, found, row), 2 * std::ldexp(1.0, -bits) + 1e-5) << bits << ", " << row;
    }
  }
  EXPECT_TRUE(attended(in, ElementType::f32, ElementType::f32).empty());
  EXPECT_TRUE(attended(in, ElementType::bf16, ElementType::f16).empty());
}

// Two sequences of three tokens and two heads, laid out like cuDNN's log-sum-exps.
TEST(HeadOrder, IsThatOfSequencesThenHeadsThenTokens) {
  CudaStatus status;
  DeviceMemory memory(status, 0, 1);
  const Queue queue{status, nullptr, memory.pool()};
  const Scratch tokens(queue, 6, 2, ElementType::f32), heads(queue, 6, 2, ElementType::f32),
      back(queue, 6, 2, ElementType::f32);
  const std::vector<float> by_token = {0, 10, 1, 11, 2, 12, 100, 110, 101, 111, 102, 112};
  upload(queue, *tokens, by_token);
  to_heads(queue, *heads, *tokens, 3);
  EXPECT_EQ(downloaded(queue, *heads),
            (std::vector<float>{0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112}));
  from_heads(queue, *back, *heads, 3);
  EXPECT_EQ(downloaded(queue, *back), by_token);
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace trainyard
