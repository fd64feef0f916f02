// Feeds one text to a reader of files from outside. A function returns true if the reader accepts
// the text and false if it refuses it. It aborts on any other outcome: an accepted document must
// read back after it was written, and a refusal must be one line.
#pragma once

#include <string>

namespace trainyard {

// Readers of the project's own documents.
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

// Readers of files of other tools.
bool huggingface_reader(const std::string& text);
bool nccl_topology_reader(const std::string& text);
bool nvidia_smi_reader(const std::string& text);
bool megatron_reader(const std::string& text);
bool deepspeed_reader(const std::string& text);
bool torchtitan_reader(const std::string& text);
bool fsdp_reader(const std::string& text);
bool nccl_tests_reader(const std::string& text);
bool kineto_reader(const std::string& text);

// Readers of tables and binary files.
bool kernel_table_reader(const std::string& text);  // CSV
bool fabric_rows_reader(const std::string& text);   // JSON: times of collectives across nodes
bool overrides_reader(const std::string& text);     // CSV of a sweep
bool results_reader(const std::string& text);       // SQLite, as report and diff read it
bool tokens_reader(const std::string& text);        // 16 bits per token

}  // namespace trainyard
