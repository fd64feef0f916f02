// The program of one rank as JSON, the output of `trainyard program`.
#pragma once

#include <string>

#include "model/plan/plan.h"
#include "model/program/program.h"
#include "model/program/rank_layout.h"
#include "scenarios/scenario.h"

namespace trainyard {

// The rank's operations in order, each with what it reads, writes and frees. The groups of the rank
// are listed once, and collectives refer to them. Requires: 0 <= rank < layout.ranks().
std::string program_json(const Scenario& scenario, const Plan& plan, const Program& program,
                         const RankLayout& layout, int rank);

}  // namespace trainyard
