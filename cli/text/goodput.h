// The simulated life of a training run, as text and as a row of CSV.
#pragma once

#include <string>

#include "cli/text/csv.h"
#include "cli/text/layout/style.h"
#include "scenarios/question.h"
#include "scenarios/write/goodput.h"

namespace trainyard {

std::string goodput_text(const Question& question, const RunReport& report, const Style& style);
CsvRow goodput_row(const Question& question, const RunReport& report);

}  // namespace trainyard
