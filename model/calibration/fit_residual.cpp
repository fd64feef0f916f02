#include "model/calibration/fit_residual.h"

#include <Eigen/Sparse>
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "model/cost/kernels/gemm.h"

namespace trainyard {
namespace {

using Eigen::Index;
using Eigen::VectorXd;
using Matrix = Eigen::SparseMatrix<double>;
using Triplet = Eigen::Triplet<double>;

constexpr double kLossScale = 0.05;  // residuals beyond it pull like absolute values
constexpr int kReweightings = 4;
constexpr int kFolds = 4;
constexpr double kPull = 0.02;  // of a node to 0, over the weight of a second difference
constexpr double kSlope = 0.3;  // of a first difference, likewise
constexpr std::array<double, 6> kStrengths = {0.01, 0.03, 0.1, 0.3, 1, 3};  // rows a difference
constexpr std::size_t kFewestGroups = 20;

struct PlacedRow {
  ResidualStencil stencil;
  double value = 0;
  bool large = false;
  int fold = 0;
};

// What a second difference weighs against a row.
struct Strengths {
  double small = 0, large = 0;
};

bool is_large(const GemmShape& shape) { return gemm_flop(shape).value() >= kLargeGemmFlop; }

std::array<double, 3> octaves(const GemmShape& shape) {
  return {std::log2(shape.m), std::log2(shape.n), std::log2(shape.k)};
}

// A grid around all rows.
GemmResidual grid_of(const std::vector<ResidualRow>& rows) {
  GemmResidual grid;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double least = std::numeric_limits<double>::max();
    double most = std::numeric_limits<double>::lowest();
    for (const ResidualRow& row : rows) {
      least = std::min(least, octaves(row.shape)[axis]);
      most = std::max(most, octaves(row.shape)[axis]);
    }
    grid.first[axis] = static_cast<int>(std::floor(least));
    grid.nodes[axis] = static_cast<int>(std::ceil(most)) - grid.first[axis] + 1;
  }
  return grid;
}

Index nodes_of(const GemmResidual& grid) {
  return static_cast<Index>(grid.nodes[0]) * grid.nodes[1] * grid.nodes[2];
}

std::array<Index, 3> strides_of(const GemmResidual& grid) {
  return {static_cast<Index>(grid.nodes[1]) * grid.nodes[2], grid.nodes[2], 1};
}

double strength_at(const GemmResidual& grid, Index node, const Strengths& strengths) {
  std::array<double, 3> sides{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const Index at = node / strides_of(grid)[axis] % grid.nodes[axis];
    sides[axis] = std::exp2(static_cast<double>(at + grid.first[axis]));
  }
  return is_large({sides[0], sides[1], sides[2]}) ? strengths.large : strengths.small;
}

// Adds weight · (Σ coefficientᵢ · valueᵢ)².
template <std::size_t N>
void add_square(const std::array<Index, N>& nodes, const std::array<double, N>& coefficients,
                double weight, std::vector<Triplet>& terms) {
  for (std::size_t i = 0; i < N; ++i) {
    for (std::size_t j = 0; j < N; ++j) {
      terms.emplace_back(nodes[i], nodes[j], weight * coefficients[i] * coefficients[j]);
    }
  }
}

// The pull to 0, and first and second differences along each axis.
std::vector<Triplet> smoothness(const GemmResidual& grid, const Strengths& strengths) {
  std::vector<Triplet> terms;
  for (Index node = 0; node < nodes_of(grid); ++node) {
    const double own = strength_at(grid, node, strengths);
    terms.emplace_back(node, node, own * kPull);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const Index stride = strides_of(grid)[axis];
      const Index at = node / stride % grid.nodes[axis];
      if (at == grid.nodes[axis] - 1) continue;
      const double between = std::sqrt(own * strength_at(grid, node + stride, strengths));
      add_square<2>({node, node + stride}, {1, -1}, kSlope * between, terms);
      if (at > 0) add_square<3>({node - stride, node, node + stride}, {-1, 2, -1}, own, terms);
    }
  }
  return terms;
}

double value_at(const VectorXd& values, const ResidualStencil& stencil) {
  double sum = 0;
  for (std::size_t i = 0; i < stencil.size; ++i) {
    sum += stencil.weight[i] * values[static_cast<Index>(stencil.node[i])];
  }
  return sum;
}

void add_row(const PlacedRow& row, double weight, std::vector<Triplet>& terms, VectorXd& right) {
  const ResidualStencil& s = row.stencil;
  for (std::size_t i = 0; i < s.size; ++i) {
    const auto node = static_cast<Index>(s.node[i]);
    right[node] += weight * s.weight[i] * row.value;
    for (std::size_t j = 0; j < s.size; ++j) {
      terms.emplace_back(node, static_cast<Index>(s.node[j]), weight * s.weight[i] * s.weight[j]);
    }
  }
}

// Iteratively reweighted least squares (Holland & Welsch 1977) for the soft L1 loss.
VectorXd solve(const GemmResidual& grid, const std::vector<PlacedRow>& rows,
               const Strengths& strengths) {
  const Index nodes = nodes_of(grid);
  const std::vector<Triplet> smooth = smoothness(grid, strengths);
  VectorXd values = VectorXd::Zero(nodes);
  for (int iteration = 0; iteration < kReweightings; ++iteration) {
    std::vector<Triplet> terms = smooth;
    VectorXd right = VectorXd::Zero(nodes);
    for (const PlacedRow& row : rows) {
      const double off = (row.value - value_at(values, row.stencil)) / kLossScale;
      add_row(row, 1 / std::sqrt(1 + off * off), terms, right);
    }
    Matrix matrix(nodes, nodes);
    matrix.setFromTriplets(terms.begin(), terms.end());
    values = Eigen::SimplicialLDLT<Matrix>(matrix).solve(right);
  }
  return values;
}

int fold_of(std::uint64_t group) {
  return static_cast<int>((group * 0x9E3779B97F4A7C15U >> 33U) % kFolds);
}

// Σ |error| over the rows of each fold, by a grid fitted to the others.
Strengths validated_error(const GemmResidual& grid, const std::vector<PlacedRow>& rows,
                          double strength) {
  Strengths error;
  for (int fold = 0; fold < kFolds; ++fold) {
    std::vector<PlacedRow> others;
    std::ranges::copy_if(rows, std::back_inserter(others),
                         [fold](const PlacedRow& row) { return row.fold != fold; });
    const VectorXd values = solve(grid, others, {strength, strength});
    for (const PlacedRow& row : rows) {
      if (row.fold != fold) continue;
      const double off = std::abs(std::expm1(value_at(values, row.stencil) - row.value));
      (row.large ? error.large : error.small) += off;
    }
  }
  return error;
}

Strengths best_strengths(const GemmResidual& grid, const std::vector<PlacedRow>& rows) {
  constexpr double kWorst = std::numeric_limits<double>::max();
  Strengths best;
  Strengths least{kWorst, kWorst};
  const auto take = [](double strength, double error, double& least_error, double& chosen) {
    if (error >= least_error) return;
    least_error = error;
    chosen = strength;
  };
  for (const double strength : kStrengths) {
    const Strengths error = validated_error(grid, rows, strength);
    take(strength, error.small, least.small, best.small);
    take(strength, error.large, least.large, best.large);
  }
  return best;
}

std::vector<PlacedRow> placed_on(const GemmResidual& grid, const std::vector<ResidualRow>& rows) {
  std::vector<PlacedRow> placed;
  placed.reserve(rows.size());
  for (const ResidualRow& row : rows) {
    const GemmShape& g = row.shape;
    placed.push_back(
        {residual_stencil(grid, g.m, g.n, g.k), row.log_ratio, is_large(g), fold_of(row.group)});
  }
  return placed;
}

}  // namespace

GemmResidual fit_residual(const std::vector<ResidualRow>& rows) {
  std::set<std::uint64_t> groups;
  for (const ResidualRow& row : rows) groups.insert(row.group);
  if (groups.size() < kFewestGroups) return {};
  GemmResidual grid = grid_of(rows);
  const std::vector<PlacedRow> placed = placed_on(grid, rows);
  for (const double value : solve(grid, placed, best_strengths(grid, placed))) {
    constexpr double kMost = 1;  // a factor of e
    grid.permille.push_back(
        static_cast<std::int16_t>(std::lround(1e3 * std::clamp(value, -kMost, kMost))));
  }
  return grid;
}

}  // namespace trainyard
