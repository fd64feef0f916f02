// Compares every operation on a device with the same operation on the host. Programs of small
// networks run on both backends side by side. After each operation what it wrote is compared, and
// the device goes on from the host's numbers. The test is built twice: with CUDA, for machines with
// a GPU, and with the same kernels run on the host (tests/gpu/emulated).
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "executor/cpu/cpu_backend.h"
#include "executor/cuda/cuda_backend.h"
#include "executor/random.h"
#include "executor/rank_executor.h"
#include "model/program/lower.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

std::set<OperationKind>& compared_kinds() {
  static std::set<OperationKind> kinds;
  return kinds;
}

// The norm of the difference, relative to the norm. What is not-a-number on one side must be so on
// the other.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double apart = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) {
      norm += static_cast<double>(a[i]) * static_cast<double>(a[i]);
      continue;
    }
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    apart += d * d;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(apart) / std::max(std::sqrt(norm), 1e-12);
}

class BothBackends final : public Backend {
 public:
  BothBackends(Backend& host, Backend& device, double tolerance)
      : host_(host), device_(device), tolerance_(tolerance) {}

  void allocate(int buffer, const ProgramBuffer& what, int copies, const Lane& lane) override {
    host_.allocate(buffer, what, copies, lane);
    device_.allocate(buffer, what, copies, lane);
  }
  void release(int buffer) override {
    host_.release(buffer);
    device_.release(buffer);
  }
  void write(int buffer, const std::vector<float>& numbers) override {
    host_.write(buffer, numbers);
    device_.write(buffer, numbers);
  }
  std::vector<float> read(int buffer) override { return host_.read(buffer); }
  void clear(int buffer) override {
    host_.clear(buffer);
    device_.clear(buffer);
  }
  Bytes peak() const override { return host_.peak(); }

  Expected<void> launch(const Work& work) override {
    auto done = host_.launch(work);
    if (done) done = device_.launch(work);
    if (!done) return done;
    compared_kinds().insert(work.issued.operation->kind);
    // It only creates room.
    if (work.issued.operation->kind == OperationKind::await) return {};
    for (std::size_t i = 0; i < work.buffers.size(); ++i) {
      if (work.issued.operation->operands[i].access == Access::read) continue;
      const std::vector<float> expected = host_.read(work.buffers[i]);
      const double apart = distance(device_.read(work.buffers[i]), expected);
      EXPECT_LE(apart, tolerance_) << described(work.issued) << ", operand " << i;
      if (std::isinf(apart)) return failure("", "different shapes");
      device_.write(work.buffers[i], expected);
    }
    return {};
  }
  Expected<void> exchange(const Work& work, const GroupMembers& members) override {
    auto done = host_.exchange(work, members);
    if (done) done = device_.exchange(work, members);
    follow(work);
    return done;
  }
  Expected<void> send(const Work& work, int to) override {
    auto done = host_.send(work, to);
    return done ? device_.send(work, to) : done;
  }
  Expected<void> receive(const Work& work, int from) override {
    auto done = host_.receive(work, from);
    if (done) done = device_.receive(work, from);
    for (const int buffer : work.buffers) draw(buffer);
    follow(work);
    return done;
  }
  Expected<void> synchronise() override {
    auto done = host_.synchronise();
    return done ? device_.synchronise() : done;
  }
  Event record(const Lane& lane) override {
    host_.record(lane);
    return device_.record(lane);
  }
  void wait(const Lane& lane, Event event) override { device_.wait(lane, event); }
  Seconds between(Event first, Event second) override { return device_.between(first, second); }

 private:
  // Fills a buffer with what an absent peer would have sent: rows that differ. With equal rows the
  // gradients of queries and keys are nothing but rounding.
  void draw(int buffer) {
    std::vector<float> numbers = host_.read(buffer);
    for (float& number : numbers) number = static_cast<float>(uniform_signed(drawn_++));
    host_.write(buffer, numbers);
  }
  void follow(const Work& work) {
    for (std::size_t i = 0; i < work.buffers.size(); ++i) {
      if (work.issued.operation->operands[i].access == Access::read) continue;
      device_.write(work.buffers[i], host_.read(work.buffers[i]));
    }
  }

  Backend& host_;
  Backend& device_;
  double tolerance_;
  std::uint64_t drawn_ = 0;
};

class Nobody final : public Watch {
  void begins(std::int64_t, const IssuedOperation&) override {}
};

struct Case {
  Transformer model;
  PlanRequest request;
  Training training;
  int rank = 0;
};

Training training_in(std::string_view precision, std::string_view optimizer = "adamw") {
  Training training = tiny_training();
  training.precision = *find_precision_recipe(precision);
  training.optimizer = *find_optimizer(optimizer);
  return training;
}

// One or two roundings of the recipe's type; fp16 has three bits more than bf16.
double tolerance_in(std::string_view recipe) {
  if (recipe == "fp32") return 2e-5;
  return recipe == "fp16" ? 2e-2 / 8 : 2e-2;
}

// Runs one rank of the plan; copies of the same number of bytes replace its peers.
void expect_as_on_the_host(const Case& of) {
  Setting setting = tiny_setting(of.model, of.training, of.request);
  setting.descent = {.learning_rate = 1e-2, .momentum = 0.9, .weight_decay = 0.1};
  setting.seed = 11;
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const auto transport =
      layout.ranks() == 1 ? make_single_rank_transport() : make_stand_in_transport(layout, of.rank);
  const auto host = make_cpu_backend(setting, *program, layout, *transport);
  const auto device =
      make_cuda_backend({setting, *program, layout, *transport, layout.ranks() > 1});
  ASSERT_TRUE(device) << device.error().message;
  BothBackends both(*host, **device, tolerance_in(of.training.precision.name));
  Nobody nobody;
  RankExecutor executor(setting, *program, layout, of.rank, both, nobody);
  for (int step = 0; step < 2; ++step) {
    const auto done = executor.step(step, step, nobody);
    ASSERT_TRUE(done) << done.error().message;
  }
}

bool runs_in_8_bits(int least) {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
         major >= least;
}

PlanRequest alone() {
  PlanRequest request;
  request.data_parallel = 1;
  request.micro_batch = 2;
  return request;
}

TEST(DeviceKernels, OfDenseNetworksDoAsTheHostDoes) {
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    expect_as_on_the_host({tiny_gpt(true), alone(), training_in(precision, "sgd")});
    expect_as_on_the_host({tiny_llama(false), alone(), training_in(precision, "adamw")});
  }
  expect_as_on_the_host({tiny_llama(true), alone(), training_in("fp32", "adam")});
}

TEST(DeviceKernels, OfGradientsIn16BitsDoAsTheHostDoes) {
  for (const char* precision : {"bf16", "fp16"}) {
    Training training = training_in(precision);
    training.stack.gradient_bytes = 2;
    expect_as_on_the_host({tiny_gpt(true), alone(), training});
    expect_as_on_the_host({tiny_moe(), alone(), training});
  }
}

TEST(DeviceKernels, OfRepeatedForwardPassesAndDropoutDoAsTheHostDoes) {
  for (const bool fused : {true, false}) {
    Training training = training_in("fp32");
    training.stack.dropout = true;
    training.stack.flash_attention = fused;
    PlanRequest request = alone();
    request.recompute.mode = RecomputeMode::full;
    expect_as_on_the_host({tiny_gpt(false), request, training});
  }
}

TEST(DeviceKernels, OfExpertsDoAsTheHostDoes) {
  Transformer biased = tiny_moe();
  biased.biases = true;
  Transformer corrected = tiny_moe();
  corrected.router_correction_bias = true;
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    for (const Transformer& model : {tiny_moe(), biased, corrected}) {
      expect_as_on_the_host({model, alone(), training_in(precision)});
    }
  }
  PlanRequest dropping = alone();
  dropping.capacity_factor = 0.75;
  expect_as_on_the_host({tiny_moe(), dropping, training_in("fp32")});
}

TEST(DeviceKernels, OfLatentAttentionSinksAndWindowsDoAsTheHostDoes) {
  Transformer sinks = tiny_llama(false);
  sinks.attention_sinks = true;
  sinks.qk_norm = true;
  sinks.sliding_window = 3;
  sinks.full_attention_every = 2;
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    expect_as_on_the_host({tiny_latent(), alone(), training_in(precision)});
    expect_as_on_the_host({sinks, alone(), training_in(precision)});
  }
}

TEST(DeviceKernels, OfEveryContextAlgorithmDoAsTheHostDoes) {
  for (const auto algorithm :
       {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
    for (const int rank : {0, 1}) {
      PlanRequest request = alone();
      request.context_parallel = 2;
      request.context_parallel_algorithm = algorithm;
      expect_as_on_the_host({tiny_llama(false), request, training_in("fp32"), rank});
    }
  }
}

// Blocks of a ring whose scores are kept, merged with those before them, recomputed and freed.
TEST(DeviceKernels, OfRingsWithScoresInMemoryDoAsTheHostDoes) {
  Transformer sinks = tiny_llama(false);
  sinks.attention_sinks = true;
  sinks.sliding_window = 3;
  sinks.full_attention_every = 2;
  for (const char* precision : {"fp32", "bf16"}) {
    for (const bool dropout : {false, true}) {
      Training training = training_in(precision);
      training.stack.flash_attention = false;
      training.stack.dropout = dropout;
      training.stack.selective = SelectiveRecompute::core_attention;
      PlanRequest request = alone();
      request.context_parallel = 2;
      request.context_parallel_algorithm = ContextAlgorithm::ring;
      if (dropout) request.recompute.mode = RecomputeMode::selective;
      expect_as_on_the_host({sinks, request, training, 0});
      expect_as_on_the_host({tiny_gpt(true), request, training, 1});
    }
  }
}

TEST(DeviceKernels, OfShardedPlansDoAsTheHostDoes) {
  for (const int zero : {1, 3}) {
    PlanRequest request = alone();
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.data_parallel = 2;
    request.zero_stage = zero;
    expect_as_on_the_host({tiny_gpt(false), request, training_in("bf16"), 3});
    expect_as_on_the_host({tiny_llama(true), request, training_in("fp32"), 1});
  }
}

// Covers two states side by side and apart, own rows of gathered columns and own columns of
// gathered rows, and losses with a smaller weight.
TEST(DeviceKernels, OfMultiTokenPredictionDoAsTheHostDoes) {
  Transformer model = tiny_llama(false);
  model.mtp_layers = 2;
  for (const char* precision : {"fp32", "bf16"}) {
    expect_as_on_the_host({model, alone(), training_in(precision)});
    for (const bool sequence_parallel : {false, true}) {
      PlanRequest request = alone();
      request.tensor_parallel = 2;
      request.sequence_parallel = sequence_parallel;
      expect_as_on_the_host({model, request, training_in(precision), 1});
    }
  }
}

// Covers rows that go to experts on other ranks, and stages that hold both ends of a V.
TEST(DeviceKernels, OfRanksThatShareExpertsOrTurnDoAsTheHostDoes) {
  PlanRequest experts = alone();
  experts.data_parallel = 2;
  experts.expert_parallel = 2;
  expect_as_on_the_host({tiny_moe(), experts, training_in("fp32"), 1});
  PlanRequest turning = alone();
  turning.pipeline_parallel = 2;
  turning.schedule = "zb-v";
  expect_as_on_the_host({tiny_llama(false), turning, training_in("fp32"), 1});
}

// Heads wide enough for tensor cores, up to the widest that fit in a tile; sequences longer than a
// tile.
TEST(DeviceKernels, OfWideHeadsDoAsTheHostDoes) {
  for (const auto& [width, tokens] : {std::pair{64, 136}, {128, 72}, {256, 40}}) {
    Transformer model = tiny_llama(false);
    model.layers = 2;
    model.hidden_size = 8;
    model.attention_heads = 2;
    model.kv_heads = 1;
    model.head_dim = width;
    model.sliding_window = 100;
    model.full_attention_every = 2;
    for (const char* precision : {"bf16", "fp16"}) {
      Training training = training_in(precision, "sgd");
      training.sequence_length = tokens;
      training.global_batch = 1;
      PlanRequest request;
      request.data_parallel = 1;
      expect_as_on_the_host({model, request, training});
      if (width != 64) continue;
      request.context_parallel = 2;
      expect_as_on_the_host({model, request, training, 1});
    }
  }
}

// The network with widths that GEMMs in 8 bits accept.
Transformer wide(Transformer model) {
  model.hidden_size = 64;
  model.attention_heads = 4;
  model.head_dim = 16;
  model.ffn_size = 96;
  return model;
}

// Casts round in the same way on both sides. Sums of a forward pass keep about 14 bits on a GPU
// (DeepSeek-V3, arXiv 2412.19437, 3.3.2). Over the 96 terms that are summed here, the error is
// smaller than the rounding to bf16 that follows.
TEST(DeviceKernels, OfRecipesIn8BitsDoAsTheHostDoes) {
  if (!runs_in_8_bits(9)) GTEST_SKIP() << "needs compute capability 9.0";
  for (const Transformer& model :
       {tiny_llama(true), wide(tiny_llama(true)), wide(tiny_gpt(false))}) {
    expect_as_on_the_host({model, alone(), training_in("fp8")});
  }
  Transformer experts = wide(tiny_moe());
  experts.expert_ffn_size = 32;
  expect_as_on_the_host({experts, alone(), training_in("fp8")});
  PlanRequest sharded = alone();
  sharded.tensor_parallel = 2;
  sharded.sequence_parallel = true;
  for (const bool casts_first : {true, false}) {
    Training training = training_in("fp8");
    training.stack.quantised_gathers = casts_first;
    Transformer model = wide(tiny_llama(false));
    expect_as_on_the_host({model, sharded, training, 1});
    model.mtp_layers = 1;
    expect_as_on_the_host({model, sharded, training, 1});
  }
}

TEST(DeviceKernels, OfBlockScaledRecipesDoAsTheHostDoes) {
  if (!runs_in_8_bits(10)) GTEST_SKIP() << "needs compute capability 10.0";
  Transformer model = wide(tiny_llama(true));
  model.head_dim = 32;
  model.ffn_size = 128;
  expect_as_on_the_host({model, alone(), training_in("mxfp8")});
}

// Activations that go to the host and come back, also in 8 bits, and states that stay there.
TEST(DeviceKernels, OfWhatLiesOnTheHostDoAsTheHostDoes) {
  PlanRequest request = alone();
  request.offload = {.optimizer = OffloadTarget::host, .activations = OffloadTarget::host};
  expect_as_on_the_host({tiny_llama(false), request, training_in("bf16")});
  if (runs_in_8_bits(9)) {
    expect_as_on_the_host({wide(tiny_llama(false)), request, training_in("fp8")});
  }
  request.data_parallel = 2;
  request.zero_stage = 1;
  expect_as_on_the_host({tiny_gpt(false), request, training_in("fp32", "adam"), 1});
  request.offload.optimizer = OffloadTarget::none;
  request.data_parallel = 1;
  expect_as_on_the_host({tiny_moe(), request, training_in("fp32")});
}

TEST(DeviceKernels, OfEveryKindWereCompared) {
  for (int kind = 0; kind < static_cast<int>(OperationKind::all_reduce); ++kind) {
    const auto of = static_cast<OperationKind>(kind);
    // Kinds that only occur in recipes and plans that a GPU does not run.
    if (of == OperationKind::cast && !runs_in_8_bits(9)) continue;
    EXPECT_EQ(compared_kinds().count(of), 1U) << name_of(of);
  }
}

}  // namespace
}  // namespace trainyard
