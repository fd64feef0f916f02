// Megatron-LM: its arguments as a scenario, and a plan as its arguments. Options as in
// megatron/training/arguments.py at commit 000c4ac (2025, after core 0.14), layouts as in
// megatron/core/transformer/pipeline_parallel_layer_layout.py.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/plan/plan.h"
#include "scenarios/interchange/launch.h"
#include "scenarios/interchange/scenario_draft.h"
#include "scenarios/scenario.h"

namespace trainyard {

// Reads a command line or script, or YAML if the file's first line is a key.
Expected<Imported> import_megatron(const ForeignFile& file, const ImportSettings& settings);

// Fails with the first part of the plan that Megatron-LM cannot express.
Expected<Exported> export_megatron(const Scenario& scenario, const Plan& plan);

// Evaluates a list in Python of numbers, sums and multiples of lists: "([0]*3+[1]*58)".
Expected<std::vector<int>> parse_python_list(std::string_view text);
// Writes such a list, with multiples.
std::string python_list(const std::vector<int>& values);

// The layers of each chunk, in the order in which a micro-batch passes them: "Et*3|t*4|t*3L".
Expected<std::vector<int>> parse_pipeline_layout(std::string_view text, int mtp_layers = 0);
std::string pipeline_layout(const std::vector<int>& layers, int mtp_layers = 0);

}  // namespace trainyard
