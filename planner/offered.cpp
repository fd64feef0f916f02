#include "planner/offered.h"

#include <algorithm>

namespace trainyard {

bool offers_zero_stage(const Stack& stack, int zero_stage, int pipeline_parallel) {
  const bool in_pipeline = pipeline_parallel > 1 && !stack.pipeline_zero_stages.empty();
  const std::vector<int>& known = in_pipeline ? stack.pipeline_zero_stages : stack.zero_stages;
  return known.empty() || std::ranges::find(known, zero_stage) != known.end();
}

int repeated_layers_step(const Stack& stack, int virtual_stages) {
  switch (stack.partial_recompute) {
    case PartialRecompute::by_stage:
      return 1;
    case PartialRecompute::by_chunk:
      return virtual_stages;
    case PartialRecompute::none:
      break;
  }
  return 0;
}

bool offers_recompute(const Stack& stack, const Plan& plan) {
  if (stack.partial_recompute == PartialRecompute::by_stage) return true;
  if (!plan.recompute_per_stage.empty()) return false;
  const int layers = plan.recompute.full_layers;
  const int step = repeated_layers_step(stack, plan.virtual_stages);
  return layers == 0 || (step > 0 && layers % step == 0);
}

bool may_repeat(const SearchSpace& space, const Stack& stack, const Plan& plan) {
  return !space.recompute.empty() || offers_recompute(stack, plan);
}

bool may_repeat_by_stage(const SearchSpace& space, const Stack& stack) {
  return space.recompute.empty() && stack.partial_recompute == PartialRecompute::by_stage;
}

}  // namespace trainyard
