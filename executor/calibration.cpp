#include "executor/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/calibration/fit_attention.h"
#include "model/calibration/fit_collectives.h"
#include "model/calibration/fit_gemm.h"
#include "model/cost/kernels/gemm.h"

namespace trainyard {
namespace {

// Latency of the smallest, and the share of the copy's rate that fits the rest best (in the
// logarithm).
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

FlopsPerSecond best_gemm(const HostSamples& samples, Dtype dtype) {
  FlopsPerSecond best;
  for (const GemmSample& sample : samples.gemm) {
    if (sample.dtype == dtype) best = std::max(best, gemm_flop(sample.shape) / sample.time);
  }
  return best;
}

// What was not measured is arithmetic in float with rounded results.
void borrow_from_float(Device& device, Dtype dtype) {
  const auto to = static_cast<std::size_t>(dtype);
  if (device.peak[to] > FlopsPerSecond(0)) return;
  device.rates.gemm[to] = device.rates.of(Dtype::fp32);
  device.peak[to] = device.peak_of(Dtype::fp32);
}

// The best rate between two ranks; without a second rank what is known of the link, else a copy.
BytesPerSecond link_of(const HostSamples& samples, const std::vector<CollectiveSample>& collectives,
                       BytesPerSecond known) {
  BytesPerSecond best;
  for (const CollectiveSample& sample : collectives) {
    if (sample.operation != CollectiveOperation::all_gather) continue;
    const double sent = (sample.gpus - 1.0) / sample.gpus;
    best = std::max(best, sent * sample.bytes / sample.time);
  }
  if (best > BytesPerSecond(0)) return best;
  return known > BytesPerSecond(0) ? known : samples.copy;
}

}  // namespace

Expected<Device> fitted_device(const HostSamples& samples,
                               const std::vector<CollectiveSample>& collectives,
                               const DeviceFrame& frame) {
  const auto silent = [](double) {};
  Device device;
  device.multiprocessors = frame.multiprocessors;
  device.memory = frame.memory;
  device.memory_bandwidth = samples.copy;
  device.link_bandwidth = link_of(samples, collectives, frame.link);
  for (int dtype = 0; dtype < kDtypes; ++dtype) {
    device.peak[static_cast<std::size_t>(dtype)] = best_gemm(samples, static_cast<Dtype>(dtype));
  }
  if (auto done = fit_gemm(device, samples.gemm, silent); !done)
    return tl::unexpected(done.error());
  const auto bf16 = device.peak_of(Dtype::bf16);
  if (bf16 > FlopsPerSecond(0)) device.peak[static_cast<std::size_t>(Dtype::fp16)] = bf16;
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) borrow_from_float(device, dtype);
  if (auto done = fit_attention(device, samples.attention, silent); !done) {
    return tl::unexpected(done.error());
  }
  fit_traffic(samples, device);
  if (!collectives.empty()) {
    if (auto done = fit_collectives(device, collectives, silent); !done) {
      return tl::unexpected(done.error());
    }
  }
  // An expert's GEMMs are the same GEMMs, one after the other.
  const GemmRates& gemm = device.rates.of(Dtype::bf16);
  device.rates.experts.per_multiprocessor = gemm.per_multiprocessor;
  device.rates.experts.overhead = 2 * gemm.overhead;
  return device;
}

}  // namespace trainyard
