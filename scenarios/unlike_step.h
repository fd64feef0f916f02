// The simulated step of a job on groups of unlike nodes, whose stages make one pipeline.
#pragma once

#include "scenarios/unlike_answer.h"
#include "simulator/step.h"

namespace trainyard {

struct UnlikeStep {
  StepSimulation simulation;
  // The answer with the simulated step, breakdown, memory and bill. Its estimate has stages too.
  UnlikeAnswer answer;
  Seconds estimated;  // step time of the same plan by the estimate
};

// Requires: `answer` comes from answer_of_groups for the same job and settings. Fails where its
// plan is no pipeline, and as simulate() of simulator/step.h does.
Expected<UnlikeStep> simulate_groups(const GroupedJob& job, const Scenario& settings,
                                     UnlikeAnswer answer, const StepOptions& options);

// The device of the stage that takes the largest share of its memory.
const Device& fullest_device(const UnlikeCluster& cluster, const UnlikeStep& step);

}  // namespace trainyard
