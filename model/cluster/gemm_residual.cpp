#include "model/cluster/gemm_residual.h"

#include <cmath>

namespace trainyard {
namespace {

struct Axis {
  int node = 0;      // the lower of the two around the value; −1 or nodes − 1 at the edges
  double share = 0;  // of the upper one
};

Axis place_on(double value, int first) {
  const double octave = std::log2(value) - first;
  const double below = std::floor(octave);
  return {static_cast<int>(below), octave - below};
}

}  // namespace

ResidualStencil residual_stencil(const GemmResidual& grid, double m, double n, double k) {
  const std::array<Axis, 3> axes = {place_on(m, grid.first[0]), place_on(n, grid.first[1]),
                                    place_on(k, grid.first[2])};
  ResidualStencil stencil;
  for (int corner = 0; corner < 8; ++corner) {
    std::size_t node = 0;
    double weight = 1;
    bool inside = true;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      const bool upper = ((corner >> axis) & 1) != 0;
      const int at = axes[axis].node + (upper ? 1 : 0);
      inside = inside && at >= 0 && at < grid.nodes[axis];
      weight *= upper ? axes[axis].share : 1 - axes[axis].share;
      node = node * static_cast<std::size_t>(grid.nodes[axis]) + static_cast<std::size_t>(at);
    }
    if (!inside || weight == 0) continue;
    stencil.node[stencil.size] = node;
    stencil.weight[stencil.size] = weight;
    ++stencil.size;
  }
  return stencil;
}

double log_residual(const GemmResidual& residual, double m, double n, double k) {
  if (residual.empty()) return 0;
  const ResidualStencil stencil = residual_stencil(residual, m, n, k);
  double sum = 0;
  for (std::size_t i = 0; i < stencil.size; ++i) {
    sum += stencil.weight[i] * residual.permille[stencil.node[i]];
  }
  return sum * 1e-3;
}

}  // namespace trainyard
