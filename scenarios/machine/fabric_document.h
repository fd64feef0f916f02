// Reads a fabric that the command line names and the collectives across nodes that it is fitted to
// and scored on, and writes the fitted fabric as a document that says where each figure comes from.
//
// The data is one JSON object with `rows` as nccl-tests and others print them: `op`, `nodes`,
// `gpus`, `bytes`, `time_us` (or `busbw_gb_per_s`), `source`; rows of an expert-parallel dispatch
// have `bandwidth_gb_per_s` and their shape in `config`. A fabric uses the rows across nodes of the
// source that its `measured` names; such a row without nodes, operation, size and time is an error,
// with its place. Rows of other sources are not checked.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/calibration/fit_fabric.h"
#include "model/expected.h"
#include "scenarios/json/json_document.h"
#include "scenarios/kernels/report.h"

namespace trainyard {

struct FabricToFit {
  std::string name;
  std::string source;     // source of the rows
  FabricProblem problem;  // one node and the fabric before the fit
  Json value;             // as written, without its tag
};

// Reads a fabric by its catalog name or a path relative to the working folder. `asker` is the
// option that gave `reference` ("--fabric"); errors name it. Fails if the document does not say
// what it was measured on.
Expected<FabricToFit> read_fabric(const std::string& reference, std::string_view asker);

struct FabricRows {
  std::string file;
  std::vector<FabricSample> samples;
  std::vector<std::string> places;  // where each sample's time is from: file and pointer
  std::string digest;               // of the file's bytes
};
Expected<FabricRows> read_fabric_rows(const std::filesystem::path& file, std::string_view source);

// Fails at the first row whose time is not credible: its bytes from other nodes arrive faster than
// kAboveDatasheet times the bandwidth of a node's NICs, or take more than kAboveRoofs times what
// that bandwidth and a launch take (scenarios/kernels/limits.h; the slowest row of the a3-mega
// takes 19 times as long).
Expected<void> check_fabric_times(const FabricToFit& fabric, const FabricRows& rows);

// Scores the stored figures.
KernelFileReport check_fabric_rows(const FabricToFit& fabric, const FabricRows& rows);

struct FabricFit {
  InterNode inter;
  KernelFileReport fitted;  // scores of the fitted figures, which saw these rows
  // Each row scored by a fit without its number of devices if there are several, else without its
  // size and four others.
  KernelFileReport cross_validated;
  std::string provenance;
};
Expected<FabricFit> fit_fabric_rows(const FabricToFit& fabric, const FabricRows& rows,
                                    std::string_view date);

// A complete fabric/1 document: `fabric` with the fitted figures and their provenance.
std::string fabric_document(const FabricToFit& fabric, const FabricFit& fit);

// Checks that `text`, which is to be written to `file`, reads back.
Expected<void> check_fabric_document(const std::string& text, const std::filesystem::path& file);

// The output of `trainyard fit --fabric … --format json`.
std::string fabric_fit_json(const FabricToFit& fabric, const FabricFit& fit);

}  // namespace trainyard
