#include "tests/fuzz/readers.h"

#include <cstdlib>

#include "scenarios/huggingface.h"
#include "scenarios/interchange/accelerate.h"
#include "scenarios/interchange/deepspeed.h"
#include "scenarios/interchange/kineto.h"
#include "scenarios/interchange/megatron.h"
#include "scenarios/interchange/nccl_tests.h"
#include "scenarios/interchange/nccl_topology.h"
#include "scenarios/interchange/nvidia_smi.h"
#include "scenarios/interchange/torchtitan.h"
#include "scenarios/kernel_tables.h"
#include "scenarios/scenario.h"
#include "scenarios/sweep/sweep.h"

namespace trainyard {
namespace {

// A refusal is one line that says something.
void check_line(const Error& error) {
  const bool whole = !error.message.empty() && error.message.find('\n') == std::string::npos &&
                     error.where.find('\n') == std::string::npos && error.message.size() < 2000;
  if (!whole) std::abort();
}

template <typename T>
void check_answer(const Expected<T>& answer) {
  if (!answer) check_line(answer.error());
}

void check_scenario(const Expected<Imported>& imported) {
  check_answer(imported);
  if (imported && !parse_scenario(imported->document, "again")) std::abort();
}

ForeignFile fuzzed(const std::string& text) { return {"fuzz", "fuzz", text}; }

}  // namespace

void scenario_reader(const std::string& text) { check_answer(parse_scenario(text, "fuzz")); }
void huggingface_reader(const std::string& text) { check_answer(parse_huggingface(text, "fuzz")); }
void nccl_topology_reader(const std::string& text) {
  check_answer(nccl_topology_node(fuzzed(text), std::nullopt));
}
void nvidia_smi_reader(const std::string& text) {
  check_answer(nvidia_smi_node(fuzzed(text), std::nullopt));
}
void megatron_reader(const std::string& text) { check_scenario(import_megatron(fuzzed(text), {})); }
void deepspeed_reader(const std::string& text) {
  check_scenario(import_deepspeed(fuzzed(text), {}));
}
void torchtitan_reader(const std::string& text) {
  check_scenario(import_torchtitan(fuzzed(text), {}));
}
void fsdp_reader(const std::string& text) { check_scenario(import_fsdp(fuzzed(text), {})); }
void nccl_tests_reader(const std::string& text) { check_answer(read_nccl_tests(fuzzed(text))); }
void kineto_reader(const std::string& text) { check_answer(import_kineto(fuzzed(text))); }
void sweep_reader(const std::string& text) { check_answer(sweep_of_text(text, "", "fuzz.json")); }
void kernel_table_reader(const std::string& text) {
  check_answer(parse_kernel_table(text, "fuzz.csv"));
}

}  // namespace trainyard
