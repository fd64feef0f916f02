// A point of a sweep for real: `trainyard run` in a process of its own, which may fail as it will.
#pragma once

#include "scenarios/sweep/run_sweep.h"

namespace trainyard {

// As `trainyard run SCENARIO` with its defaults; ends early when interrupted.
Expected<HardwareRun> run_in_a_process(const std::string& scenario);

}  // namespace trainyard
