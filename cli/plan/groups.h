// `trainyard plan` of a cluster with groups of unlike nodes: stages on each, replicas on each, one
// of them alone.
#pragma once

#include <filesystem>

#include "cli/command.h"
#include "cli/text/layout/style.h"
#include "planner/findings/findings.h"
#include "scenarios/question.h"

namespace trainyard {

struct GroupAnswerOptions {
  int top = 5;  // plans to show
  Objective objective = Objective::step_time;
  std::optional<Objective> second;  // the front of both
  bool robust = false;
  Seconds time_limit{0};
  Format format = Format::text;
  std::vector<PinnedKey> pinned;  // why not these? Empty: not asked
  std::filesystem::path out;      // empty: the best plan is not written
};

// The best plan as sweeps, lives and comparisons take it, with progress; Ctrl-C ends the search.
// Requires: scenario.unlike.
Expected<UnlikeAnswer> search_groups(const Scenario& scenario);

// `file`: of the question. Requires: question.scenario.unlike. Returns the exit status.
int answer_for_groups(const std::filesystem::path& file, const Question& question,
                      const GroupAnswerOptions& options);

// `trainyard estimate` of the same: of its plan, or of the best.
int estimate_of_groups(const std::filesystem::path& file, const Question& question, Format format);

}  // namespace trainyard
