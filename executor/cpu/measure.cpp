#include "executor/cpu/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kFewestRuns = 5;
constexpr int kMostRuns = 200;
constexpr double kEnough = 0.02;    // standard error over the median
constexpr double kOutlier = 3;      // median deviations
constexpr double kNormal = 1.4826;  // standard deviation over the median deviation, normally

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Timing summary(const std::vector<double>& times) {
  const double first = median_of(times);
  std::vector<double> apart;
  apart.reserve(times.size());
  for (const double time : times) apart.push_back(std::abs(time - first));
  const double spread = median_of(apart);
  std::vector<double> kept;
  for (const double time : times) {
    if (std::abs(time - first) <= kOutlier * kNormal * spread) kept.push_back(time);
  }
  const double error = kNormal * spread * std::sqrt(M_PI / 2 / static_cast<double>(kept.size()));
  return {Seconds(median_of(kept)), Seconds(error), static_cast<int>(times.size())};
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Tensor<float> filled(Eigen::Index rows, Eigen::Index columns) {
  return Tensor<float>::Random(rows, columns);
}

// ---- One operation ------------------------------------------------------------------------

GemmSample gemm_sample(Eigen::Index m, Eigen::Index n, Eigen::Index k, Seconds budget) {
  const Tensor<float> x = filled(m, k);
  const Tensor<float> w = filled(n, k);
  Tensor<float> y(m, n);
  const Setting setting;
  const Operation linear{.kind = OperationKind::linear};
  const Operands<float> operands{.in = {&x, &w}, .out = {&y}};
  const Timing timing = timed([&] { compute(linear, {setting, {}, {}}, operands); }, budget);
  return {Dtype::fp32,
          {static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)},
          timing.median};
}

struct AttentionTimes {
  AttentionSample forward;
  Seconds backward;
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
  return {{Dtype::fp32, operation.attention, forward.median}, backward.median};
}

// The sum of two: reads both and writes one.
TrafficSample traffic_sample(Eigen::Index rows, Eigen::Index columns, Seconds budget) {
  const Tensor<float> a = filled(rows, columns);
  const Tensor<float> b = filled(rows, columns);
  Tensor<float> sum(rows, columns);
  const Setting setting;
  const Operation residual{.kind = OperationKind::residual};
  const Operands<float> operands{.in = {&a, &b}, .out = {&sum}};
  const Timing timing = timed([&] { compute(residual, {setting, {}, {}}, operands); }, budget);
  return {Bytes(3.0 * sizeof(float) * static_cast<double>(rows * columns)), timing.median};
}

BytesPerSecond copy_rate(Seconds budget) {
  const Tensor<float> from = filled(4096, 4096);
  Tensor<float> to = from;
  const Timing timing = timed([&] { to = from; }, budget);
  return Bytes(2.0 * sizeof(float) * static_cast<double>(from.size())) / timing.median;
}

// ---- All of them --------------------------------------------------------------------------

constexpr std::array<int, 6> kRows = {16, 32, 64, 128, 256, 512};
constexpr std::array<int, 4> kWidths = {64, 192, 512, 1024};
constexpr std::array<int, 5> kTokens = {16, 32, 64, 128, 256};
constexpr std::array<int, 5> kHeads = {1, 2, 4, 8, 16};
constexpr std::array<int, 3> kHeadDims = {16, 32, 64};

class HostMeasurement {
 public:
  explicit HostMeasurement(const MeasureLimits& limits) : limits_(limits) {
    const std::size_t points = kRows.size() * kWidths.size() * kWidths.size() +
                               2 * kTokens.size() * kHeads.size() * kHeadDims.size() + 16;
    each_ = limits.budget / static_cast<double>(points);
    all_ = static_cast<double>(points);
  }

  HostSamples run() {
    samples_.copy = copy_rate(4 * each_);
    for (const int m : kRows) {
      for (const int n : kWidths) {
        for (const int k : kWidths)
          add([&] { samples_.gemm.push_back(gemm_sample(m, n, k, each_)); });
      }
    }
    std::vector<double> backward;
    for (const int head_dim : kHeadDims) {
      for (const int tokens : kTokens) {
        for (const int heads : kHeads) {
          add([&] {
            const AttentionTimes times = attention_times(tokens, heads, head_dim, each_);
            samples_.attention.push_back(times.forward);
            backward.push_back(times.backward / times.forward.time);
          });
        }
      }
    }
    for (const int rows : kRows) {
      add([&] { samples_.traffic.push_back(traffic_sample(rows, 64, each_)); });
      add([&] { samples_.traffic.push_back(traffic_sample(rows, 1024, each_)); });
    }
    if (!backward.empty()) samples_.attention_backward = median_of(backward);
    return std::move(samples_);
  }

 private:
  template <typename Measure>
  void add(const Measure& measure) {
    if (limits_.interrupted()) return;
    measure();
    limits_.progress(++done_ / all_);
  }

  const MeasureLimits& limits_;
  Seconds each_;
  double all_ = 1, done_ = 0;
  HostSamples samples_;
};

// ---- Collectives ------------------------------------------------------------------------------

constexpr std::array kCollectives = {
    CollectiveOperation::all_reduce, CollectiveOperation::all_gather,
    CollectiveOperation::reduce_scatter, CollectiveOperation::all_to_all};

Expected<void> once(Transport& transport, CollectiveOperation operation, std::vector<float>& mine,
                    std::vector<float>& all) {
  const int size = static_cast<int>(all.size());
  const Counts parts(static_cast<std::size_t>(transport.ranks()), size / transport.ranks());
  switch (operation) {
    case CollectiveOperation::all_gather:
      return transport.all_gather(Group::all, mine.data(), parts, all.data());
    case CollectiveOperation::reduce_scatter:
      return transport.reduce_scatter(Group::all, all.data(), parts, mine.data());
    case CollectiveOperation::all_to_all:
      return transport.all_to_all(Group::all, mine.data(), parts, all.data(), parts);
    default:
      return transport.all_reduce(Group::all, all.data(), size, Reduction::max);
  }
}

// All ranks decide alike: as many runs as the slowest rank's first ones leave time for.
Expected<Seconds> collective_time(Transport& transport, CollectiveOperation operation, int count,
                                  double budget) {
  std::vector<float> all(static_cast<std::size_t>(count)), mine(all.size());
  std::vector<double> times;
  int runs = kFewestRuns;
  for (int run = 0; run < runs; ++run) {
    float together = 0;
    auto met = transport.all_reduce(Group::all, &together, 1, Reduction::max);
    if (!met) return tl::unexpected(met.error());
    const auto begin = Clock::now();
    if (auto done = once(transport, operation, mine, all); !done) {
      return tl::unexpected(done.error());
    }
    auto time = static_cast<float>(seconds_since(begin));
    met = transport.all_reduce(Group::all, &time, 1, Reduction::max);
    if (!met) return tl::unexpected(met.error());
    times.push_back(static_cast<double>(time));
    if (run + 1 == kFewestRuns) {
      runs = std::clamp(static_cast<int>(budget / median_of(times)), kFewestRuns, kMostRuns);
    }
  }
  return summary(times).median;
}

}  // namespace

Timing timed(const std::function<void()>& work, Seconds budget) {
  const auto start = Clock::now();
  work();
  const auto once = [&work] {
    const auto begin = Clock::now();
    work();
    return Seconds(seconds_since(begin));
  };
  return repeated_timing(once, budget - Seconds(seconds_since(start)));
}

Timing repeated_timing(const std::function<Seconds()>& once, Seconds budget) {
  const auto start = Clock::now();
  std::vector<double> times;
  while (static_cast<int>(times.size()) < kMostRuns) {
    times.push_back(once().value());
    if (static_cast<int>(times.size()) < kFewestRuns) continue;
    const Timing so_far = summary(times);
    if (so_far.deviation < kEnough * so_far.median) break;
    if (seconds_since(start) > budget.value()) break;
  }
  return summary(times);
}

std::string built_with() {
  return fmt::format("Eigen {}.{}.{}, compiler {}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION, __VERSION__);
}

HostSamples measure_host(const MeasureLimits& limits) { return HostMeasurement(limits).run(); }

Expected<std::vector<CollectiveSample>> measure_collectives(Transport& transport, Seconds budget) {
  std::vector<CollectiveSample> samples;
  constexpr int kSizes = 12;  // 1 KiB, 2 KiB, … 2 MiB
  const double each = budget.value() / (kSizes * static_cast<double>(kCollectives.size()));
  for (const CollectiveOperation operation : kCollectives) {
    for (int size = 0; size < kSizes; ++size) {
      const int count = 256 << size;
      const auto time = collective_time(transport, operation, count, each);
      if (!time) return tl::unexpected(time.error());
      const Bytes bytes(static_cast<double>(count) * sizeof(float));
      samples.push_back({operation, transport.ranks(), bytes, *time});
    }
  }
  return samples;
}

}  // namespace trainyard
