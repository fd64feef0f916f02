// Splits the batch over the replicas of unlike groups so that the slowest group ends as early as
// possible. All replicas of a group take the same number of micro-batches, at least one, and
// together they take the whole batch. Exact. Example: two groups of one replica each, one of them
// twice as fast, split 12 micro-batches into 8 and 4.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "model/units.h"

namespace trainyard {

struct SplitGroup {
  int replicas = 1;
  // Time of a step with so many micro-batches a replica; infinite where they do not fit. It is
  // asked for few numbers, for each once. Requires: it never falls with the number.
  std::function<Seconds(int)> time;
};

// Micro-batches of a replica of each group; empty where no split is possible, or none fits and lets
// all groups end before `worth`.
// Requires: at least one group, each with a replica.
std::vector<int> split_batch(const std::vector<SplitGroup>& groups, std::int64_t microbatches,
                             Seconds worth = Seconds(std::numeric_limits<double>::infinity()));

}  // namespace trainyard
