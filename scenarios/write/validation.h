// Predicted against measured as JSON (estimate.h says the rules of all).
#pragma once

#include <string>

#include "scenarios/validation.h"

namespace trainyard {

// `trainyard validate`.
std::string validation_json(const ValidationReport& report);

}  // namespace trainyard
