// How well a device's parameters predict tables of measured kernels: errors over each file and its
// regions, beside a baseline of one attainable fraction and one launch for each group; and the fit
// of a device to tables, cross-validated by shape. Errors are |predicted / measured − 1|.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/cluster/device.h"
#include "model/expected.h"
#include "scenarios/kernels/families.h"
#include "scenarios/kernels/tables.h"
#include "scenarios/text/svg_scatter.h"

namespace trainyard {

struct KernelErrors {
  int rows = 0;
  double mape = 0, median = 0, p90 = 0;
  std::optional<double> baseline_mape;
};

struct KernelRegion {
  std::string group;   // empty: all groups
  std::string region;  // empty: all regions
  KernelErrors errors;
};

struct KernelFileReport {
  std::string file;
  std::string family;
  KernelErrors errors;
  std::vector<KernelRegion> regions;
  std::vector<ScoredKernel> kernels;
};

// The errors of `kernels`, and of their groups and regions. Each of these has its own baseline,
// fitted to exactly its rows (model/calibration/roof_baseline.h).
KernelFileReport summarise_kernels(std::string file, std::string_view family,
                                   std::vector<ScoredKernel> kernels);

// Scores the stored parameters.
Expected<std::vector<KernelFileReport>> check_kernels(const Device& device,
                                                      const std::vector<KernelTable>& tables);

struct KernelFit {
  Device device;
  std::vector<KernelFileReport> files;  // scores of the fitted parameters, which saw these rows
  // One for each family: each row scored by a fit without its shape; `file` lists the family's
  // files.
  std::vector<KernelFileReport> cross_validated;
  // For each fit, where in the device's document its origin is noted (JSON pointer), and the note.
  std::vector<std::pair<std::string, std::string>> provenance;
};

inline constexpr int kKernelFolds = 5;

// Fits the families of `tables` anew. The other parameters of `device` stay, except the widening of
// its intervals, which ends once it has GEMMs of its own. `date` goes into the provenance.
Expected<KernelFit> fit_kernels(const Device& device, const std::vector<KernelTable>& tables,
                                std::string_view date, const FitProgress& progress);

// The outputs of `trainyard fit --check` and `trainyard fit` as JSON.
std::string kernel_check_json(std::string_view device, const std::vector<KernelFileReport>& files);
std::string kernel_fit_json(std::string_view device, const KernelFit& fit);

// The error of each kernel over its measured time.
ScatterChart residual_chart(std::string_view device, const std::vector<KernelFileReport>& files);

}  // namespace trainyard
