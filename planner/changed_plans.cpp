// Which plan of a list an improvement changed.
#include "planner/improvement.h"
#include "planner/search/ranking.h"

namespace trainyard {

std::optional<std::size_t> place_of_changed(const Improvement& improvement,
                                            const std::vector<Candidate>& plans) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (same_choices(plans[i].plan, improvement.of)) return i;
  }
  return std::nullopt;
}

bool same_split(const Plan& a, const Plan& b) {
  return a.tensor_parallel == b.tensor_parallel && a.context_parallel == b.context_parallel &&
         a.pipeline_parallel == b.pipeline_parallel && a.expert_parallel == b.expert_parallel &&
         a.expert_tensor_parallel == b.expert_tensor_parallel && a.data_parallel == b.data_parallel;
}

}  // namespace trainyard
