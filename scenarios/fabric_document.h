// A fabric as the command line names it, the collectives across nodes that it is fitted to and
// scored on, and the fitted fabric as a document that says where each figure comes from.
//
// The data is one JSON object with `rows`, as nccl-tests and others print them: `op`, `nodes`,
// `gpus`, `bytes`, `time_us` (or `busbw_gb_per_s`), `source`; rows of an expert-parallel dispatch
// have `bandwidth_gb_per_s` and their shape in `config`. A fabric takes the rows of the source that
// its `measured` names, those that say nodes, size and time.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/calibration/fit_fabric.h"
#include "model/expected.h"
#include "scenarios/json_document.h"
#include "scenarios/kernel_report.h"

namespace trainyard {

struct FabricToFit {
  std::string name;
  std::string source;     // of the rows
  FabricProblem problem;  // one node and the fabric as it stands
  Json value;             // as it was written, tag taken off
};

// A catalog name, or a path relative to the working folder. `asker` is whose value `reference` is
// ("--fabric"), for the error line. An error where the document does not say what it was measured
// on.
Expected<FabricToFit> read_fabric(const std::string& reference, std::string_view asker);

struct FabricRows {
  std::string file;
  std::vector<FabricSample> samples;
  std::string digest;  // of the file's bytes
};
Expected<FabricRows> read_fabric_rows(const std::filesystem::path& file, std::string_view source);

// The stored figures scored.
KernelFileReport check_fabric_rows(const FabricToFit& fabric, const FabricRows& rows);

struct FabricFit {
  InterNode inter;
  KernelFileReport fitted;           // by the fitted figures, which saw these rows
  KernelFileReport cross_validated;  // every row by a fit without its number of devices, where
                                     // there are several; else without its size and four others'
  std::string provenance;
};
Expected<FabricFit> fit_fabric_rows(const FabricToFit& fabric, const FabricRows& rows,
                                    std::string_view date);

// A complete fabric/1 document: `fabric` with the fitted figures and their provenance.
std::string fabric_document(const FabricToFit& fabric, const FabricFit& fit);

// `trainyard fit --fabric … --format json`.
std::string fabric_fit_json(const FabricToFit& fabric, const FabricFit& fit);

}  // namespace trainyard
