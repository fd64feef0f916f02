// The answers that come with plans for groups of unlike nodes (planner/findings/findings.h for
// alike ones). Plain values: the command fills them, text and JSON show them.
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

// Answers "why not this plan?": what a search finds with some keys pinned.
struct GroupedExplained {
  std::vector<PinnedKey> pinned;
  GroupedPlans found;
};

// A plan as people make it without a planner.
struct GroupedPlanBaseline {
  std::string_view name;
  std::optional<GroupedPlan> plan;  // nothing: not legal for this job
  std::string reason;               // why it is not legal or does not fit; empty: it does
};

struct GroupedFindings {
  std::optional<GroupedExplained> explained;  // where it was asked for
  std::string written;                        // the file with the first plan; empty: none
  std::vector<std::string> notes;             // on options that had no effect
  std::vector<GroupedWayOut> ways_out;        // where nothing fits
  std::vector<GroupedPlanBaseline> baselines;
  std::vector<GroupedMarginalValue> marginal;  // empty: nothing fits, or the search was stopped
};

}  // namespace trainyard
