#include "scenarios/interchange/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "scenarios/interchange/megatron/megatron.h"
#include "scenarios/interchange/shell/text.h"
#include "tests/scenarios/interchange/plans.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// A name with everything that could trouble a shell or sbatch.
constexpr const char* kHostile =
    "x'; touch pwned; echo '$(touch pwned) `touch pwned` \" \\ #SBATCH --wrap=evil ${IFS} * ~ &&";

// Runs the script on a machine where scontrol, srun and python only record their arguments.
class Launch : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("trainyard_launch." + std::to_string(::getpid()));
    fs::create_directories(folder_ / "bin");
    stub("scontrol", "printf 'hostA\\nhostB\\n'");
    stub("srun",
         "cp \"$SLURM_HOSTFILE\" hosts; shift 2; while [ \"$1\" != trainyard ]; do a+=(\"$1\"); "
         "shift; done\nSLURM_PROCID=${RANK_TO_RUN:-0} exec \"${a[@]}\" \"$@\"");
    stub("python",
         "echo \"$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR\" > ran; printf '%s\\n' \"$@\" >> ran");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const fs::path& file, const std::string& text) const {
    std::ofstream(folder_ / file) << text;
  }
  std::string read(const fs::path& file) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / file).rdbuf();
    return text.str();
  }
  void stub(const std::string& name, const std::string& body) const {
    write(fs::path("bin") / name, "#!/bin/bash\n" + body + "\n");
    ::chmod((folder_ / "bin" / name).c_str(), 0755);
  }
  int shell(const std::string& command) const {
    return std::system(
        ("cd '" + folder_.string() + "' && PATH=\"$PWD/bin:$PATH\" " + command).c_str());
  }

  fs::path folder_;
};

Scenario hostile_scenario() {
  Scenario scenario = scenario_of("llama-3.1-8b", "megatron-core", 2);
  scenario.name = kHostile;
  return scenario;
}

TEST_F(Launch, AHostileNameIsTextAndNothingElse) {
  const Scenario scenario = hostile_scenario();
  const Job& job = scenario.job;
  const Plan plan = make_plan({.tensor_parallel = 2}, job.model, job.cluster, job.training).value();
  const auto exported = export_megatron(scenario, plan).value();
  for (const ExportedFile& file : exported.files) write(file.name, file.text);
  ASSERT_EQ(shell("bash -n launch.sbatch"), 0);
  ASSERT_EQ(shell("SLURM_JOB_NODELIST=x RANK_TO_RUN=9 bash launch.sbatch --extra 'a b'"), 0);
  EXPECT_FALSE(fs::exists(folder_ / "pwned"));
  const std::string ran = read("ran");
  EXPECT_THAT(ran, HasSubstr("9 1 16 hostA\npretrain_gpt.py\n--num-layers\n32\n"));
  EXPECT_THAT(ran, HasSubstr("--extra\na b\n"));
  EXPECT_THAT(read("launch.sbatch"), Not(HasSubstr("\n#SBATCH --wrap")));
}

TEST(ShellQuoted, IsOneWordWhateverIsInIt) {
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

// 16 devices: each host is listed eight times, with the ranks in order.
TEST_F(Launch, TheDefaultOrderFillsNodeAfterNode) {
  const Scenario scenario = hostile_scenario();
  const Job& job = scenario.job;
  const Plan plan = make_plan({.tensor_parallel = 2}, job.model, job.cluster, job.training).value();
  const auto devices = rank_devices(plan, job.model, "tp-cp-ep-dp-pp").value();
  for (int rank = 0; rank < 16; ++rank) EXPECT_EQ(devices[static_cast<std::size_t>(rank)], rank);
  const auto exported = export_megatron(scenario, plan).value();
  for (const ExportedFile& file : exported.files) write(file.name, file.text);
  ASSERT_EQ(shell("SLURM_JOB_NODELIST=x bash launch.sbatch"), 0);
  std::string expected;
  for (int rank = 0; rank < 16; ++rank) expected += rank < 8 ? "hostA\n" : "hostB\n";
  EXPECT_EQ(read("hosts"), expected);
}

// If pp is fastest in the plan, Megatron's neighbours in tp (its ranks 0 and 1) lie p = 4 apart.
TEST(RankDevices, RealiseAnOrderThatTheFrameworkDoesNotHave) {
  const Scenario scenario = scenario_of("llama-3.1-8b", "ideal", 2);
  const Job& job = scenario.job;
  const Plan plan =
      make_plan({.tensor_parallel = 2, .pipeline_parallel = 4, .rank_order = "pp-tp-cp-ep-dp"},
                job.model, job.cluster, job.training)
          .value();
  const auto devices = rank_devices(plan, job.model, "tp-cp-ep-dp-pp").value();
  EXPECT_EQ(devices[0], 0);
  EXPECT_EQ(devices[1], 4);  // tp 1: beyond the four stages
  EXPECT_EQ(devices[2], 8);  // dp 1: beyond tp and pp
  EXPECT_EQ(devices[4], 1);  // pp 1: next door
  EXPECT_EQ(std::set<int>(devices.begin(), devices.end()).size(), 16u);
}

}  // namespace
}  // namespace trainyard
