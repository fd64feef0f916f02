// Predictions against measurements as JSON (estimate.h states the rules of all output).
#pragma once

#include <string>

#include "scenarios/validation.h"

namespace trainyard {

// The output of `trainyard validate`.
std::string validation_json(const ValidationReport& report);

}  // namespace trainyard
