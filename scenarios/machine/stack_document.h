// A stack as the command line names it, the published runs it is fitted to, and the fitted stack as
// a document that says where each figure comes from.
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
  Json value;  // as it was written, tag taken off
};

// A catalog name, or a path relative to the working folder. `asker` is whose value `reference` is
// ("--stack"), for the error line.
Expected<StackDocument> read_stack(const std::string& reference, std::string_view asker);

// The rows of validation files that ran on the stack of that name and can be priced, with `stack`
// in the place of the catalog's. A row's source is its file's name. An error where there is none.
Expected<std::vector<MeasuredRun>> runs_on(const Stack& stack,
                                           const std::vector<std::filesystem::path>& files);

struct SourceError {
  std::string source;
  int rows = 0;
  double mape = 0;
};
// By source, in the order of their first run. Requires: the fit is one to `runs`.
std::vector<SourceError> errors_by_source(std::span<const MeasuredRun> runs, const StackFit& fit);

// A complete stack/1 document: `original` with the fitted parameters to four digits, what the runs
// were like, and the provenance of each figure. Its interval stays.
std::string stack_document(const StackDocument& original, std::span<const MeasuredRun> runs,
                           const StackFit& fit, std::string_view date);

// Whether `text`, which is to be written to `file`, reads back; the error says where it does not.
Expected<void> check_stack_document(const std::string& text, const std::filesystem::path& file);

// `trainyard fit --stack … --format json`.
std::string stack_fit_json(const Stack& stack, std::span<const MeasuredRun> runs,
                           const StackFit& fit);

}  // namespace trainyard
