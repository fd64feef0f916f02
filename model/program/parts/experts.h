// The half of a layer that has experts: a copy of each token goes to the ranks of its experts,
// passes their MLPs and comes back. Internal to model/program.
#pragma once

#include "model/program/parts/mlp.h"

namespace trainyard {

// Numbers of rows as the plan expects them; at run time the routing decides.
struct RoutedRows {
  std::int64_t copies = 0;    // of this rank's tokens, one for each of their experts
  std::int64_t received = 0;  // that this rank receives
  std::int64_t all = 0;  // for its experts, with those received by ranks that share the experts
  double each = 0;       // for one expert
  int local = 1;         // number of experts of this rank
  bool sorts = false;    // an expert's rows come in several pieces, from several ranks
};

struct ExpertHalf {
  Branch branch;
  RoutedRows rows;
  LinearPart router;
  Parameter correction;  // bias of the choice of experts, not of the gates; −1: none
  Parameter down_bias;   // of each expert's down projection
  int logits = -1;
  int routing = -1;  // indices of the experts of each token
  // Rows by expert of this rank's copies; rows by source and expert as received, and with those of
  // the ranks that share the experts.
  int sent_counts = -1, received_counts = -1, counts = -1;
  int received_gates = -1;
  int input = -1;  // of the experts: sorted by expert, as their first GEMM reads it
  MlpPart mlp;     // with the gates of its rows
  MlpPart shared;
};

ExpertHalf append_experts(NetworkUnit& unit, const LayerMiddle& middle);
void append_experts_gradient(NetworkUnit& unit, const ExpertHalf& half);

// Forward: returns the output of the shared experts for this rank's tokens. Backward: returns the
// gradient of their input.
int append_shared_experts(NetworkUnit& unit, ExpertHalf& half);
int append_shared_experts_gradient(NetworkUnit& unit, const ExpertHalf& half,
                                   Operand branch_gradient);

}  // namespace trainyard
