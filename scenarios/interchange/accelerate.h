// FSDP and plain DDP as Hugging Face Accelerate configures them: YAML in, YAML out. Keys as in
// accelerate 1.11 (commands/config/config_args.py, utils/dataclasses.py:
// FullyShardedDataParallelPlugin, ParallelismConfig).
//
// The YAML knows neither network, batch nor sequence: a micro-batch of 1 is taken and printed.
#pragma once

#include "scenarios/interchange/launch.h"
#include "scenarios/interchange/scenario_draft.h"
#include "scenarios/scenario.h"

namespace trainyard {

Expected<Imported> import_fsdp(const ForeignFile& file, const ImportSettings& settings);

// Error: what Accelerate's YAML cannot say.
Expected<Exported> export_fsdp(const Scenario& scenario, const Plan& plan);

}  // namespace trainyard
