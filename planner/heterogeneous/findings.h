// What people ask beside the plans of groups of unlike nodes (planner/findings/findings.h for alike
// ones). Values: the command fills them, text and JSON show them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/findings/findings.h"
#include "planner/heterogeneous/groups.h"
#include "planner/heterogeneous/marginal.h"
#include "planner/heterogeneous/ways_out.h"

namespace trainyard {

// Why not these: what is found with some keys pinned.
struct GroupedExplained {
  std::vector<PinnedKey> pinned;
  GroupedPlans found;
};

// What people do without a planner.
struct GroupedPlanBaseline {
  std::string_view name;
  std::optional<GroupedPlan> plan;  // nothing: not legal for this job
  std::string reason;               // why it is not, or does not fit; empty: it is and does
};

// What is said beside the plans: the best with pinned keys, where that was asked; the file that has
// the first, if any; and of options that had nothing to work on.
struct GroupedFindings {
  std::optional<GroupedExplained> explained;
  std::string written;
  std::vector<std::string> notes;
  std::vector<GroupedWayOut> ways_out;  // where nothing fits
  std::vector<GroupedPlanBaseline> baselines;
  std::vector<GroupedMarginalValue> marginal;  // empty: nothing fits, or the search was stopped
};

}  // namespace trainyard
