// What `trainyard plan` tells people: the best plans side by side, the winner in detail, why the
// others lost, and how much of the space was looked at.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/explain_option.h"
#include "cli/question.h"
#include "cli/style.h"
#include "planner/improvement.h"
#include "planner/planner.h"

namespace trainyard {

// What `--explain` asked for: the best plan with these keys, or why there is none.
struct Explained {
  std::vector<PinnedKey> pinned;
  std::optional<Candidate> candidate;  // the best of them; one that does not fit when none does
  std::string reason;                  // without a candidate
};

struct PlanAnswer {
  SearchResult result;
  std::optional<Candidate> baseline;  // the rule of thumb
  std::optional<Explained> explained;
  std::optional<Improvement> improvement;
  Objective objective = Objective::step_time;
  Seconds wall_time;
};

std::string plan_report(const Question& question, const PlanAnswer& answer, const Style& style);

}  // namespace trainyard
