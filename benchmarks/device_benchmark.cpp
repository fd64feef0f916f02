// Compares the CUDA backend's kernels with what the device can do, on the first GPU: memory-bound
// kernels with a copy, matrix products with cuBLASLt called alone, attention in TFLOP/s. Shapes are
// those of Llama-3.1-8B's layers on 8192 tokens. The figures are for docs/performance.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>

#include "executor/cuda/cuda_backend.h"
#include "executor/cuda/cudnn_attention.h"
#include "executor/cuda/device_clock.h"
#include "executor/cuda/gemm.h"
#include "executor/cuda/kernels/kernels.h"
#include "model/median.h"

namespace trainyard {
namespace {

constexpr std::int64_t kTokens = 8192, kHidden = 4096, kFfn = 14336, kWords = 32000;
constexpr std::int64_t kHeadWidth = 128, kKvWidth = 1024;
constexpr std::int64_t kParameters = std::int64_t{1} << 28;  // of an optimizer's step
constexpr Seconds kEach(0.15);

double bytes(const View& view) { return static_cast<double>(view.bytes()); }

class MemoryBound {
 public:
  explicit MemoryBound(DeviceClock& clock) : clock_(clock), to_(clock.queue()) {}

  void run() {
    copies();
    rows_of_tokens();
    experts();
    norms();
    rotary();
    activations();
    ends();
    updates();
    eight_bits();
  }

 private:
  // `moved`: bytes that are read once and written once, in all.
  void report(const char* name, double moved, const std::function<void()>& work) {
    const double rate = moved / clock_.time_of(work, kEach).median.value();
    if (copy_ == 0) copy_ = rate;
    fmt::print("{:<26} {:9.1f} us {:8.0f} GB/s {:6.0f} %\n", name, 1e6 * moved / rate, 1e-9 * rate,
               100 * rate / copy_);
  }
  // For kernels that move almost no bytes.
  void report_time(const char* name, const std::function<void()>& work) {
    fmt::print("{:<26} {:9.1f} us\n", name, 1e6 * clock_.time_of(work, kEach).median.value());
  }
  Scratch noise(std::int64_t rows, std::int64_t columns, ElementType type = ElementType::bf16) {
    return {to_, rows, columns, type};
  }

  void copies() {
    const Scratch from(to_, kParameters, 1, ElementType::f32),
        into(to_, kParameters, 1, ElementType::f32), half(to_, kParameters, 1, ElementType::bf16);
    clock_.make_noise(*from);
    report("copy", 2 * bytes(*from), [&] { convert(to_, *into, *from); });
    report("fp32 to bf16", bytes(*from) + bytes(*half), [&] { convert(to_, *half, *from); });
    report("fill", bytes(*into), [&] { fill(to_, *into, 0); });
  }

  void rows_of_tokens() {
    const Scratch a = noise(kTokens, kHidden), b = noise(kTokens, kHidden),
                  out = noise(kTokens, kHidden), bias = noise(kHidden, 1),
                  wide = noise(kTokens, kFfn), sums(to_, kFfn, 1, ElementType::f32),
                  mask(to_, kTokens, kHidden, ElementType::u8);
    for (const Scratch* of : {&a, &b, &bias, &wide}) clock_.make_noise(**of);
    fill(to_, *sums, 0);
    const double each = bytes(*a);
    const Dropout dropped{.seed = 1, .rate = 0.1, .kept = 1 / 0.9F, .places = {.part = kTokens}};
    report("sum of two", 3 * each, [&] { add(to_, *out, *a, *b); });
    report("residual with bias", 3 * each,
           [&] { residual(to_, *out, *a, *b, &*bias, nullptr, {}); });
    report("residual with dropout", 3.5 * each,
           [&] { residual(to_, *out, *a, *b, nullptr, &*mask, dropped); });
    report("dropout gradient", 2.5 * each,
           [&] { drop_gradient(to_, *out, *a, *mask, dropped.kept); });
    report("column sums", bytes(*wide), [&] { add_column_sums(to_, *sums, *wide); });
  }

  // Two copies of each token, ordered by randomly chosen experts.
  void experts() {
    constexpr std::int64_t kCopies = 2 * kTokens;
    std::vector<std::int64_t> copies(kCopies);
    std::iota(copies.begin(), copies.end(), 0);
    std::stable_sort(copies.begin(), copies.end(),
                     [](std::int64_t a, std::int64_t b) { return expert_of(a) < expert_of(b); });
    std::vector<float> copy_of_place(kCopies), place_of_copy(kCopies);  // integers' bits
    for (int place = 0; place < kCopies; ++place) {
      const std::int64_t copy = copies[static_cast<std::size_t>(place)];
      copy_of_place[static_cast<std::size_t>(place)] = std::bit_cast<float>(static_cast<int>(copy));
      place_of_copy[static_cast<std::size_t>(copy)] = std::bit_cast<float>(place);
    }
    const Scratch tokens = noise(kTokens, kHidden), rows = noise(kCopies, kHidden),
                  to(to_, kCopies, 1, ElementType::f32), back(to_, kTokens, 2, ElementType::f32);
    clock_.make_noise(*tokens);
    upload(*to, copy_of_place);
    upload(*back, place_of_copy);
    // A token is read once per copy; the copies lie too far apart for a cache.
    report("tokens to experts", 2 * bytes(*rows),
           [&] { gather_rows(to_, *rows, *tokens, *to, 2); });
    report("tokens from experts", bytes(*tokens) + bytes(*rows),
           [&] { unpermute(to_, *tokens, *rows, *back, {}); });
  }
  static std::uint64_t expert_of(std::int64_t copy) {
    return mixed(static_cast<std::uint64_t>(copy)) % 8;
  }
  void upload(const View& to, const std::vector<float>& numbers) {
    clock_.status().check(cudaMemcpy(to.data, numbers.data(), to.bytes(), cudaMemcpyHostToDevice),
                          "cudaMemcpy");
  }

  void norms() {
    for (const auto& [name, backward, columns] :
         {std::tuple{"norm", "norm gradient", kHidden},
          {"norm of 8192", "norm gradient of 8192", 2 * kHidden},
          {"norm of heads", "norm gradient of heads", kHeadWidth}}) {
      const std::int64_t rows = kTokens * kHidden / columns;
      const Scratch in = noise(rows, columns), dout = noise(rows, columns),
                    out = noise(rows, columns), scale = noise(1, columns),
                    gradient(to_, 1, columns, ElementType::f32);
      for (const Scratch* of : {&in, &dout, &scale}) clock_.make_noise(**of);
      fill(to_, *gradient, 0);
      report(name, 2 * bytes(*in), [&] { norm(to_, *out, *in, *scale, nullptr, false); });
      report(backward, 3 * bytes(*in), [&] {
        norm_gradient(
            to_,
            {.din = *out, .in = *in, .dout = *dout, .scale = *scale, .scale_gradient = *gradient});
      });
    }
  }

  // Runs one layer after another, so that what a cache would have kept comes from memory.
  void rotary() {
    constexpr std::int64_t kLayers = 16;
    for (const auto& [name, width] :
         {std::pair{"rotary of queries", kHidden}, {"rotary of keys", kKvWidth}}) {
      const Scratch all = noise(kLayers * kTokens, width);
      clock_.make_noise(*all);
      std::int64_t layer = 0;
      report(name, 2 * bytes(*all) / kLayers, [&] {
        const View x = all->rows_from(layer++ % kLayers * kTokens, kTokens);
        rotate(to_, x, {0, kHeadWidth, kHeadWidth, width / kHeadWidth}, {.part = kTokens}, 1);
      });
    }
  }

  void activations() {
    const Scratch in = noise(kTokens, 2 * kFfn), out = noise(kTokens, kFfn),
                  din = noise(kTokens, 2 * kFfn), dout = noise(kTokens, 2 * kFfn);
    for (const Scratch* of : {&in, &out, &dout}) clock_.make_noise(**of);
    const double each = bytes(*out);
    report("SwiGLU", 3 * each, [&] { activation(to_, *out, *in, nullptr, true); });
    report("SwiGLU gradient", 5 * each,
           [&] { activation_gradient(to_, *din, *in, *out, nullptr, nullptr, true); });
    report("GELU", 4 * each, [&] { activation(to_, *din, *in, nullptr, false); });
    report("GELU gradient", 6 * each,
           [&] { activation_gradient(to_, *din, *in, *dout, nullptr, nullptr, false); });
  }

  // Tokens drawn uniformly from the vocabulary.
  std::vector<float> words() const {
    std::vector<float> of;
    for (std::int64_t i = 0; i < kTokens; ++i) {
      of.push_back(static_cast<float>(mixed(static_cast<std::uint64_t>(i)) % kWords));
    }
    return of;
  }
  void ends() {
    const Scratch table = noise(kWords, kHidden), out = noise(kTokens, kHidden),
                  tokens(to_, kTokens, 1, ElementType::f32),
                  gradient(to_, kWords, kHidden, ElementType::f32);
    upload(*tokens, words());
    clock_.make_noise(*table);
    clock_.make_noise(*out);
    fill(to_, *gradient, 0);
    const double share = 1 - std::exp(-static_cast<double>(kTokens) / kWords);  // of words met
    report("embedding", (1 + share * kWords / kTokens) * bytes(*out),
           [&] { embedding(to_, *out, *tokens, *table, 0); });
    report("embedding gradient", bytes(*out) + 2 * share * bytes(*gradient),
           [&] { embedding_gradient(to_, *gradient, *tokens, *out, 0); });
    cross_entropy(*tokens);
  }
  void cross_entropy(const View& labels) {
    const Scratch logits = noise(kTokens, kWords), gradient = noise(kTokens, kWords),
                  largest(to_, kTokens, 1, ElementType::f32),
                  sum(to_, kTokens, 1, ElementType::f32),
                  label_logit(to_, kTokens, 1, ElementType::f32), loss(to_, 1, 1, ElementType::f32);
    clock_.make_noise(*logits);
    fill(to_, *loss, 0);
    const LocalWords all{0, kWords};
    const double each = bytes(*logits);
    report("cross-entropy max", each, [&] { cross_entropy_max(to_, *largest, *logits, all); });
    report("cross-entropy sum", each,
           [&] { cross_entropy_sum(to_, *sum, *label_logit, *logits, *largest, labels, all); });
    report_time("cross-entropy loss",
                [&] { cross_entropy_loss(to_, *loss, *largest, *sum, *label_logit, kTokens); });
    report("cross-entropy gradient", 2 * each, [&] {
      cross_entropy_gradient(to_, *gradient, *logits, *largest, *sum, labels, all, kTokens);
    });
  }

  void updates() {
    const Scratch weight(to_, kParameters, 1, ElementType::bf16),
        gradient(to_, kParameters, 1, ElementType::f32),
        states(to_, kParameters, 3, ElementType::f32), norm_squared(to_, 1, 1, ElementType::f32);
    clock_.make_noise(*weight);
    clock_.make_noise(*gradient);
    fill(to_, *states, 0.01F);
    fill(to_, *norm_squared, 1);
    const UpdateRule adamw{.moments = 2,
                           .keeps_weights = true,
                           .decays = true,
                           .clips = true,
                           .rate = 1e-3F,
                           .first = 0.9F,
                           .second = 0.95F,
                           .epsilon = 1e-8F,
                           .decay = 0.1F,
                           .first_whole = 0.1F,
                           .second_whole = 0.05F};
    report("sum of squares", bytes(*gradient),
           [&] { add_squares(to_, *norm_squared, *gradient, {}); });
    fill(to_, *norm_squared, 1);
    report("AdamW", bytes(*gradient) + 2 * bytes(*states) + bytes(*weight),
           [&] { update(to_, *weight, *gradient, *states, &*norm_squared, adamw); });
  }

  void eight_bits() {
    const Scratch in = noise(kTokens, kFfn), out(to_, kTokens, kFfn, ElementType::e4m3),
                  turned(to_, kFfn, kTokens, ElementType::e4m3);
    clock_.make_noise(*in);
    // The cast first searches the largest number.
    report("cast to e4m3", 2 * bytes(*in) + bytes(*out), [&] { cast(to_, *out, {*in}); });
    report("transpose of e4m3", 2 * bytes(*out),
           [&] { transpose(to_, *turned, *out, out->columns); });
  }

  DeviceClock& clock_;
  Queue to_;
  double copy_ = 0;  // bytes/s
};

// cuBLASLt used as its documentation says: layouts, the heuristic's choices, and the fastest of
// them.
class AloneGemm {
 public:
  AloneGemm(DeviceClock& clock, const View& x, const View& w, const View& y)
      : clock_(clock), x_(x), w_(w), y_(y), workspace_(to_, kWorkspace, 1, ElementType::u8) {
    const cublasOperation_t turned = CUBLAS_OP_T;
    const std::size_t most = kWorkspace;
    check(cublasLtCreate(&handle_));
    check(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    check(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                                         sizeof(turned)));
    check(cublasLtMatrixLayoutCreate(&a_, CUDA_R_16BF, size(w.columns), size(w.rows), w.columns));
    check(cublasLtMatrixLayoutCreate(&b_, CUDA_R_16BF, size(x.columns), size(x.rows), x.columns));
    check(cublasLtMatrixLayoutCreate(&c_, CUDA_R_16BF, size(y.columns), size(y.rows), y.columns));
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference));
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &most, sizeof(most)));
    check(cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a_, b_, c_, c_, preference, kChoices,
                                         found_.data(), &count_));
    cublasLtMatmulPreferenceDestroy(preference);
  }
  ~AloneGemm() {
    cublasLtMatrixLayoutDestroy(a_);
    cublasLtMatrixLayoutDestroy(b_);
    cublasLtMatrixLayoutDestroy(c_);
    cublasLtMatmulDescDestroy(operation_);
    cublasLtDestroy(handle_);
  }
  AloneGemm(const AloneGemm&) = delete;
  AloneGemm& operator=(const AloneGemm&) = delete;

  static constexpr int kChoices = 4;
  int choices() const { return count_; }
  double seconds(int choice, Seconds budget) {
    const float one = 1, none = 0;
    return clock_
        .time_of(
            [&] {
              check(cublasLtMatmul(handle_, operation_, &one, w_.data, a_, x_.data, b_, &none,
                                   y_.data, c_, y_.data, c_,
                                   &found_[static_cast<std::size_t>(choice)].algo, workspace_->data,
                                   kWorkspace, to_.stream));
            },
            budget)
        .median.value();
  }

 private:
  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;
  static std::uint64_t size(std::int64_t n) { return static_cast<std::uint64_t>(n); }
  void check(cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS) clock_.status().fail(cublasLtGetStatusString(status));
  }

  DeviceClock& clock_;
  Queue to_ = clock_.queue();
  View x_, w_, y_;
  Scratch workspace_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  std::array<cublasLtMatmulHeuristicResult_t, kChoices> found_{};
  int count_ = 0;
};

// Measured in turns, because a device gets slower as it warms up.
struct ProductTimes {
  std::vector<double> ours, alone;
  std::array<std::vector<double>, AloneGemm::kChoices> of_choice;

  double best_choice() const {
    double best = INFINITY;
    for (const std::vector<double>& times : of_choice) {
      if (!times.empty()) best = std::min(best, median(times));
    }
    return best;
  }
};
ProductTimes times_of_product(DeviceClock& clock, Gemm& gemm, std::int64_t n, std::int64_t k) {
  constexpr int kRounds = 7;
  const Queue to = clock.queue();
  const Scratch x(to, kTokens, k, ElementType::bf16), w(to, n, k, ElementType::bf16),
      y(to, kTokens, n, ElementType::bf16);
  clock.make_noise(*x);
  clock.make_noise(*w);
  AloneGemm alone(clock, *x, *w, *y);
  ProductTimes times;
  for (int round = 0; round < kRounds; ++round) {
    const auto ours = [&] {
      gemm.multiply(to, operand_of(*x), transposed(operand_of(*w)), operand_of(*y), false);
    };
    times.ours.push_back(clock.time_of(ours, kEach / kRounds).median.value());
    for (int choice = 0; choice < alone.choices(); ++choice) {
      const double time = alone.seconds(choice, kEach / kRounds);
      times.of_choice[static_cast<std::size_t>(choice)].push_back(time);
      if (choice == 0) times.alone.push_back(time);
    }
  }
  return times;
}

void products(DeviceClock& clock) {
  fmt::print("\n{:<26} {:>12} {:>14} {:>14} {:>12}\n", "product (bf16)", "TFLOP/s",
             "cuBLASLt alone", "its best of 4", "ours/alone");
  Gemm gemm(clock.status());
  for (const auto& [n, k] : {std::pair{kHidden, kHidden},
                             {kHidden + 2 * kKvWidth, kHidden},
                             {2 * kFfn, kHidden},
                             {kHidden, kFfn},
                             {kWords, kHidden},
                             {kTokens, kTokens}}) {
    const ProductTimes times = times_of_product(clock, gemm, n, k);
    if (!clock.status().ok()) return;
    const double flop = 2e-12 * kTokens * static_cast<double>(n) * static_cast<double>(k);
    const double ours = median(times.ours), alone = median(times.alone);
    fmt::print("{:<26} {:12.0f} {:14.0f} {:14.0f} {:12.3f}\n",
               fmt::format("{} x {} x {}", kTokens, n, k), flop / ours, flop / alone,
               flop / times.best_choice(), alone / ours);
  }
}

// FLOP of causal attention: 4 · S² · d · heads / 2 forward; backward has five products instead of
// two.
void attention_of(DeviceClock& clock, CudnnAttention& cudnn, int sequences, int kv_heads) {
  constexpr int kHeads = 32;
  const Queue to = clock.queue();
  const auto matrix = [&](int heads) {
    return Scratch(to, sequences * kTokens, heads * kHeadWidth, ElementType::bf16);
  };
  const Scratch q = matrix(kHeads), k = matrix(kv_heads), v = matrix(kv_heads),
                out = matrix(kHeads), dout = matrix(kHeads), dq = matrix(kHeads),
                dk = matrix(kv_heads), dv = matrix(kv_heads),
                statistics(to, sequences * kTokens, kHeads, ElementType::f32);
  for (const Scratch* of : {&q, &k, &v, &dout}) clock.make_noise(**of);
  AttentionPlan plan{.sequences = sequences, .heads = kHeads, .kv_heads = kv_heads};
  plan.queries.part = plan.keys.part = plan.length = kTokens;
  plan.query_width = plan.value_width = kHeadWidth;
  const AttentionOperands of{
      .queries = *q, .keys = *k, .values = *v, .output = *out, .statistics = *statistics};
  const AttentionGradients to_gradients{
      .output_gradient = *dout, .queries = *dq, .keys = *dk, .values = *dv};
  bool by_cudnn = false;
  const Seconds forward = clock
                              .time_of(
                                  [&] {
                                    by_cudnn = cudnn.forward(to, plan, of);
                                    if (!by_cudnn) attention(to, plan, of);
                                  },
                                  2 * kEach)
                              .median;
  const Seconds backward = clock
                               .time_of(
                                   [&] {
                                     if (!cudnn.backward(to, plan, of, to_gradients)) {
                                       by_cudnn = false;
                                       attention_gradient(to, plan, of, to_gradients);
                                     }
                                   },
                                   2 * kEach)
                               .median;
  const double flop = 2.0e-12 * sequences * kTokens * kTokens * kHeadWidth * kHeads;
  fmt::print("{:<26} {:12.0f} {:14.0f} {:14.0f}\n",
             fmt::format("{} x {}, {} KV heads{}", sequences, kTokens, kv_heads,
                         by_cudnn ? "" : " (our own)"),
             flop / forward.value(), 2.5 * flop / backward.value(),
             3.5 * flop / (forward + backward).value());
}

int run() {
  if (const auto missing = no_cuda_device()) {
    fmt::print(stderr, "device_benchmark: {}\n", missing->message);
    return 3;
  }
  DeviceClock clock(0);
  fmt::print("{}\n\n{:<26} {:>12} {:>13} {:>8}\n", cuda_provenance(), "bound by memory", "time",
             "rate", "of copy");
  MemoryBound(clock).run();
  products(clock);
  fmt::print("\n{:<26} {:>12} {:>14} {:>14}\n", "attention (TFLOP/s)", "forward", "backward",
             "both");
  const auto cudnn = make_cudnn_attention();
  for (const int kv_heads : {32, 8}) {
    for (const int sequences : {1, 2}) attention_of(clock, *cudnn, sequences, kv_heads);
  }
  if (clock.status().ok()) return 0;
  fmt::print(stderr, "device_benchmark: {}\n", clock.status().message());
  return 3;
}

}  // namespace
}  // namespace trainyard

int main() { return trainyard::run(); }
