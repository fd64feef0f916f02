#include "executor/cpu/measure.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <array>
#include <fstream>

#include "executor/cpu/kernels/kernels.h"
#include "executor/measure/collective_rank.h"
#include "model/calibration/fit_attention.h"
#include "model/median.h"

namespace trainyard {
namespace {

Tensor<float> filled(Eigen::Index rows, Eigen::Index columns) {
  return Tensor<float>::Random(rows, columns);
}

// ---- One operation ------------------------------------------------------------------------

Timing gemm_timing(Eigen::Index m, Eigen::Index n, Eigen::Index k, Seconds budget) {
  const Tensor<float> x = filled(m, k);
  const Tensor<float> w = filled(n, k);
  Tensor<float> y(m, n);
  const Setting setting;
  const Operation linear{.kind = OperationKind::linear};
  const Operands<float> operands{.in = {&x, &w}, .out = {&y}};
  return timed([&] { compute(linear, {setting, {}, {}}, operands); }, budget);
}

struct AttentionTimes {
  AttentionShape shape;
  Timing forward, backward;
};

AttentionTimes attention_times(int tokens, int heads, int head_dim, Seconds budget) {
  Setting setting;
  setting.training.sequence_length = tokens;
  const double count = tokens, d = head_dim;
  Operation operation{.kind = OperationKind::attention};
  operation.attention = {.batch = 1,
                         .heads = static_cast<double>(heads),
                         .kv_heads = static_cast<double>(heads),
                         .queries = count,
                         .keys = count,
                         .query_head_dim = d,
                         .value_head_dim = d};
  const Eigen::Index width = Eigen::Index{heads} * head_dim;
  const Tensor<float> q = filled(tokens, width), k = filled(tokens, width),
                      v = filled(tokens, width), gradient = filled(tokens, width);
  Tensor<float> out(tokens, width), statistics(tokens, heads);
  const Where where{setting, {}, {}};
  const Timing forward = timed(
      [&] {
        compute(operation, where, Operands<float>{.in = {&q, &k, &v}, .out = {&out, &statistics}});
      },
      budget);
  operation.kind = OperationKind::attention_gradient;
  Tensor<float> dq(tokens, width), dk(tokens, width), dv(tokens, width);
  const Operands<float> operands{.in = {&q, &k, &v, &out, &statistics, &gradient},
                                 .out = {&dq, &dk, &dv}};
  const Timing backward = timed([&] { compute(operation, where, operands); }, budget);
  return {operation.attention, forward, backward};
}

// The sum of two arrays: reads both and writes one.
Timing residual_timing(Eigen::Index rows, Eigen::Index columns, Seconds budget) {
  const Tensor<float> a = filled(rows, columns);
  const Tensor<float> b = filled(rows, columns);
  Tensor<float> sum(rows, columns);
  const Setting setting;
  const Operation residual{.kind = OperationKind::residual};
  const Operands<float> operands{.in = {&a, &b}, .out = {&sum}};
  return timed([&] { compute(residual, {setting, {}, {}}, operands); }, budget);
}

constexpr Eigen::Index kCopied = 4096;
Timing copy_timing(Seconds budget) {
  const Tensor<float> from = filled(kCopied, kCopied);
  Tensor<float> to = from;
  return timed([&] { to = from; }, budget);
}

// ---- All of them --------------------------------------------------------------------------

constexpr std::array<int, 6> kRows = {16, 32, 64, 128, 256, 512};
constexpr std::array<int, 4> kWidths = {64, 192, 512, 1024};
constexpr std::array<int, 5> kTokens = {16, 32, 64, 128, 256};
constexpr std::array<int, 5> kHeads = {1, 2, 4, 8, 16};
constexpr std::array<int, 3> kHeadDims = {16, 32, 64};

// The least that the fits need, whatever the time limit: 60 products (fit_gemm),
// kLeastAttentionSamples attentions of each head dimension, a copy and sums. The cheapest of each
// are taken.
constexpr bool is_needed(int n, int k) { return n * k <= 192 * 512; }
constexpr int kMostNeededTokens = 128;
static_assert(kHeads.size() * (kTokens.size() - 1) >= kLeastAttentionSamples &&
              kTokens[kTokens.size() - 2] == kMostNeededTokens);

// Shares of the time, in units of one timing.
constexpr double kCopyPart = 4, kAttentionPart = 2;

class HostMeasurement {
 public:
  explicit HostMeasurement(const MeasureLimits& limits) : limits_(limits) {
    all_ = kCopyPart + kRows.size() * kWidths.size() * kWidths.size() +
           kAttentionPart * kTokens.size() * kHeads.size() * kHeadDims.size() + 2 * kRows.size();
    each_ = limits.budget / all_;
  }

  HostSamples run() {
    add(kCopyPart, true, [&] { copy(); });
    for (const int m : kRows) {
      for (const int n : kWidths) {
        for (const int k : kWidths) {
          add(1, is_needed(n, k), [&] { gemm(m, n, k); });
        }
      }
    }
    for (const int head_dim : kHeadDims) {
      for (const int tokens : kTokens) {
        for (const int heads : kHeads) {
          add(kAttentionPart, tokens <= kMostNeededTokens,
              [&] { attention(tokens, heads, head_dim); });
        }
      }
    }
    for (const int rows : kRows) {
      add(1, true, [&] { residual(rows, 64); });
      add(1, true, [&] { residual(rows, 1024); });
    }
    if (!backward_.empty()) samples_.attention_backward = median(backward_);
    return std::move(samples_);
  }

 private:
  void note(std::string_view family, std::string what, const Timing& timing) {
    samples_.points.push_back({std::string(family), std::move(what), timing});
  }

  void copy() {
    const Timing timing = copy_timing(kCopyPart * each_);
    const Bytes moved(2.0 * sizeof(float) * kCopied * kCopied);
    samples_.copy = moved / timing.median;
    note("copy", fmt::format("{:.0f} bytes", moved.value() / 2), timing);
  }

  void gemm(int m, int n, int k) {
    const Timing timing = gemm_timing(m, n, k, each_);
    const GemmShape shape{static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)};
    samples_.gemm.push_back({Dtype::fp32, shape, timing.median});
    note("GEMM", fmt::format("{}x{}x{}", m, n, k), timing);
  }

  void attention(int tokens, int heads, int head_dim) {
    const AttentionTimes times = attention_times(tokens, heads, head_dim, each_);
    samples_.attention.push_back({Dtype::fp32, times.shape, times.forward.median});
    backward_.push_back(times.backward.median / times.forward.median);
    const std::string what = fmt::format("{} tokens, {} heads of {}", tokens, heads, head_dim);
    note("attention", "forward " + what, times.forward);
    note("attention", "backward " + what, times.backward);
  }

  void residual(int rows, int columns) {
    const Timing timing = residual_timing(rows, columns, each_);
    const Bytes traffic(3.0 * sizeof(float) * rows * columns);
    samples_.traffic.push_back({traffic, timing.median});
    note("memory-bound", fmt::format("{:.0f} bytes", traffic.value()), timing);
  }

  // Once earlier timings have used more than their share of the time, measures only what is needed.
  template <typename Measure>
  void add(double part, bool needed, const Measure& measure) {
    if (limits_.interrupted()) return;
    if (needed || Seconds(seconds_since(begin_)) <= done_ * each_) measure();
    done_ += part;
    limits_.progress(done_ / all_);
  }

  const MeasureLimits& limits_;
  TimingClock::time_point begin_ = TimingClock::now();
  Seconds each_;               // budget of one timing
  double all_ = 1, done_ = 0;  // timings
  HostSamples samples_;
  std::vector<double> backward_;
};

// An entry of /proc/cpuinfo for the first processor; "?": there is none.
std::string of_processor(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "?";
}

}  // namespace

std::string host_provenance() {
  utsname system{};
  uname(&system);
  return fmt::format("{}, {} MHz, {} {}, Eigen {}.{}.{}, compiler {}, {}",
                     of_processor("model name"), of_processor("cpu MHz"), system.sysname,
                     system.release, EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION,
                     __VERSION__, mpi_library());
}

HostSamples measure_host(const MeasureLimits& limits) { return HostMeasurement(limits).run(); }

}  // namespace trainyard
