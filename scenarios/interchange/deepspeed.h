// DeepSpeed: its JSON as a scenario, and a plan as its JSON. Keys as in DeepSpeed 0.17
// (docs/_pages/config-json.md, deepspeed/runtime/config.py, deepspeed/runtime/zero/config.py).
//
// The JSON knows neither the network nor the sequence. "auto" is what the Hugging Face Trainer
// fills in: its defaults are taken and printed. Recomputation is switched on in the model's code;
// the section activation_checkpointing with number_checkpoints stands for it here.
#pragma once

#include "scenarios/interchange/launch.h"
#include "scenarios/interchange/scenario_draft.h"
#include "scenarios/scenario.h"

namespace trainyard {

Expected<Imported> import_deepspeed(const ForeignFile& file, const ImportSettings& settings);

// Error: what DeepSpeed's JSON cannot say.
Expected<Exported> export_deepspeed(const Scenario& scenario, const Plan& plan);

}  // namespace trainyard
