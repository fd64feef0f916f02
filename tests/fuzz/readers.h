// The readers of files from outside, each fed with one text: it answers (true) or refuses, and that
// is all. An answer must be a document that reads back, a refusal one line.
#pragma once

#include <string>

namespace trainyard {

// Documents of the project.
bool scenario_reader(const std::string& text);
bool model_reader(const std::string& text);
bool device_reader(const std::string& text);
bool node_reader(const std::string& text);
bool fabric_reader(const std::string& text);
bool stack_reader(const std::string& text);
bool passes_reader(const std::string& text);
bool profile_reader(const std::string& text);
bool sweep_reader(const std::string& text);
bool validation_reader(const std::string& text);  // a list of scenarios

// Files of other tools.
bool huggingface_reader(const std::string& text);
bool nccl_topology_reader(const std::string& text);
bool nvidia_smi_reader(const std::string& text);
bool megatron_reader(const std::string& text);
bool deepspeed_reader(const std::string& text);
bool torchtitan_reader(const std::string& text);
bool fsdp_reader(const std::string& text);
bool nccl_tests_reader(const std::string& text);
bool kineto_reader(const std::string& text);

// Tables and binary files.
bool kernel_table_reader(const std::string& text);  // CSV
bool fabric_rows_reader(const std::string& text);   // JSON, collectives across nodes
bool overrides_reader(const std::string& text);     // CSV of a sweep
bool results_reader(const std::string& text);       // SQLite, as report and diff read it
bool tokens_reader(const std::string& text);        // 16 bits each

}  // namespace trainyard
