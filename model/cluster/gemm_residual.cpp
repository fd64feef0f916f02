#include "model/cluster/gemm_residual.h"

#include <cmath>

namespace trainyard {
namespace {

// The nodes on either side of a value that the grid has, and their weights.
struct Axis {
  std::array<std::size_t, 2> node{};
  std::array<double, 2> weight{};
  std::size_t size = 0;
};

Axis place_on(double value, int first, int nodes) {
  const double octave = std::log2(value) - first;
  const int below = static_cast<int>(octave) - (octave < 0 ? 1 : 0);
  const double share = octave - below;  // of the upper node
  Axis axis;
  const auto add = [&](int node, double weight) {
    if (node < 0 || node >= nodes || weight == 0) return;
    axis.node[axis.size] = static_cast<std::size_t>(node);
    axis.weight[axis.size++] = weight;
  };
  add(below, 1 - share);
  add(below + 1, share);
  return axis;
}

}  // namespace

ResidualStencil residual_stencil(const GemmResidual& grid, double m, double n, double k) {
  const Axis rows = place_on(m, grid.first[0], grid.nodes[0]);
  const Axis columns = place_on(n, grid.first[1], grid.nodes[1]);
  const Axis depths = place_on(k, grid.first[2], grid.nodes[2]);
  const auto columns_of_grid = static_cast<std::size_t>(grid.nodes[1]);
  const auto depths_of_grid = static_cast<std::size_t>(grid.nodes[2]);
  ResidualStencil stencil;
  for (std::size_t a = 0; a < rows.size; ++a) {
    for (std::size_t b = 0; b < columns.size; ++b) {
      const std::size_t line = (rows.node[a] * columns_of_grid + columns.node[b]) * depths_of_grid;
      const double weight = rows.weight[a] * columns.weight[b];
      for (std::size_t c = 0; c < depths.size; ++c) {
        stencil.node[stencil.size] = line + depths.node[c];
        stencil.weight[stencil.size++] = weight * depths.weight[c];
      }
    }
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
