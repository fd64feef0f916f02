// What `trainyard plan` tells people: the best plans side by side, the winner in detail, why the
// others lost, and how much of the space was looked at.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/explain_option.h"
#include "cli/question.h"
#include "cli/style.h"
#include "planner/improvement.h"
#include "planner/marginal.h"
#include "planner/planner.h"
#include "planner/ways_out.h"

namespace trainyard {

// What `--explain` asked for: the best plan with these keys, or why there is none.
struct Explained {
  std::vector<PinnedKey> pinned;
  std::optional<Candidate> candidate;  // the best of them; one that does not fit when none does
  std::string reason;                  // without a candidate
};

// What people do without a planner.
struct Baseline {
  std::string_view name;
  std::optional<Candidate> candidate;  // nothing: not legal for this job
};

struct PlanAnswer {
  SearchResult result;
  std::vector<Baseline> baselines;
  std::vector<MarginalValue> marginal;  // empty: not asked, the search was stopped
  std::vector<WayOut> ways_out;         // when nothing fits
  std::optional<Explained> explained;
  std::optional<Improvement> improvement;
  Objective objective = Objective::step_time;
  std::optional<Objective> second;  // of a Pareto front
  Seconds wall_time;
};

std::string plan_report(const Question& question, const PlanAnswer& answer, const Style& style);

}  // namespace trainyard
