// Files that start a plan on a SLURM cluster with every rank where the plan means it to be: a
// hostfile with a line for each rank, and an sbatch script that reads it. Every text that comes
// from a scenario stands in single quotes: a name is input of a shell.
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
  std::vector<std::string> notes;  // what the files leave to who starts them
};

// `trainyard export`: the files that were written, and what they leave to their user.
std::string exported_json(const std::vector<std::string>& files,
                          const std::vector<std::string>& notes);

// The device of each of the framework's ranks, where the framework numbers ranks in `order`
// ("tp-cp-dp-pp") and the plan in its rank_order. Error: groups of experts that no placement makes.
Expected<std::vector<int>> rank_devices(const Plan& plan, const Transformer& model,
                                        std::string_view order);

// "node device" of each rank.
ExportedFile hostfile(const std::vector<int>& devices, int devices_per_node);

struct Launch {
  std::string framework;             // for the reader
  std::vector<std::string> program;  // words of the command, quoted here
  std::string extra;                 // shell text after them, as it is
  // CUDA_DEVICE_MAX_CONNECTIONS=1, unless the user has set it: kernels start in the order in which
  // they were launched, on all streams.
  bool one_connection = false;
};
ExportedFile sbatch_script(const Scenario& scenario, const Plan& plan, const Launch& launch);

}  // namespace trainyard
