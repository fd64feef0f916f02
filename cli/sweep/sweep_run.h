// Runs a point of a sweep on the hardware: `trainyard run` in a process of its own, so that its
// failure does not end the sweep.
#pragma once

#include "scenarios/sweep/run_sweep.h"

namespace trainyard {

// Runs `trainyard run` with its defaults on the text of a scenario document; ends early when
// interrupted.
Expected<HardwareRun> run_in_a_process(const std::string& scenario);

}  // namespace trainyard
