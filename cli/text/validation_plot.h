// Predicted against measured step times as an SVG chart: both axes logarithmic, a series for each
// file, lines at equality and at ±10 %.
#pragma once

#include <string>

#include "scenarios/validation.h"

namespace trainyard {

std::string validation_plot(const ValidationReport& report);

}  // namespace trainyard
