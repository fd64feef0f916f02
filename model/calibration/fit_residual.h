// Fits the smooth correction of the GEMM model (model/cluster/gemm_residual.h): regularised robust
// regression of ln(measured / model) on the grid. Neighbouring nodes are held together and every
// node to 0, so that noise is averaged and nodes without data stay near 0; how strongly is chosen
// by cross-validation over groups of rows. Deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cluster/gemm_residual.h"
#include "model/workload/operators.h"

namespace trainyard {

struct ResidualRow {
  GemmShape shape;
  double log_ratio = 0;     // ln(measured / model)
  std::uint64_t group = 0;  // rows that cross-validation holds back together
};

// An empty grid when there are too few groups to validate on.
GemmResidual fit_residual(const std::vector<ResidualRow>& rows);

}  // namespace trainyard
