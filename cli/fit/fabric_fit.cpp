#include "cli/fit/fabric_fit.h"

#include <fmt/format.h>

#include "cli/text/kernels.h"
#include "scenarios/json/output_file.h"
#include "scenarios/machine/fabric_document.h"

namespace trainyard {
namespace {

std::string check_text(const FabricFitRequest& request, const FabricToFit& fabric,
                       const KernelFileReport& report) {
  switch (request.format) {
    case Format::json:
      return kernel_check_json(fabric.name, {report});
    case Format::csv:
      return kernels_csv({report});
    case Format::text:
      break;
  }
  return kernels_text({report}, style_for(stdout));
}

std::string fit_text(const FabricFitRequest& request, const FabricToFit& fabric,
                     const FabricFit& fit) {
  switch (request.format) {
    case Format::json:
      return fabric_fit_json(fabric, fit);
    case Format::csv:
      return kernels_csv({fit.cross_validated});
    case Format::text:
      break;
  }
  return kernel_fit_text({fit.fitted}, {fit.cross_validated}, request.out, style_for(stdout));
}

}  // namespace

int fit_or_check_fabric(const FabricFitRequest& request) {
  const auto fabric = read_fabric(request.fabric, "--fabric");
  if (!fabric) return fail(fabric.error());
  const auto rows = read_fabric_rows(request.file, fabric->source);
  if (!rows) return fail(rows.error());
  if (const auto possible = check_fabric_times(*fabric, *rows); !possible) {
    return fail(possible.error());
  }
  if (request.out.empty()) {
    return print(check_text(request, *fabric, check_fabric_rows(*fabric, *rows)), kDone);
  }
  const auto fit = fit_fabric_rows(*fabric, *rows, request.date);
  if (!fit) return fail(fit.error());
  const std::string text = fabric_document(*fabric, *fit);
  if (const auto reads = check_fabric_document(text, request.out); !reads) {
    return fail(reads.error());
  }
  if (const auto written = write_file(request.out, text); !written) {
    return fail(written.error(), kMachineFailed);
  }
  return print(fit_text(request, *fabric, *fit), kDone);
}

}  // namespace trainyard
