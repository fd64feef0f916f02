// How many micro-batches the replicas of unlike groups take, so that the slowest group ends as
// early as it can: every replica of a group as many, at least one, and all of the batch. Exact.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "model/units.h"

namespace trainyard {

struct SplitGroup {
  int replicas = 1;
  // Of a step with so many micro-batches a replica: never falls with them; infinite where they do
  // not fit. Asked for few of them, for each once.
  std::function<Seconds(int)> time;
};

// Micro-batches of a replica of each group; empty: there is no way, or none that fits and lets all
// groups end before `worth`.
// Requires: at least one group, each with a replica.
std::vector<int> split_batch(const std::vector<SplitGroup>& groups, std::int64_t microbatches,
                             Seconds worth = Seconds(std::numeric_limits<double>::infinity()));

}  // namespace trainyard
