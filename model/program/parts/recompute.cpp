#include "model/program/parts/recompute.h"

namespace trainyard {
namespace {

Repeats selective_repeats(const Stack& stack, int local_layer) {
  switch (stack.selective) {
    case SelectiveRecompute::core_attention:
      return stack.flash_attention ? Repeats::nothing : Repeats::attention_core;
    case SelectiveRecompute::half_of_layers:
      return local_layer % 2 == 0 ? Repeats::everything : Repeats::nothing;
    case SelectiveRecompute::every_second_matmul:
      break;
  }
  return Repeats::every_second_matmul;
}

}  // namespace

Repeats repeats_of(const Training& training, const Plan& plan, int stage, int local_layer) {
  const Recompute recompute = recompute_of(plan, stage);
  switch (recompute.mode) {
    case RecomputeMode::full:
      return recompute.full_layers == 0 || local_layer < recompute.full_layers ? Repeats::everything
                                                                               : Repeats::nothing;
    case RecomputeMode::selective:
      return selective_repeats(training.stack, local_layer);
    case RecomputeMode::none:
    case RecomputeMode::automatic:
      break;
  }
  return Repeats::nothing;
}

}  // namespace trainyard
