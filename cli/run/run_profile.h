// From the boards of the ranks to a profile: measured beside predicted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/rank_run.h"
#include "executor/supervision/board.h"
#include "model/program/profile.h"
#include "scenarios/question.h"

namespace trainyard {

// What the question's plan takes by the simulation is in it too, where it can be simulated; of a
// rank alone what that takes alone.
Profile profile_of(const Question& question, const Setting& setting, const RunPlan& run,
                   std::vector<std::optional<Board>>& boards);

// The last step of every rank that has done one, as predicted and as measured, as a trace: its
// operations, the memory of the program's buffers (taken when the operation that makes one begins,
// given back when the last that needs it ends) and what its messages carry.
std::string run_trace(const Question& question, const Setting& setting, const RunPlan& run,
                      std::vector<std::optional<Board>>& boards);

}  // namespace trainyard
