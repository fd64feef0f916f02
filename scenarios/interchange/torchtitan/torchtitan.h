// torchtitan: its TOML as a scenario, and a plan as its TOML. Keys as in
// torchtitan/config/job_config.py of release 0.2.0; keys that 0.2 renamed are also read by their
// names in 0.1.
//
// The network is one that torchtitan has by name and flavour. FSDP shards over dp_shard · cp ranks;
// resharding after forward "never" is ZeRO-2, "always" ZeRO-3. The pipeline is cut by listing the
// modules of each chunk by name.
#pragma once

#include "scenarios/interchange/launch.h"
#include "scenarios/interchange/scenario_draft.h"
#include "scenarios/scenario.h"

namespace trainyard {

Expected<Imported> import_torchtitan(const ForeignFile& file, const ImportSettings& settings);

// Fails with the first part of the plan that torchtitan cannot express.
Expected<Exported> export_torchtitan(const Scenario& scenario, const Plan& plan);

}  // namespace trainyard
