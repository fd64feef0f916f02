// One reader of files from outside, fed by libFuzzer: it answers or refuses, and that is all. An
// answer must be a document that reads back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "scenarios/huggingface.h"
#include "scenarios/interchange/accelerate.h"
#include "scenarios/interchange/deepspeed.h"
#include "scenarios/interchange/kineto.h"
#include "scenarios/interchange/megatron.h"
#include "scenarios/interchange/nccl_tests.h"
#include "scenarios/interchange/nccl_topology.h"
#include "scenarios/interchange/nvidia_smi.h"
#include "scenarios/interchange/torchtitan.h"
#include "scenarios/scenario.h"

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

[[maybe_unused]] void scenario_reader(const ForeignFile& file) {
  check_answer(parse_scenario(file.text, file.name));
}
[[maybe_unused]] void huggingface_reader(const ForeignFile& file) {
  check_answer(parse_huggingface(file.text, file.name));
}
[[maybe_unused]] void nccl_topology_reader(const ForeignFile& file) {
  check_answer(nccl_topology_node(file, std::nullopt));
}
[[maybe_unused]] void nvidia_smi_reader(const ForeignFile& file) {
  check_answer(nvidia_smi_node(file, std::nullopt));
}
[[maybe_unused]] void megatron_reader(const ForeignFile& file) {
  check_scenario(import_megatron(file, {}));
}
[[maybe_unused]] void deepspeed_reader(const ForeignFile& file) {
  check_scenario(import_deepspeed(file, {}));
}
[[maybe_unused]] void torchtitan_reader(const ForeignFile& file) {
  check_scenario(import_torchtitan(file, {}));
}
[[maybe_unused]] void fsdp_reader(const ForeignFile& file) {
  check_scenario(import_fsdp(file, {}));
}
[[maybe_unused]] void nccl_tests_reader(const ForeignFile& file) {
  check_answer(trainyard::read_nccl_tests(file));
}
[[maybe_unused]] void kineto_reader(const ForeignFile& file) { check_answer(import_kineto(file)); }

}  // namespace
}  // namespace trainyard

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trainyard::TRAINYARD_READER(
      {"fuzz", "fuzz", std::string(reinterpret_cast<const char*>(data), size)});
  return 0;
}
