#include "executor/measure/calibration.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "model/calibration/fit_attention.h"
#include "model/calibration/fit_collectives.h"
#include "model/calibration/fit_gemm.h"
#include "model/calibration/least_squares.h"
#include "model/cost/kernels/gemm.h"
#include "model/median.h"

namespace trainyard {
namespace {

// Fits launch latency and memory rate, as a share of the copy's rate, to the memory-bound samples:
// the pair with the least error in the logarithm of the times.
void fit_traffic(const HostSamples& samples, Device& device) {
  Seconds least(std::numeric_limits<double>::max());
  double best = 0;
  for (const TrafficSample& sample : samples.traffic) {
    least = std::min(least, sample.time);
    best = std::max(best, sample.traffic / sample.time / samples.copy);
  }
  double error = std::numeric_limits<double>::max();
  for (double share = 0.05; share <= std::max(best, 1.0); share *= 1.02) {
    for (double part = 0; part <= 1; part += 0.1) {
      double sum = 0;
      for (const TrafficSample& sample : samples.traffic) {
        const Seconds time = part * least + sample.traffic / (samples.copy * share);
        sum += std::abs(std::log(time / sample.time));
      }
      if (sum >= error) continue;
      error = sum;
      device.rates.memory = std::min(share, 1.0);
      device.rates.launch = part * least;
    }
  }
}

// Factor that spreads the time between operations over the operations themselves.
double stretch(const StepSamples& steps) { return 1 + steps.between; }

// The memory rate from the optimizer's update of large arrays, where whole steps were measured.
void fit_update(const HostSamples& samples, Device& device) {
  const TrafficSample& update = samples.steps.update;
  if (update.time.value() <= 0) return;
  const double share = update.traffic / (update.time * stretch(samples.steps)) / samples.copy;
  device.rates.memory = std::clamp(share, 0.01, 1.0);
}

BytesPerSecond memory_rate(const Device& device) {
  return device.memory_bandwidth * device.rates.memory;
}

// GEMM samples. Those of steps are without the time of adding to main gradients, which the cost
// model adds itself.
std::vector<GemmSample> gemm_samples(const HostSamples& samples, const Device& device) {
  constexpr double kLeast = 0.5;  // share of the measured time that stays the product's
  std::vector<GemmSample> all = samples.gemm;
  const StepSamples& steps = samples.steps;
  all.reserve(all.size() + steps.gemm.size());
  for (std::size_t i = 0; i < steps.gemm.size(); ++i) {
    GemmSample sample = steps.gemm[i];
    const Seconds time = sample.time * stretch(steps);
    sample.time = std::max(time - steps.accumulated[i] / memory_rate(device), kLeast * time);
    all.push_back(sample);
  }
  return all;
}

std::vector<AttentionSample> attention_samples(const HostSamples& samples) {
  std::vector<AttentionSample> all = samples.attention;
  all.reserve(all.size() + samples.steps.attention.size());
  for (AttentionSample sample : samples.steps.attention) {
    sample.time = sample.time * stretch(samples.steps);
    all.push_back(sample);
  }
  return all;
}

FlopsPerSecond best_gemm(const HostSamples& samples, Dtype dtype) {
  FlopsPerSecond best;
  for (const GemmSample& sample : samples.gemm) {
    if (sample.dtype == dtype) best = std::max(best, gemm_flop(sample.shape) / sample.time);
  }
  return best;
}

// A dtype that was not measured is computed in float with rounded results, so it has fp32's rates.
void borrow_from_float(Device& device, Dtype dtype) {
  const auto to = static_cast<std::size_t>(dtype);
  if (device.peak[to] > FlopsPerSecond(0)) return;
  device.rates.gemm[to] = device.rates.of(Dtype::fp32);
  device.peak[to] = device.peak_of(Dtype::fp32);
}

// The best all-gather rate of a rank; without a second rank, that of the link to the host, or of a
// copy.
BytesPerSecond link_of(const HostSamples& samples, const std::vector<CollectiveSample>& collectives,
                       BytesPerSecond host) {
  BytesPerSecond best;
  for (const CollectiveSample& sample : collectives) {
    if (sample.operation != CollectiveOperation::all_gather) continue;
    const double sent = (sample.gpus - 1.0) / sample.gpus;
    best = std::max(best, sent * sample.bytes / sample.time);
  }
  if (best > BytesPerSecond(0)) return best;
  return host > BytesPerSecond(0) ? host : samples.copy;
}

// The least that a host receives from others. The bytes of an all-to-all are those of each rank;
// those of an all-reduce arrive twice, as parts and as sums.
BytesPerSecond received_rate(const FabricSample& sample, const Cluster& host) {
  const double from_others = (sample.nodes - 1.0) / sample.nodes;
  const int times = sample.operation == CollectiveOperation::all_to_all   ? host.devices_per_node
                    : sample.operation == CollectiveOperation::all_reduce ? 2
                                                                          : 1;
  return times * from_others * sample.bytes / sample.time;
}

}  // namespace

std::optional<DeviceGeneration> generation_of(int major, int minor) {
  const bool ada = major == 8 && minor == 9;
  if (major == 8 && !ada) return DeviceGeneration::ampere;
  if (major == 9) return DeviceGeneration::hopper;
  if (major == 10) return DeviceGeneration::blackwell;
  return std::nullopt;
}

Expected<Device> fitted_device(const HostSamples& samples,
                               const std::vector<CollectiveSample>& collectives,
                               const DeviceFrame& frame) {
  const auto silent = [](double) {};
  Device device;
  device.generation = frame.generation;
  device.multiprocessors = frame.multiprocessors;
  device.memory = frame.memory;
  device.memory_bandwidth = samples.copy;
  device.link_bandwidth = link_of(samples, collectives, frame.host);
  const bool apart = frame.host > BytesPerSecond(0);
  device.host_bandwidth = apart ? frame.host : 0.5 * samples.copy;  // a copy reads and writes
  device.overlap_slowdown = frame.overlap_slowdown;
  for (int dtype = 0; dtype < kDtypes; ++dtype) {
    device.peak[static_cast<std::size_t>(dtype)] = best_gemm(samples, static_cast<Dtype>(dtype));
  }
  fit_traffic(samples, device);
  fit_update(samples, device);
  if (auto done = fit_gemm(device, gemm_samples(samples, device), silent); !done) {
    return tl::unexpected(done.error());
  }
  const auto bf16 = device.peak_of(Dtype::bf16);
  if (bf16 > FlopsPerSecond(0)) device.peak[static_cast<std::size_t>(Dtype::fp16)] = bf16;
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) borrow_from_float(device, dtype);
  if (auto done = fit_attention(device, attention_samples(samples), silent); !done) {
    return tl::unexpected(done.error());
  }
  std::vector<CollectiveSample> together = collectives;
  std::erase_if(together, [](const CollectiveSample& sample) {
    return sample.operation == CollectiveOperation::send;  // see fitted_links
  });
  if (!together.empty()) {
    if (auto done = fit_collectives(device, together, silent); !done) {
      return tl::unexpected(done.error());
    }
  }
  device.rates.sustained_clock = samples.sustained_clock;  // the others are of bursts
  // An expert's GEMMs are the same GEMMs, one after the other.
  const GemmRates& gemm = device.rates.of(Dtype::bf16);
  device.rates.experts.per_multiprocessor = gemm.per_multiprocessor;
  device.rates.experts.overhead = 2 * gemm.overhead;
  return device;
}

Stack fitted_stack(const HostSamples& samples, const Device& device) {
  Stack stack;
  stack.attention_backward = samples.attention_backward;
  stack.saved_logit_bytes = stack.cross_entropy_forward_bytes = 4;
  stack.cross_entropy_backward_bytes = 8;
  stack.fragmentation = 0;
  stack.host_backward = 1;
  stack.interval_low = stack.interval_high = stack.interval_moe = 1;
  stack.memory_interval_low = stack.memory_interval_high = 1;
  const StepSamples& steps = samples.steps;
  if (steps.memory_bound.traffic.value() <= 0 || steps.logits <= 0) return stack;
  stack.attention_backward = steps.attention_gradient / steps.attention_forward;
  const double more = stretch(steps);
  const BytesPerSecond rate = memory_rate(device);
  const Seconds memory_bound =
      steps.memory_bound.time * more - steps.memory_bound_runs * device.rates.launch;
  stack.memory_traffic = std::max(0.01, memory_bound * rate / steps.memory_bound.traffic);
  const Bytes forward = steps.cross_entropy * more * rate;
  const Bytes backward = steps.cross_entropy_gradient * more * rate;
  stack.cross_entropy_forward_bytes = forward.value() / steps.logits;
  stack.cross_entropy_backward_bytes = backward.value() / steps.logits;
  return stack;
}

IntraNode fitted_links(const std::vector<CollectiveSample>& collectives, const Device& device) {
  IntraNode links{.kind = IntraNodeKind::pcie, .bandwidth = device.link_bandwidth};
  std::vector<CollectiveSample> sends;
  std::ranges::copy_if(collectives, std::back_inserter(sends), [](const CollectiveSample& sample) {
    return sample.operation == CollectiveOperation::send;
  });
  if (sends.size() < 2) return links;
  std::ranges::sort(sends, {}, &CollectiveSample::bytes);
  const CollectiveSample& least = sends.front();
  // The larger half of the messages, whose time is bound by bytes.
  std::vector<double> rates;
  for (std::size_t i = sends.size() / 2; i < sends.size(); ++i) {
    const Seconds longer = sends[i].time - least.time;
    if (longer > Seconds(0)) rates.push_back(((sends[i].bytes - least.bytes) / longer).value());
  }
  if (rates.empty()) return links;
  std::vector<double> figures = {least.time.value(), median(rates)};
  to_four_digits(figures);
  links.latency = Seconds(figures[0]);
  links.bandwidth = BytesPerSecond(figures[1]);
  return links;
}

FabricSample fabric_sample(const CollectiveSample& sample, const Cluster& host) {
  return {sample.operation, sample.gpus / host.devices_per_node, sample.bytes, sample.time};
}

Expected<InterNode> fitted_fabric(const std::vector<CollectiveSample>& collectives,
                                  const Cluster& host) {
  FabricProblem problem{host, ""};
  InterNode& inter = problem.cluster.inter;
  inter.kind = InterNodeKind::fat_tree;
  inter.nics_per_node = 1;
  std::vector<FabricSample> samples;
  std::vector<double> most = {0};
  for (const CollectiveSample& collective : collectives) {
    if (collective.operation == CollectiveOperation::send) continue;
    samples.push_back(fabric_sample(collective, host));
    most[0] = std::max(most[0], received_rate(samples.back(), host).value());
  }
  to_four_digits(most);
  inter.bandwidth = BytesPerSecond(most[0]);
  return fit_fabric(problem, samples);
}

}  // namespace trainyard
