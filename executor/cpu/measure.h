// How long the CPU backend's operations take on this machine, one at a time.
#pragma once

#include <string>

#include "executor/measure/samples.h"

namespace trainyard {

// "AMD EPYC, 2596 MHz, Linux 6.1.0, Eigen 3.4.0, compiler 12.2.0": what a measurement is of.
std::string host_provenance();

// Where the budget does not suffice for all, what is needed for a fit and some of the rest; less
// where the user has had enough.
HostSamples measure_host(const MeasureLimits& limits);

}  // namespace trainyard
