// The readers of files from outside, each fed with one text: it answers or refuses, and that is
// all. An answer must be a document that reads back, a refusal one line.
#pragma once

#include <string>

namespace trainyard {

void scenario_reader(const std::string& text);
void huggingface_reader(const std::string& text);
void nccl_topology_reader(const std::string& text);
void nvidia_smi_reader(const std::string& text);
void megatron_reader(const std::string& text);
void deepspeed_reader(const std::string& text);
void torchtitan_reader(const std::string& text);
void fsdp_reader(const std::string& text);
void nccl_tests_reader(const std::string& text);
void kineto_reader(const std::string& text);
void sweep_reader(const std::string& text);
void kernel_table_reader(const std::string& text);

}  // namespace trainyard
