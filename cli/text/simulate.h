// A simulation for people: the step as an estimate shows it, what the critical path is made of,
// what stages and links did.
#pragma once

#include <string>

#include "cli/text/csv.h"
#include "cli/text/layout/style.h"
#include "scenarios/question.h"
#include "simulator/step.h"

namespace trainyard {

std::string simulation_report(const Question& question, const Plan& plan,
                              const StepSimulation& simulation, const Style& style);

}  // namespace trainyard
