// `trainyard export` accepts what `trainyard plan --out` writes: the best plan is one that the
// software runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>

#include "tests/cli/program.h"

namespace trainyard {
namespace {

struct PlannedJob {
  const char *stack, *target, *model;
  int nodes, batch, sequence;
};

std::string name_of_job(const PlannedJob& job) {
  std::string name =
      fmt::format("{}_{}_{}_{}", job.stack, job.model, job.nodes, job.sequence / 1024);
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

class PlannedExport : public ::testing::TestWithParam<PlannedJob> {};

TEST_P(PlannedExport, IsNotRefused) {
  const PlannedJob& job = GetParam();
  const auto scenario = write_scratch(
      "planned.json", fmt::format(R"({{
    "trainyard": "scenario/1", "model": "{}",
    "cluster": {{ "node": "dgx-h100-80gb", "nodes": {} }},
    "training": {{ "global_batch": {}, "sequence_length": {}, "stack": "{}" }} }})",
                                  job.model, job.nodes, job.batch, job.sequence, job.stack));
  const auto written = scratch_folder() / "best.json";
  const Ran planned = run_trainyard("plan " + quoted(scenario) + " --out " + quoted(written));
  ASSERT_EQ(planned.status, 0) << planned.err;
  const Ran exported = run_trainyard(fmt::format("export {} {} -o {}", job.target, quoted(written),
                                                 quoted(scratch_folder() / "exported")));
  EXPECT_EQ(exported.status, 0) << exported.err;
}

INSTANTIATE_TEST_SUITE_P(
    Stacks, PlannedExport,
    ::testing::Values(PlannedJob{"torchtitan", "torchtitan", "llama-3.1-8b", 1, 64, 8192},
                      PlannedJob{"torchtitan", "torchtitan", "llama-3.1-8b", 8, 64, 131072},
                      PlannedJob{"torchtitan", "torchtitan", "llama-3.1-70b", 8, 256, 8192},
                      PlannedJob{"torchtitan", "torchtitan", "qwen3-30b-a3b", 4, 512, 4096},
                      PlannedJob{"torchtitan-eager", "torchtitan", "llama-3.1-8b", 8, 256, 32768},
                      PlannedJob{"megatron-core", "megatron", "llama-3.1-70b", 8, 256, 8192},
                      PlannedJob{"megatron-core", "megatron", "qwen3-30b-a3b", 2, 512, 4096},
                      PlannedJob{"megatron-core", "megatron", "llama-3.1-8b", 8, 16, 131072},
                      PlannedJob{"megatron-2021", "megatron", "gpt-7.5b", 2, 64, 2048},
                      PlannedJob{"megatron-2021", "megatron", "gpt3-175b", 64, 1536, 2048},
                      PlannedJob{"fsdp", "fsdp", "llama-3.1-8b", 1, 64, 8192},
                      PlannedJob{"fsdp", "fsdp", "llama-3.1-8b", 4, 32, 65536},
                      PlannedJob{"fsdp", "fsdp", "llama-3.1-70b", 8, 256, 4096},
                      PlannedJob{"deepspeed", "deepspeed", "llama-3.1-8b", 2, 64, 8192},
                      PlannedJob{"deepspeed", "deepspeed", "llama-3.1-8b", 8, 16, 131072},
                      PlannedJob{"deepspeed", "deepspeed", "llama-3.1-70b", 16, 256, 4096}),
    [](const auto& tested) { return name_of_job(tested.param); });

}  // namespace
}  // namespace trainyard
