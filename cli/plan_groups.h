// `trainyard plan` of a cluster with two groups of unlike nodes: through both, replicas on each,
// one of them alone.
#pragma once

#include "cli/command.h"
#include "scenarios/scenario.h"

namespace trainyard {

// Requires: scenario.unlike. Returns the exit status.
int answer_for_groups(const Scenario& scenario, Format format);

}  // namespace trainyard
