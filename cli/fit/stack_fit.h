// trainyard fit RUNS.json… --stack NAME -o STACK.json
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"

namespace trainyard {

struct StackFitRequest {
  std::vector<std::filesystem::path> files;
  std::string stack;  // catalog name or path
  std::filesystem::path out;
  std::string date;  // for the provenance
  Format format = Format::text;
};

// Fits, writes the document, prints parameters and errors; returns the exit status.
int fit_stack_document(const StackFitRequest& request);

}  // namespace trainyard
