// From the boards of the ranks to a profile: measured beside predicted.
#pragma once

#include <optional>
#include <vector>

#include "cli/question.h"
#include "executor/board.h"
#include "executor/rank_run.h"
#include "model/program/profile.h"
#include "scenarios/write_spans.h"

namespace trainyard {

// What the question's plan takes by the simulation is in it too, where it can be simulated.
Profile profile_of(const Question& question, const Setting& setting, const RunPlan& run,
                   std::vector<std::optional<Board>>& boards);

// The last step of every rank that has done one, as predicted and as measured.
std::vector<Span> spans_of(const Question& question, const Setting& setting,
                           std::vector<std::optional<Board>>& boards);

}  // namespace trainyard
