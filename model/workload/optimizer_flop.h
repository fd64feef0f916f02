// FLOP of an optimizer that works on whole matrices: Muon orthogonalises the momentum of each
// matrix of a layer by Newton–Schulz iterations. An iteration on m × n, m the smaller, is
// A = X·Xᵀ (2m²n), A·A (2m³) and B·X (2m²n): 4m²n + 2m³ (Jordan et al. 2024; Liu et al. 2025, arXiv
// 2502.16982). Norms, biases, the router and the ends of the network are left to Adam.
#pragma once

#include "model/workload/optimizer.h"
#include "model/workload/transformer.h"

namespace trainyard {

struct UpdateFlop {
  double dense = 0;    // attention, dense MLP, shared experts
  double experts = 0;  // routed experts
};

// FLOP of the update of one whole layer; 0 if the optimizer works element by element.
UpdateFlop update_flop(const Optimizer& optimizer, const Transformer& model, LayerKind kind);

}  // namespace trainyard
