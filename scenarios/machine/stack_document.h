// Reads a stack that the command line names and the published runs that it is fitted to, and writes
// the fitted stack as a document that says where each figure comes from.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/calibration/fit_stack.h"
#include "model/expected.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

struct StackDocument {
  Stack stack;
  Json value;  // as written, without its tag
};

// Reads a stack by its catalog name or a path relative to the working folder. `asker` is the option
// that gave `reference` ("--stack"); errors name it.
Expected<StackDocument> read_stack(const std::string& reference, std::string_view asker);

// The rows of validation files that ran on the stack of this name and can be priced, with `stack`
// in place of the catalog's. A row's source is the name of its file. Fails if there are none.
Expected<std::vector<MeasuredRun>> runs_on(const Stack& stack,
                                           const std::vector<std::filesystem::path>& files);

struct SourceError {
  std::string source;
  int rows = 0;
  double mape = 0;
};
// The errors by source, in the order of their first run. Requires: `fit` was fitted to `runs`.
std::vector<SourceError> errors_by_source(std::span<const MeasuredRun> runs, const StackFit& fit);

// A complete stack/1 document: `original` with the fitted parameters to four digits, a summary of
// the runs, and the provenance of each figure. The stack's interval stays.
std::string stack_document(const StackDocument& original, std::span<const MeasuredRun> runs,
                           const StackFit& fit, std::string_view date);

// Checks that `text`, which is to be written to `file`, reads back.
Expected<void> check_stack_document(const std::string& text, const std::filesystem::path& file);

// The output of `trainyard fit --stack … --format json`.
std::string stack_fit_json(const Stack& stack, std::span<const MeasuredRun> runs,
                           const StackFit& fit);

}  // namespace trainyard
