#include "cli/text/kernels.h"

#include <fmt/format.h>

#include "cli/text/csv.h"
#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"

namespace trainyard {
namespace {

std::vector<std::string> table_row(const std::string& name, const KernelErrors& errors) {
  return {name,
          count(errors.rows),
          percent(errors.mape),
          percent(errors.median),
          percent(errors.p90),
          errors.baseline_mape ? percent(*errors.baseline_mape) : "–"};
}

std::string region_name(const KernelRegion& region) {
  const std::string between = region.group.empty() || region.region.empty() ? "" : " ";
  return "  " + region.group + between + region.region;
}

CsvRow csv_line(const KernelFileReport& file, const KernelRegion& region) {
  const KernelErrors& errors = region.errors;
  return {{"file", file.file},
          {"family", file.family},
          {"group", region.group},
          {"region", region.region},
          {"rows", fmt::format("{}", errors.rows)},
          {"mape", csv_number(errors.mape)},
          {"median", csv_number(errors.median)},
          {"p90", csv_number(errors.p90)},
          {"baseline_mape", csv_number(errors.baseline_mape)}};
}

}  // namespace

std::string kernels_text(const std::vector<KernelFileReport>& files, const Style& style) {
  Table table({{"kernels", "", Align::left},
               {"rows"},
               {"mean error", "%"},
               {"median", "%"},
               {"90 % below", "%"},
               {"one fraction", "%"}});
  for (const KernelFileReport& file : files) {
    const std::string name = std::filesystem::path(file.file).filename().string();
    table.add_row(table_row(style.strong(name), file.errors));
    for (const KernelRegion& region : file.regions) {
      table.add_row(table_row(region_name(region), region.errors));
    }
  }
  return table.render(style) +
         style.faint(
             "one fraction: the error of one launch and one attainable fraction of the datasheet's "
             "roofs, fitted to the same rows") +
         "\n";
}

std::string kernel_fit_text(const std::vector<KernelFileReport>& fitted,
                            const std::vector<KernelFileReport>& held_back,
                            const std::filesystem::path& out, const Style& style) {
  return fmt::format("{}\n{}\n{}\n{}\nwritten to {}\n",
                     style.strong("On the rows that were fitted"), kernels_text(fitted, style),
                     style.strong("On shapes held back, in turn"), kernels_text(held_back, style),
                     out.string());
}

std::string kernels_csv(const std::vector<KernelFileReport>& files) {
  std::vector<CsvRow> rows;
  for (const KernelFileReport& file : files) {
    rows.push_back(csv_line(file, {"", "", file.errors}));
    for (const KernelRegion& region : file.regions) rows.push_back(csv_line(file, region));
  }
  return csv_text(rows);
}

}  // namespace trainyard
