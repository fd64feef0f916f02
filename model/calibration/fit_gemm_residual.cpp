#include "model/calibration/fit_gemm_residual.h"

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
using Knots = std::vector<std::vector<double>>;  // of m, of n, of k

constexpr double kLossScale = 0.05;  // residuals beyond it pull like absolute values
constexpr int kShapeReweightings = 4;
constexpr int kFolds = 4;
constexpr double kPull = 0.02;  // weight of a node's pull to 0, over that of a second difference
constexpr double kSlope = 0.3;  // weight of a first difference, likewise
constexpr std::array<double, 6> kStrengths = {0.01, 0.03, 0.1, 0.3, 1, 3};  // that are tried
constexpr std::size_t kFewestGroups = 20;

struct PlacedRow {
  GridWeights place;
  double value = 0;
  bool large = false;
  int fold = 0;
};

// The weight of a second difference over that of a row, for small and for large GEMMs.
struct Strengths {
  double small = 0, large = 0;
};

bool is_large(const GemmShape& shape) { return gemm_flop(shape).value() >= kLargeGemmFlop; }

// Knots one octave apart that enclose all rows.
Knots knots_around(const std::vector<GemmResidualRow>& rows) {
  Knots knots(3);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double least = std::numeric_limits<double>::max();
    double most = std::numeric_limits<double>::lowest();
    for (const GemmResidualRow& row : rows) {
      least = std::min(least, gemm_coordinates(row.shape)[axis]);
      most = std::max(most, gemm_coordinates(row.shape)[axis]);
    }
    const double first = std::floor(least);
    const double last = std::max(std::ceil(most), first + 1);
    for (double knot = first; knot <= last; ++knot) knots[axis].push_back(knot);
  }
  return knots;
}

Index nodes_of(const Knots& knots) { return static_cast<Index>(grid_size(knots)); }

Index nodes_along(const Knots& knots, std::size_t axis) {
  return static_cast<Index>(knots[axis].size());
}

std::array<Index, 3> strides_of(const Knots& knots) {
  return {nodes_along(knots, 1) * nodes_along(knots, 2), nodes_along(knots, 2), 1};
}

double strength_at(const Knots& knots, Index node, const Strengths& strengths) {
  std::array<double, 3> sides{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const Index at = node / strides_of(knots)[axis] % nodes_along(knots, axis);
    sides[axis] = std::exp2(knots[axis][static_cast<std::size_t>(at)]);
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

// The terms of the regularisation: the pull to 0, and first and second differences along each axis.
std::vector<Triplet> smoothness(const Knots& knots, const Strengths& strengths) {
  std::vector<Triplet> terms;
  for (Index node = 0; node < nodes_of(knots); ++node) {
    const double own = strength_at(knots, node, strengths);
    terms.emplace_back(node, node, own * kPull);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const Index stride = strides_of(knots)[axis];
      const Index at = node / stride % nodes_along(knots, axis);
      if (at == nodes_along(knots, axis) - 1) continue;
      const double between = std::sqrt(own * strength_at(knots, node + stride, strengths));
      add_square<2>({node, node + stride}, {1, -1}, kSlope * between, terms);
      if (at > 0) add_square<3>({node - stride, node, node + stride}, {-1, 2, -1}, own, terms);
    }
  }
  return terms;
}

double value_at(const VectorXd& values, const GridWeights& place) {
  double sum = 0;
  for (std::size_t i = 0; i < place.count; ++i) {
    sum += place.weight[i] * values[static_cast<Index>(place.corner[i])];
  }
  return sum;
}

void add_row(const PlacedRow& row, double weight, std::vector<Triplet>& terms, VectorXd& right) {
  const GridWeights& s = row.place;
  for (std::size_t i = 0; i < s.count; ++i) {
    if (s.weight[i] == 0) continue;  // on a knot: no entry in the sparse matrix
    const auto node = static_cast<Index>(s.corner[i]);
    right[node] += weight * s.weight[i] * row.value;
    for (std::size_t j = 0; j < s.count; ++j) {
      if (s.weight[j] == 0) continue;
      terms.emplace_back(node, static_cast<Index>(s.corner[j]), weight * s.weight[i] * s.weight[j]);
    }
  }
}

// Iteratively reweighted least squares (Holland & Welsch 1977) for the soft L1 loss.
VectorXd solve(const Knots& knots, const std::vector<PlacedRow>& rows, const Strengths& strengths) {
  const Index nodes = nodes_of(knots);
  const std::vector<Triplet> smooth = smoothness(knots, strengths);
  VectorXd values = VectorXd::Zero(nodes);
  for (int iteration = 0; iteration < kShapeReweightings; ++iteration) {
    std::vector<Triplet> terms = smooth;
    VectorXd right = VectorXd::Zero(nodes);
    for (const PlacedRow& row : rows) {
      const double off = (row.value - value_at(values, row.place)) / kLossScale;
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

// Σ |error| over all rows, each predicted by a grid that was fitted to the other folds.
Strengths validated_error(const Knots& knots, const std::vector<PlacedRow>& rows, double strength) {
  Strengths error;
  for (int fold = 0; fold < kFolds; ++fold) {
    std::vector<PlacedRow> others;
    std::ranges::copy_if(rows, std::back_inserter(others),
                         [fold](const PlacedRow& row) { return row.fold != fold; });
    const VectorXd values = solve(knots, others, {strength, strength});
    for (const PlacedRow& row : rows) {
      if (row.fold != fold) continue;
      const double off = std::abs(std::expm1(value_at(values, row.place) - row.value));
      (row.large ? error.large : error.small) += off;
    }
  }
  return error;
}

Strengths best_strengths(const Knots& knots, const std::vector<PlacedRow>& rows) {
  constexpr double kWorst = std::numeric_limits<double>::max();
  Strengths best;
  Strengths least{kWorst, kWorst};
  const auto take = [](double strength, double error, double& least_error, double& chosen) {
    if (error >= least_error) return;
    least_error = error;
    chosen = strength;
  };
  for (const double strength : kStrengths) {
    const Strengths error = validated_error(knots, rows, strength);
    take(strength, error.small, least.small, best.small);
    take(strength, error.large, least.large, best.large);
  }
  return best;
}

std::vector<PlacedRow> placed_on(const Knots& knots, const std::vector<GemmResidualRow>& rows) {
  std::vector<PlacedRow> placed;
  placed.reserve(rows.size());
  for (const GemmResidualRow& row : rows) {
    const GemmShape& g = row.shape;
    placed.push_back(
        {grid_weights(knots, gemm_coordinates(g)), row.log_ratio, is_large(g), fold_of(row.group)});
  }
  return placed;
}

}  // namespace

ResidualGrid fit_gemm_residual(const std::vector<GemmResidualRow>& rows) {
  std::set<std::uint64_t> groups;
  for (const GemmResidualRow& row : rows) groups.insert(row.group);
  if (groups.size() < kFewestGroups) return {};
  ResidualGrid grid{knots_around(rows), {}};
  const std::vector<PlacedRow> placed = placed_on(grid.knots, rows);
  for (const double value : solve(grid.knots, placed, best_strengths(grid.knots, placed))) {
    constexpr double kMost = 1;  // a factor of e
    grid.values.push_back(to_thousandths(std::clamp(value, -kMost, kMost)));
  }
  return grid;
}

}  // namespace trainyard
