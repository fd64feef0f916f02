#include "executor/cuda/device_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "executor/cuda/cudnn_attention.h"
#include "executor/cuda/device_clock.h"
#include "executor/cuda/gemm.h"
#include "executor/cuda/kernels/kernels.h"
#include "model/calibration/fit_attention.h"

namespace trainyard {
namespace {

constexpr std::array<int, 6> kRows = {128, 512, 1024, 2048, 4096, 8192};
constexpr std::array<int, 4> kWidths = {1024, 4096, 8192, 14336};
constexpr std::array<int, 5> kTokens = {512, 1024, 2048, 4096, 8192};
constexpr std::array<int, 4> kHeads = {8, 16, 32, 64};
constexpr std::array<int, 2> kHeadDims = {64, 128};
static_assert(kTokens.size() * kHeads.size() >= kLeastAttentionSamples);  // of each width
// The least that the fits need, whatever the time limit: 60 products of a type (fit_gemm), the
// cheap ones.
constexpr bool is_needed(int n, int k) { return std::int64_t{n} * k <= std::int64_t{4096} * 8192; }
constexpr double kAttentionPart = 2;  // in units of one timing
constexpr int kTrafficSizes = 9;      // from 16 Ki elements, four times as many each
// How long products run one after the other: long enough for the device's clock to come down to
// what its power allows.
constexpr Seconds kSustained(5);
constexpr double kSustainedShare = 0.1;  // largest share of the budget; share of the progress
constexpr std::int64_t kCopied = std::int64_t{1} << 28;
constexpr std::int64_t kBrought = std::int64_t{1} << 28;  // bytes, from the host

// Page-locked memory of the host, which the device reads by itself.
class HostMemory {
 public:
  HostMemory(CudaStatus& status, std::size_t bytes) {
    status.check(cudaMallocHost(&data_, bytes), "cudaMallocHost");
  }
  ~HostMemory() {
    if (data_ != nullptr) cudaFreeHost(data_);
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  const void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

class DeviceMeasurement {
 public:
  // `narrow`: the device multiplies in 8 bits.
  DeviceMeasurement(const MeasureLimits& limits, int device, bool narrow)
      : limits_(limits), clock_(device), gemm_(clock_.status()) {
    if (narrow) types_.push_back(ElementType::e4m3);
    all_ = static_cast<double>(types_.size() * kRows.size() * kWidths.size() * kWidths.size() +
                               kTrafficSizes + 2) +
           kAttentionPart * kTokens.size() * kHeads.size() * kHeadDims.size();
    sustained_ = std::min(kSustained, kSustainedShare * limits.budget);
    each_ = (limits.budget - sustained_) / all_;
  }
  DeviceMeasurement(const DeviceMeasurement&) = delete;
  DeviceMeasurement& operator=(const DeviceMeasurement&) = delete;

  Expected<HostSamples> run() {
    add(1, true, [&] { samples_.copy = copy_rate(); });
    add(1, true, [&] { link_ = host_rate(); });
    for (const ElementType type : types_) measure_gemm(type);
    std::vector<double> backward;
    for (const int head_dim : kHeadDims) {
      for (const int tokens : kTokens) {
        for (const int heads : kHeads) {
          add(kAttentionPart, true, [&] { attention_times(tokens, heads, head_dim, backward); });
        }
      }
    }
    for (int size = 0; size < kTrafficSizes; ++size) {
      add(1, true, [&] { samples_.traffic.push_back(traffic(std::int64_t{16384} << (2 * size))); });
    }
    measure_sustained();
    std::sort(backward.begin(), backward.end());
    if (!backward.empty()) samples_.attention_backward = backward[backward.size() / 2];
    if (!clock_.status().ok()) return failure("", clock_.status().message());
    return std::move(samples_);
  }
  BytesPerSecond link() const { return link_; }

 private:
  void measure_gemm(ElementType type) {
    for (const int m : kRows) {
      for (const int n : kWidths) {
        for (const int k : kWidths) {
          add(1, is_needed(n, k) || is_largest(m, n, k),
              [&] { samples_.gemm.push_back(gemm(type, m, n, k)); });
        }
      }
    }
  }

  static bool is_largest(int m, int n, int k) {
    return m == kRows.back() && n == kWidths.back() && k == kWidths.back();
  }

  // Runs the largest product again, for seconds like steps of a training run: the bursts in which
  // it was measured before end before the device's power is at its limit.
  void measure_sustained() {
    constexpr int kInARow = 10;
    const double m = kRows.back(), n = kWidths.back();
    const auto burst = std::ranges::find_if(samples_.gemm, [&](const GemmSample& of) {
      return of.dtype == Dtype::bf16 && of.shape.m == m && of.shape.n == n && of.shape.k == n;
    });
    if (burst == samples_.gemm.end()) return;
    const Product product(*this, ElementType::bf16, kRows.back(), kWidths.back(), kWidths.back());
    std::vector<double> times;
    const auto start = TimingClock::now();
    while (seconds_since(start) < sustained_.value() && !limits_.interrupted() &&
           clock_.status().ok()) {
      times.push_back(clock_.run_of([&] { product.multiply(); }, kInARow));
      const double part = std::min(1.0, Seconds(seconds_since(start)) / sustained_);
      limits_.progress(1 - kSustainedShare + kSustainedShare * part);
    }
    if (times.empty()) return;
    times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
    const Timing timing = timing_of(times);
    samples_.points.push_back({"GEMM for seconds", fmt::format("bf16 {}x{}x{}", m, n, n), timing});
    samples_.sustained_clock = std::min(1.0, burst->time / timing.median);
  }

  // Once earlier timings have used more than their share of the time, measures only what is needed.
  template <typename Measure>
  void add(double part, bool needed, const Measure& measure) {
    if (limits_.interrupted() || !clock_.status().ok()) return;
    if (needed || Seconds(seconds_since(begin_)) <= done_ * each_) measure();
    done_ += part;
    limits_.progress((1 - kSustainedShare) * done_ / all_);
  }

  // The time of one of the `pieces` that a call of `work` has.
  template <typename Work>
  Seconds time_of(std::string_view family, std::string what, const Work& work, int pieces = 1) {
    Timing timing = clock_.time_of(work, each_);
    timing.median = timing.median / pieces;
    timing.deviation = timing.deviation / pieces;
    samples_.points.push_back({std::string(family), std::move(what), timing});
    return timing.median;
  }

  BytesPerSecond copy_rate() {
    const Queue to = clock_.queue();
    const Scratch from(to, kCopied, 1, ElementType::f32), into(to, kCopied, 1, ElementType::f32);
    const Seconds time =
        time_of("copy", fmt::format("{} bytes", from->bytes()), [&] { convert(to, *into, *from); });
    return Bytes(2.0 * static_cast<double>(from->bytes())) / time;
  }

  BytesPerSecond host_rate() {
    const Queue to = clock_.queue();
    const Scratch into(to, kBrought, 1, ElementType::u8);
    const HostMemory from(clock_.status(), into->bytes());
    const Seconds time = time_of("copy from the host", fmt::format("{} bytes", into->bytes()), [&] {
      clock_.status().check(cudaMemcpyAsync(into->data, from.data(), into->bytes(),
                                            cudaMemcpyHostToDevice, to.stream),
                            "cudaMemcpyAsync");
    });
    return Bytes(static_cast<double>(into->bytes())) / time;
  }

  // y [m × n] = x [m × k] · wᵀ of noise. In 8 bits these are three products, as a layer has them:
  // forward, and with w or with both operands across, as the gradients have them. The latter are
  // transposed first and summed with full precision.
  struct Product {
    Product(DeviceMeasurement& by, ElementType type, std::int64_t m, std::int64_t n, std::int64_t k)
        : gemm(by.gemm_),
          to(by.clock_.queue()),
          x(to, m, k, type),
          w(to, n, k, type),
          y(to, m, n, is_scaled(type) ? ElementType::bf16 : type),
          pieces(is_scaled(type) ? 3 : 1) {
      by.clock_.make_noise(*x);
      by.clock_.make_noise(*w);
    }
    void multiply() const {
      gemm.multiply(to, operand_of(*x), transposed(operand_of(*w)), operand_of(*y), false,
                    pieces > 1);
      if (pieces == 1) return;
      const GemmOperand w_across = operand_of(w->shaped(w->columns, w->rows));
      const GemmOperand x_across = operand_of(x->shaped(x->columns, x->rows));
      gemm.multiply(to, operand_of(*x), w_across, operand_of(*y), false);
      gemm.multiply(to, transposed(x_across), w_across, operand_of(*y), false);
    }
    Gemm& gemm;
    Queue to;
    Scratch x, w, y;
    int pieces;
  };

  GemmSample gemm(ElementType type, std::int64_t m, std::int64_t n, std::int64_t k) {
    const Product product(*this, type, m, n, k);
    const Dtype dtype = is_scaled(type)            ? Dtype::fp8
                        : type == ElementType::f32 ? Dtype::fp32
                                                   : Dtype::bf16;
    const Seconds time = time_of(
        "GEMM", fmt::format("{} {}x{}x{}", name_of(dtype), m, n, k), [&] { product.multiply(); },
        product.pieces);
    return {.dtype = dtype,
            .shape = {static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)},
            .time = time,
            .with_cast = false};
  }

  void attention_times(int tokens, int heads, int head_dim, std::vector<double>& backward) {
    const Queue to = clock_.queue();
    const std::int64_t width = std::int64_t{heads} * head_dim;
    const auto type = ElementType::bf16;
    const Scratch q(to, tokens, width, type), k(to, tokens, width, type),
        v(to, tokens, width, type), out(to, tokens, width, type), dout(to, tokens, width, type),
        dq(to, tokens, width, type), dk(to, tokens, width, type), dv(to, tokens, width, type),
        statistics(to, tokens, heads, ElementType::f32);
    for (const Scratch* of : {&q, &k, &v, &dout}) clock_.make_noise(**of);
    AttentionPlan plan{.heads = heads, .kv_heads = heads};
    plan.queries.part = plan.keys.part = plan.length = tokens;
    plan.query_width = plan.value_width = head_dim;
    const AttentionOperands of{
        .queries = *q, .keys = *k, .values = *v, .output = *out, .statistics = *statistics};
    const std::string what = fmt::format("{} tokens, {} heads of {}", tokens, heads, head_dim);
    const Seconds forward = time_of("attention", "forward " + what, [&] {
      if (!cudnn_->forward(to, plan, of)) attention(to, plan, of);
    });
    AttentionGradients gradients{
        .output_gradient = *dout, .queries = *dq, .keys = *dk, .values = *dv};
    const Seconds back = time_of("attention", "backward " + what, [&] {
      if (!cudnn_->backward(to, plan, of, gradients)) attention_gradient(to, plan, of, gradients);
    });
    backward.push_back(back / forward);
    const double count = tokens, d = head_dim;
    samples_.attention.push_back({Dtype::bf16,
                                  {.batch = 1,
                                   .heads = static_cast<double>(heads),
                                   .kv_heads = static_cast<double>(heads),
                                   .queries = count,
                                   .keys = count,
                                   .query_head_dim = d,
                                   .value_head_dim = d},
                                  forward});
  }

  // The sum of two arrays: reads both and writes one.
  TrafficSample traffic(std::int64_t elements) {
    const Queue to = clock_.queue();
    const std::int64_t columns = 1024;
    const auto type = ElementType::bf16;
    const Scratch a(to, elements / columns, columns, type),
        b(to, elements / columns, columns, type), sum(to, elements / columns, columns, type);
    const std::size_t moved = 3 * a->bytes();
    const Seconds time = time_of("memory-bound", fmt::format("{} bytes", moved),
                                 [&] { trainyard::add(to, *sum, *a, *b); });
    return {Bytes(static_cast<double>(moved)), time};
  }

  const MeasureLimits& limits_;
  std::vector<ElementType> types_ = {ElementType::bf16, ElementType::f32};  // of products
  DeviceClock clock_;
  Gemm gemm_;
  std::unique_ptr<CudnnAttention> cudnn_ = make_cudnn_attention();
  TimingClock::time_point begin_ = TimingClock::now();
  Seconds each_, sustained_;
  double all_ = 1, done_ = 0;  // timings
  HostSamples samples_;
  BytesPerSecond link_;
};

}  // namespace

Expected<MeasuredDevice> measure_device(const MeasureLimits& limits) {
  cudaDeviceProp properties{};
  const cudaError_t found = cudaGetDeviceProperties(&properties, 0);
  if (found != cudaSuccess) {
    return failure("", std::string("cudaGetDeviceProperties failed: ") + cudaGetErrorString(found));
  }
  DeviceMeasurement measurement(limits, 0, properties.major >= 9);
  auto samples = measurement.run();
  if (!samples) return tl::unexpected(samples.error());
  return MeasuredDevice{.samples = *std::move(samples),
                        .memory = Bytes(static_cast<double>(properties.totalGlobalMem)),
                        .multiprocessors = properties.multiProcessorCount,
                        .link = measurement.link(),
                        .compute_major = properties.major,
                        .compute_minor = properties.minor};
}

}  // namespace trainyard
