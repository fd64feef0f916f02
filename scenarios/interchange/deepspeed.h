// DeepSpeed: its JSON as a scenario, and a plan as its JSON. Keys as in DeepSpeed 0.17
// (docs/_pages/config-json.md, deepspeed/runtime/config.py, deepspeed/runtime/zero/config.py).
//
// The JSON has neither the network nor the sequence length. For "auto", which the Hugging Face
// Trainer fills in, the Trainer's defaults are assumed and reported. Recomputation is switched on
// in the network's code, not in the JSON; here the section activation_checkpointing with
// number_checkpoints means it.
#pragma once

#include "scenarios/interchange/launch.h"
#include "scenarios/interchange/scenario_draft.h"
#include "scenarios/scenario.h"

namespace trainyard {

Expected<Imported> import_deepspeed(const ForeignFile& file, const ImportSettings& settings);

// Fails with the first part of the plan that DeepSpeed's JSON cannot express.
Expected<Exported> export_deepspeed(const Scenario& scenario, const Plan& plan);

}  // namespace trainyard
