// Fits the smooth correction of the GEMM model (model/residual_grid.h): regularised robust
// regression of ln(measured / model) on the grid. The regularisation pulls neighbouring nodes
// together and every node to 0, so that noise averages out and nodes without data stay near 0.
// Cross-validation over groups of rows chooses its strength. Deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "model/residual_grid.h"
#include "model/workload/operators.h"

namespace trainyard {

struct GemmResidualRow {
  GemmShape shape;
  double log_ratio = 0;     // ln(measured / model)
  std::uint64_t group = 0;  // rows that cross-validation holds back together
};

// Returns an empty grid if there are too few groups for cross-validation.
ResidualGrid fit_gemm_residual(const std::vector<GemmResidualRow>& rows);

}  // namespace trainyard
