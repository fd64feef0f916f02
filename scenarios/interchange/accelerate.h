// FSDP and plain DDP as Hugging Face Accelerate configures them: its YAML as a scenario, and a plan
// as its YAML. Keys as in accelerate 1.11 (commands/config/config_args.py, utils/dataclasses.py:
// FullyShardedDataParallelPlugin, ParallelismConfig).
//
// The YAML has neither network nor batch nor sequence length. A micro-batch of 1 is assumed and
// reported.
#pragma once

#include "scenarios/interchange/launch.h"
#include "scenarios/interchange/scenario_draft.h"
#include "scenarios/scenario.h"

namespace trainyard {

Expected<Imported> import_fsdp(const ForeignFile& file, const ImportSettings& settings);

// Fails with the first part of the plan that Accelerate's YAML cannot express.
Expected<Exported> export_fsdp(const Scenario& scenario, const Plan& plan);

}  // namespace trainyard
