// The program of one rank as JSON (`trainyard program`).
#pragma once

#include <string>

#include "model/plan/plan.h"
#include "model/program/program.h"
#include "model/program/rank_layout.h"
#include "scenarios/scenario.h"

namespace trainyard {

// Operations in their order, each with what it reads, writes and frees; the groups of the rank are
// listed once and named by the collectives. Requires: 0 <= rank < layout.ranks().
std::string program_json(const Scenario& scenario, const Plan& plan, const Program& program,
                         const RankLayout& layout, int rank);

}  // namespace trainyard
