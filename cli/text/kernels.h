// Errors of predicted kernel times: as text, and as CSV with a row for every file, group and
// region.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/text/layout/style.h"
#include "scenarios/kernels/report.h"

namespace trainyard {

std::string kernels_text(const std::vector<KernelFileReport>& files, const Style& style);
// The result of a fit: its errors on the rows that it saw, and on those held back.
std::string kernel_fit_text(const std::vector<KernelFileReport>& fitted,
                            const std::vector<KernelFileReport>& held_back,
                            const std::filesystem::path& out, const Style& style);
std::string kernels_csv(const std::vector<KernelFileReport>& files);

}  // namespace trainyard
