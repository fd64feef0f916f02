// The life of a run as text and as a row of CSV.
#pragma once

#include <string>

#include "cli/csv.h"
#include "cli/style.h"
#include "scenarios/question.h"
#include "scenarios/write_goodput.h"

namespace trainyard {

std::string goodput_text(const Question& question, const RunReport& report, const Style& style);
CsvRow goodput_row(const Question& question, const RunReport& report);

}  // namespace trainyard
