// Errors of kernels for people, and as CSV: a row for every file, group and region.
#pragma once

#include <string>
#include <vector>

#include "cli/style.h"
#include "scenarios/kernel_report.h"

namespace trainyard {

std::string kernels_text(const std::vector<KernelFileReport>& files, const Style& style);
std::string kernels_csv(const std::vector<KernelFileReport>& files);

}  // namespace trainyard
