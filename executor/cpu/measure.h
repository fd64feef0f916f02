// How long the CPU backend's operations take on one thread of this machine, one at a time:
// products, attention, sums and copies. Input of a calibration (executor/measure/calibration.h);
// operations inside whole steps are measured by executor/measure/step_measure.h.
#pragma once

#include <string>

#include "executor/measure/samples.h"

namespace trainyard {

// The machine and software of a measurement, such as "AMD EPYC, 2596 MHz, Linux 6.1.0, Eigen 3.4.0,
// compiler 12.2.0".
std::string host_provenance();

// Measures the operations one by one. Where the budget does not suffice, it measures what a fit
// needs and some of the rest; less if the user interrupts.
HostSamples measure_host(const MeasureLimits& limits);

}  // namespace trainyard
