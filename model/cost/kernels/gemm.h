// Time of one GEMM (handbook §5): tiles over multiprocessors in softened waves, k-loop fill,
// split-k where tiles are few, and a memory roof, joined as (C⁴ + M⁴)^¼; the cheapest of three tile
// shapes. The form was chosen on measured kernels (docs/accuracy.md); its parameters are fitted per
// device and dtype. It models a library's dense GEMM of 64 rows and more, not a matrix-vector
// product.
#pragma once

#include <array>

#include "model/cluster/device.h"
#include "model/cost/memo.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// From here on a GEMM counts as large: what training is made of.
inline constexpr double kLargeGemmFlop = 1e11;

Flops gemm_flop(const GemmShape& shape);                // 2mnk
Bytes gemm_bytes(Dtype dtype, const GemmShape& shape);  // operands and a 16-bit result, once each

// Where the residual has a shape: log2 of m, of n, of k.
std::array<double, 3> gemm_coordinates(const GemmShape& shape);

// Forward [m×k]·[k×n], the input's gradient [m×n]·[n×k], the weight's [k×m]·[m×n]. Requires:
// device.supports(dtype).
std::array<Seconds, 3> gemm_pass_times(const Device& device, Dtype dtype, const GemmShape& shape);

// The same, of one device. Plans that cut their layers in many ways have few GEMMs.
class GemmTimeTable {
 public:
  // `device` outlives the table.
  explicit GemmTimeTable(const Device& device) : device_(device) {}
  std::array<Seconds, 3> pass_times(Dtype dtype, const GemmShape& shape) const;

 private:
  struct Key {
    Dtype dtype = Dtype::bf16;
    double m = 0, n = 0, k = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  const Device& device_;
  Memo<Key, std::array<Seconds, 3>> known_{2048};
};

// Of one [m×k]·[k×n] before the residual.
Seconds tile_model_time(const Device& device, Dtype dtype, const GemmShape& shape);

// Casting the activation [m×k] to the GEMM's dtype, as the measured tables include it.
Seconds activation_cast_time(const Device& device, Dtype dtype, const GemmShape& shape);

}  // namespace trainyard
