// The half of a layer that has experts: every token goes to a few of them, wherever they are, and
// comes back. Internal to model/program.
#pragma once

#include "model/program/parts/mlp.h"

namespace trainyard {

// Rows of tokens as the plan expects them; the routing decides how many there are.
struct RoutedRows {
  std::int64_t copies = 0;    // of this rank's tokens
  std::int64_t received = 0;  // by this rank
  std::int64_t all = 0;       // of its experts, with those that the ranks sharing them received
  double each = 0;            // of one expert
  int local = 1;              // experts of this rank
  bool sorts = false;         // an expert's rows come from several ranks in turn
};

struct ExpertHalf {
  Branch branch;
  RoutedRows rows;
  LinearPart router;
  Parameter correction;  // of the choice, not of the gates; −1: none
  Parameter down_bias;   // of each expert
  int logits = -1;
  int routing = -1;  // experts of each token
  // Rows by expert: of this rank's copies; by source and expert as received; with those of the
  // ranks that share the experts.
  int sent_counts = -1, received_counts = -1, counts = -1;
  int received_gates = -1;
  int input = -1;  // of the experts, sorted, as their first GEMM reads it
  MlpPart mlp;     // with the gates of the same rows
  MlpPart shared;
};

ExpertHalf append_experts(NetworkUnit& unit, const LayerMiddle& middle);
void append_experts_gradient(NetworkUnit& unit, const ExpertHalf& half);

// Forward: the shared experts' sum for this rank's tokens. Backward: the gradient of their input.
int append_shared_experts(NetworkUnit& unit, ExpertHalf& half);
int append_shared_experts_gradient(NetworkUnit& unit, const ExpertHalf& half,
                                   Operand branch_gradient);

}  // namespace trainyard
