// A validation as text: errors of the predictions by file, device, size and parallelism, how well
// plans of one job are ranked, and the worst rows; on request every row.
#pragma once

#include <string>

#include "cli/text/layout/style.h"
#include "scenarios/validation.h"

namespace trainyard {

enum class ValidationDetail { summary, every_row };

std::string validation_text(const ValidationReport& report, ValidationDetail detail,
                            const Style& style);

}  // namespace trainyard
