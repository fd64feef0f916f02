// `trainyard plan` of a cluster with two groups of unlike nodes: through both, replicas on each,
// one of them alone.
#pragma once

#include "cli/command.h"
#include "cli/question.h"

namespace trainyard {

struct GroupAnswerOptions {
  int top = 5;  // plans to show
  Seconds time_limit{0};
  Format format = Format::text;
};

// Requires: question.scenario.unlike. Returns the exit status.
int answer_for_groups(const Question& question, const GroupAnswerOptions& options);

}  // namespace trainyard
