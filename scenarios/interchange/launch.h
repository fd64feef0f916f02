// Files that start a plan on a SLURM cluster with every rank on the device that the plan means: a
// hostfile with a line for each rank, and an sbatch script that reads it. Every text from a
// scenario is put in single quotes, because a shell reads it.
#pragma once

#include <string>
#include <vector>

#include "model/expected.h"
#include "model/plan/plan.h"
#include "scenarios/scenario.h"

namespace trainyard {

struct ExportedFile {
  std::string name;
  std::string text;
};

struct Exported {
  std::vector<ExportedFile> files;
  std::vector<std::string> notes;  // what the user of the files has to do
};

// The output of `trainyard export`: the files that were written, and what their user has to do.
std::string exported_json(const std::vector<std::string>& files,
                          const std::vector<std::string>& notes);

// The device of each of the framework's ranks, if the framework numbers ranks in `order`
// ("tp-cp-dp-pp") and the plan in its rank_order. Fails if the groups of experts differ between the
// two orders, so that no placement gives those of the plan.
Expected<std::vector<int>> rank_devices(const Plan& plan, const Transformer& model,
                                        std::string_view order);

// A line "node device" for each rank.
ExportedFile hostfile(const std::vector<int>& devices, int devices_per_node);

struct Launch {
  std::string framework;             // its name, for the reader of the script
  std::vector<std::string> program;  // words of the command, to be quoted
  std::string extra;                 // shell text that follows them, unquoted
  // Sets CUDA_DEVICE_MAX_CONNECTIONS=1 unless the user has set it: then kernels of all streams
  // start in the order of their launch.
  bool one_connection = false;
};
ExportedFile sbatch_script(const Scenario& scenario, const Plan& plan, const Launch& launch);

}  // namespace trainyard
