// A validation for people: every run, the files, and how well plans of one job are ranked.
#pragma once

#include <string>

#include "cli/style.h"
#include "scenarios/validation.h"

namespace trainyard {

std::string validation_text(const ValidationReport& report, const Style& style);

}  // namespace trainyard
