// A simulation as text: the step as an estimate shows it, the parts of the critical path, and what
// stages and links did.
#pragma once

#include <string>

#include "cli/text/csv.h"
#include "cli/text/layout/style.h"
#include "scenarios/question.h"
#include "scenarios/unlike_step.h"
#include "simulator/step.h"

namespace trainyard {

std::string simulation_report(const Question& question, const Plan& plan,
                              const StepSimulation& simulation, const Style& style);
// The same for a pipeline through groups of unlike nodes.
std::string grouped_simulation_report(const Question& question, const UnlikeStep& step,
                                      const Style& style);

}  // namespace trainyard
