// Makes a profile of a run from the boards of its ranks: measured beside predicted times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/rank_run.h"
#include "executor/supervision/board.h"
#include "model/program/profile.h"
#include "scenarios/question.h"

namespace trainyard {

// The profile of a run. The predictions are those of simulating the question's plan, where it can
// be simulated; for a rank that runs alone, of simulating that rank alone.
Profile profile_of(const Question& question, const Setting& setting, const RunPlan& run,
                   std::vector<std::optional<Board>>& boards);

// A trace of the last step of every rank that has done one, as predicted and as measured: its
// operations, the memory of the program's buffers (each from the begin of the operation that makes
// it to the end of the last that needs it) and the load of its messages.
std::string run_trace(const Question& question, const Setting& setting, const RunPlan& run,
                      std::vector<std::optional<Board>>& boards);

}  // namespace trainyard
