#include "model/program/parts/recompute.h"

namespace trainyard {

bool repeats_core(const Training& training, const Plan& plan) {
  return plan.recompute.mode == RecomputeMode::selective &&
         training.stack.selective == SelectiveRecompute::core_attention &&
         !training.stack.flash_attention;
}

bool repeats_layer(const Training& training, const Plan& plan, int local_layer) {
  switch (plan.recompute.mode) {
    case RecomputeMode::full:
      return plan.recompute.full_layers == 0 || local_layer < plan.recompute.full_layers;
    case RecomputeMode::selective:
      return training.stack.selective == SelectiveRecompute::half_of_layers && local_layer % 2 == 0;
    case RecomputeMode::none:
    case RecomputeMode::automatic:
      break;
  }
  return false;
}

}  // namespace trainyard
