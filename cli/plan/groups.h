// `trainyard plan` for a cluster with groups of unlike nodes. A plan uses the groups as stages of
// one pipeline, as replicas, together as one cluster, or one of them alone.
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
  std::optional<Objective> second;  // with it, the Pareto front of both objectives
  bool robust = false;
  Seconds time_limit{0};
  Format format = Format::text;
  std::vector<PinnedKey> pinned;  // of `--explain`; empty: not given
  std::filesystem::path out;      // empty: the best plan is not written
};

// The best plan, for commands that need one plan; shows progress, and Ctrl-C ends the search.
// Requires: scenario.unlike.
Expected<UnlikeAnswer> search_groups(const Scenario& scenario);

// Searches, prints the answer and returns the exit status. `file` is the scenario's. Requires:
// question.scenario.unlike.
int answer_for_groups(const std::filesystem::path& file, const Question& question,
                      const GroupAnswerOptions& options);

// `trainyard estimate` for such a cluster: prices the scenario's plan, or the best one.
int estimate_of_groups(const std::filesystem::path& file, const Question& question, Format format);

}  // namespace trainyard
