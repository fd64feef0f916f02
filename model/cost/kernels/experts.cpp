#include "model/cost/kernels/experts.h"

#include <cmath>

namespace trainyard {

Seconds grouped_gemm_time(const Device& device, Dtype dtype, const GemmShape& g) {
  if (g.m <= 0) return Seconds(0);
  const ExpertRates& rates = device.rates.experts;
  // Measured in 16 bits; other dtypes by the ratio of their dense rates.
  const double ratio =
      device.rates.of(dtype).per_multiprocessor / device.rates.of(Dtype::bf16).per_multiprocessor;
  const double rows = (g.m + rates.padding_rows) * g.groups;
  const double rate = rates.per_multiprocessor.value() * ratio * device.multiprocessors *
                      device.rates.sustained_clock;
  const double compute = 2 * rows * (g.k + rates.fill) * g.n / rate;
  const double weights = bytes_per_element(dtype) * g.groups * g.k * g.n /
                         (rates.memory_share * device.memory_bandwidth.value());
  // The block's overhead covers two GEMMs, activation and permutation.
  return rates.overhead / 4 + Seconds(std::hypot(compute, weights));
}

}  // namespace trainyard
