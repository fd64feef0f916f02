#include "model/program/profile.h"

namespace trainyard {

Seconds mean_step_time(const Profile& profile) {
  Seconds total;
  const auto first = static_cast<std::size_t>(profile.warmup_steps);
  if (profile.steps.size() <= first) return total;
  for (std::size_t i = first; i < profile.steps.size(); ++i) total += profile.steps[i].time;
  return total / static_cast<double>(profile.steps.size() - first);
}

}  // namespace trainyard
