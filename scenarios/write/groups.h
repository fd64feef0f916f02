// Plans for groups of unlike nodes as JSON (`trainyard plan` of a cluster with `groups`).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/findings/findings.h"
#include "planner/heterogeneous/groups.h"
#include "planner/heterogeneous/marginal.h"
#include "planner/heterogeneous/ways_out.h"
#include "scenarios/scenario.h"
#include "scenarios/unlike_answer.h"

namespace trainyard {

// "pipeline", "replicas", "together", "alone".
std::string_view name_of(GroupUse use);

// The groups that no plan can use: their devices do not compute in the precision of the training.
std::vector<std::size_t> groups_without_precision(const Scenario& scenario);

// Why nothing that may be chosen (the planner section, pinned keys) is left of a way to use the
// groups; no full stop.
std::string reason_of(const Scenario& scenario, const LeftOutWay& way);

// Why not these: what is found with some keys pinned.
struct ExplainedGroups {
  std::vector<PinnedKey> pinned;
  GroupedPlans found;
};

// What people do without a planner.
struct GroupBaseline {
  std::string_view name;
  std::optional<GroupedPlan> plan;  // nothing: not legal for this job
  std::string reason;               // why it is not, or does not fit; empty: it is and does
};

// What is said beside the plans: the best with pinned keys, where that was asked; the file that has
// the first, if any; and of options that had nothing to work on.
struct GroupRemarks {
  std::optional<ExplainedGroups> explained;
  std::string written;
  std::vector<std::string> notes;
  std::vector<GroupedWayOut> ways_out;  // where nothing fits
  std::vector<GroupBaseline> baselines;
  std::vector<GroupedMarginalValue> marginal;  // empty: nothing fits, or the search was stopped
};

// `plans`: those of `found` to be shown, best first.
std::string groups_json(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                        const GroupedPlans& found, const GroupRemarks& remarks = {});

// `trainyard estimate`: the keys of a like cluster's, null where groups have no figure in common,
// and the plan as the only entry of `plans`; fits or not.
std::string grouped_estimate_json(const Scenario& scenario, const UnlikeAnswer& answer);

}  // namespace trainyard
