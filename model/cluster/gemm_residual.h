// What measured GEMMs take beyond the tile model: the logarithm of a factor, smooth in the
// logarithms of m, n and k. Values stand on a grid with a node an octave; between nodes they are
// interpolated linearly in each direction, and beyond the grid they fall to 0 within an octave, so
// that no shape is corrected on the word of data far away.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace trainyard {

struct GemmResidual {
  std::array<int, 3> first{};          // log2 of m, n and k at the first node
  std::array<int, 3> nodes{};          // how many, of m, n and k
  std::vector<std::int16_t> permille;  // thousandths of ln(factor), by m, then n, then k

  bool empty() const { return permille.empty(); }
};

// The nodes around a shape and their weights; a node outside the grid is left out.
struct ResidualStencil {
  std::array<std::size_t, 8> node{};
  std::array<double, 8> weight{};
  std::size_t size = 0;
};
ResidualStencil residual_stencil(const GemmResidual& grid, double m, double n, double k);

// ln(factor); 0 without a grid. Requires: m, n, k > 0.
double log_residual(const GemmResidual& residual, double m, double n, double k);

}  // namespace trainyard
