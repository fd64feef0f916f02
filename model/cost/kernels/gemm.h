// Time of one GEMM (handbook §5): (C⁴ + M⁴)^¼ of the compute time C and the memory time M. C is
// that of the cheapest of three tile shapes: tiles over multiprocessors in softened waves, fill of
// the k loop, split-k where tiles are few. The form was chosen on measured kernels
// (docs/accuracy.md); its parameters are fitted per device and dtype. It models a library's dense
// GEMM of 64 rows and more, not a matrix-vector product.
#pragma once

#include <array>

#include "model/cluster/device.h"
#include "model/cost/memo.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// A GEMM of this size or more counts as large; training consists of such.
inline constexpr double kLargeGemmFlop = 1e11;

Flops gemm_flop(const GemmShape& shape);                // 2mnk
Bytes gemm_bytes(Dtype dtype, const GemmShape& shape);  // operands and a 16-bit result, once each

// Coordinates of a shape in GemmRates::residual: log2 of m, of n, of k.
std::array<double, 3> gemm_coordinates(const GemmShape& shape);

// Forward [m×k]·[k×n], input gradient [m×n]·[n×k], weight gradient [k×m]·[m×n].
// Requires: device.supports(dtype).
std::array<Seconds, 3> gemm_pass_times(const Device& device, Dtype dtype, const GemmShape& shape);

// The same for one device, kept: plans that cut their layers in many ways share few GEMM shapes.
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

// Time of one [m×k]·[k×n] before the correction by the residual.
Seconds tile_model_time(const Device& device, Dtype dtype, const GemmShape& shape);

// Casting the activation [m×k] to the GEMM's dtype, as the measured tables include it.
Seconds activation_cast_time(const Device& device, Dtype dtype, const GemmShape& shape);

}  // namespace trainyard
