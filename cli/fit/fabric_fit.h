// trainyard fit COLLECTIVES.json --fabric NAME -o FABRIC.json · fit --check … --fabric NAME
#pragma once

#include <filesystem>
#include <string>

#include "cli/command.h"

namespace trainyard {

struct FabricFitRequest {
  std::filesystem::path file;
  std::string fabric;         // catalog name or path
  std::filesystem::path out;  // empty: only report the errors of the stored figures
  std::string date;           // for the provenance
  Format format = Format::text;
};

// Returns the exit status.
int fit_or_check_fabric(const FabricFitRequest& request);

}  // namespace trainyard
