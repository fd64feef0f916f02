// trainyard import and export as their user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/program.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ImportKinds : public ::testing::TestWithParam<const char*> {};

// An empty file, a folder and 100 MB: each is refused in one line with status 2, and nothing is
// written.
TEST_P(ImportKinds, RefuseInOneLineWhatCannotBe) {
  const fs::path out = scratch_folder() / "out.json";
  const fs::path empty = write_scratch("empty", "");
  const fs::path large = write_scratch("large", "");
  fs::resize_file(large, 100'000'000);
  for (const fs::path& file : {empty, large, fs::path("/dev/zero"), fs::path("absent")}) {
    const Ran ran = run_trainyard(std::string("import ") + GetParam() + " " + file.string() +
                                  " -o " + out.string());
    EXPECT_EQ(ran.status, 2) << file << ran.out;
    EXPECT_THAT(lines_of(ran.err), SizeIs(1)) << ran.err;
    EXPECT_FALSE(fs::exists(out));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ImportKinds,
                         ::testing::Values("huggingface", "megatron", "deepspeed", "torchtitan",
                                           "fsdp", "nccl-topology", "nvidia-smi", "nccl-tests",
                                           "kineto"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(ExportCommand, RefusesAFolderWithoutAName) {
  const Ran ran = run_trainyard("export megatron " + quoted(small_scenario()) + " -o ''");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(lines_of(ran.err), SizeIs(1)) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("--out: found \"\", allowed "));
}

TEST(ExportCommand, RefusesGroupsOfUnlikeNodesByTheTargetsName) {
  const std::string file = unlike_groups(2).string();
  for (const auto& [kind, name] : {std::pair("megatron", "Megatron-LM"),
                                   {"deepspeed", "DeepSpeed"},
                                   {"torchtitan", "torchtitan"},
                                   {"fsdp", "Accelerate"}}) {
    const fs::path folder = scratch_folder() / kind;
    const Ran ran =
        run_trainyard(std::string("export ") + kind + " " + file + " -o " + folder.string());
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(lines_of(ran.err), SizeIs(1));
    EXPECT_THAT(ran.err, HasSubstr(std::string("/cluster/groups: found groups of unlike nodes")));
    EXPECT_THAT(ran.err, HasSubstr(name));
    EXPECT_FALSE(fs::exists(folder));
  }
}

class ExportKinds : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

// A scenario goes out, comes back in, and is priced.
TEST_P(ExportKinds, WriteWhatTheirReadersRead) {
  const auto& [kind, file] = GetParam();
  const fs::path scenario = small_scenario(
      R"(, "plan": {"tensor_parallel": 2, "sequence_parallel": )" +
      std::string(std::string(kind) == "torchtitan" || std::string(kind) == "megatron" ? "true"
                                                                                       : "false") +
      R"(, "zero_stage": )" +
      (std::string(kind) == "megatron" || std::string(kind) == "deepspeed" ? "1" : "3") + "}");
  const fs::path folder = scratch_folder() / "exported";
  const Ran out = run_trainyard(std::string("export ") + kind + " " + scenario.string() + " -o " +
                                folder.string());
  ASSERT_EQ(out.status, 0) << out.err;
  EXPECT_TRUE(fs::exists(folder / "launch.sbatch"));
  EXPECT_TRUE(fs::exists(folder / "hostfile"));
  const fs::path back = scratch_folder() / "back.json";
  const Ran in = run_trainyard(std::string("import ") + kind + " " + (folder / file).string() +
                               " --nodes 1 -o " + back.string());
  ASSERT_EQ(in.status, 0) << in.err;
  EXPECT_THAT(in.out, HasSubstr("TP2 DP4"));
  EXPECT_NE(run_trainyard("estimate " + back.string()).status, 2);
}

INSTANTIATE_TEST_SUITE_P(All, ExportKinds,
                         ::testing::Values(std::pair{"megatron", "megatron-arguments.txt"},
                                           std::pair{"deepspeed", "deepspeed.json"},
                                           std::pair{"torchtitan", "torchtitan.toml"},
                                           std::pair{"fsdp", "accelerate.yaml"}),
                         [](const auto& tested) { return std::string(tested.param.first); });

TEST(Export, RefusesByNameAndWritesNothing) {
  const fs::path scenario = small_scenario(R"(, "plan": {"collective": "ring"})");
  const fs::path folder = scratch_folder() / "refused";
  const Ran ran = run_trainyard("export megatron " + scenario.string() + " -o " + folder.string());
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("/plan/collective: found \"ring\"; allowed in Megatron-LM"));
  EXPECT_FALSE(fs::exists(folder));
}

TEST(Import, MakesANodeThatAScenarioTakes) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const fs::path node = scratch_folder() / "node.json";
  const fs::path topology = shared / "topologies" / "nccl" / "aws-p4d.24xlarge.xml";
  ASSERT_EQ(
      run_trainyard("import nccl-topology " + topology.string() + " -o " + node.string()).status,
      0);
  const auto scenario = [](const std::string& cluster) {
    return R"({"trainyard": "scenario/1", "model": "llama-3.1-8b", "cluster": )" + cluster +
           R"(, "training": {"global_batch": 64, "sequence_length": 2048}, "plan": {}})";
  };
  const fs::path by_node = write_scratch(
      "by_node.json", scenario(R"({"node": ")" + node.string() + R"(", "nodes": 2})"));
  const fs::path by_file = write_scratch(
      "by_file.json", scenario(R"({"nccl_topology": ")" + topology.string() + R"(", "nodes": 2})"));
  const Ran one = run_trainyard("estimate --format csv " + by_node.string());
  const Ran two = run_trainyard("estimate --format csv " + by_file.string());
  EXPECT_NE(one.status, 2) << one.err;
  EXPECT_EQ(one.out.substr(one.out.find(',', one.out.find('\n'))),
            two.out.substr(two.out.find(',', two.out.find('\n'))));
}

// A trace of PyTorch's profiler is compared with the simulated step by what kernels do, on both
// sides.
TEST(Import, MakesAProfileThatCompareTakes) {
  const fs::path cases = fs::path(TRAINYARD_SOURCE) / "scenarios" / "cases";
  const fs::path profile = scratch_folder() / "profile.json";
  ASSERT_EQ(run_trainyard("import kineto " + (cases / "files" / "trace.json").string() + " -o " +
                          profile.string())
                .status,
            0);
  const Ran ran = run_trainyard("compare " + (cases / "llama-1b-beside-its-trace.json").string() +
                                " " + profile.string() + " --format csv");
  ASSERT_EQ(ran.status, 0) << ran.err;
  bool both = false;
  for (const std::string& line : lines_of(ran.out)) {
    // stage, operation, tasks on either side: one matrix product a step in the trace.
    if (line.starts_with("0,gemm,")) both = line.find(",1,") != std::string::npos;
  }
  EXPECT_TRUE(both) << ran.out;
  const Ran text = run_trainyard("compare " + profile.string() + " " + profile.string());
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("12.00"));  // ms: the steps of the trace
}

}  // namespace
}  // namespace trainyard
