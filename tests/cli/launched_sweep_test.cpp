// trainyard sweep under mpirun: rank 0 writes, the others answer, and one of them is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/cli/sweeping.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Starts rank 0 and four workers, as root, on fewer cores than ranks and without the network's
// drivers. Leak detection is off for the MPI library.
std::vector<std::string> launched(const fs::path& sweep, const fs::path& out,
                                  const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = {MPIRUN_PROGRAM,
                                      "--allow-run-as-root",
                                      "--oversubscribe",
                                      "--bind-to",
                                      "none",
                                      "--mca",
                                      "btl",
                                      "self,vader",
                                      "--mca",
                                      "btl_vader_single_copy_mechanism",
                                      "none",
                                      "-x",
                                      "ASAN_OPTIONS=detect_leaks=0",
                                      "-n",
                                      "5"};
  command.insert(command.end(), more.begin(), more.end());
  for (const std::string& word :
       {std::string(TRAINYARD_PROGRAM), std::string("sweep"), sweep.string(), std::string("-o"),
        out.string(), std::string("--format"), std::string("json")}) {
    command.push_back(word);
  }
  return command;
}

// The process of a rank among those that the launcher started.
pid_t process_of(const BackgroundProgram& launcher, int rank) {
  const std::string variable = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
  for (const pid_t child : children_of(launcher.pid())) {
    const std::string environment = read_text("/proc/" + std::to_string(child) + "/environ");
    if (environment.find(variable + '\0') != std::string::npos) return child;
  }
  return 0;
}

std::string whole_sweep(const fs::path& sweep) {
  const fs::path out = scratch_folder() / "whole.sqlite";
  EXPECT_EQ(run_trainyard(sweep_command(sweep, out)).status, 0);
  return dump(out);
}

TEST(LaunchedSweep, HasTheSamePointsAndWritesThemOnRank0) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  const fs::path log = scratch_folder() / "log";
  EXPECT_EQ(BackgroundProgram(launched(sweep, out), log).wait(), 0);
  EXPECT_EQ(nlohmann::json::parse(read_text(log)).at("answered"), kPoints);
  EXPECT_EQ(dump(out), whole_sweep(sweep));
}

// A plain mpirun ends the job when a worker dies; what was answered by then is kept.
TEST(LaunchedSweep, ContinuesAfterAWorkerWasKilled) {
  const fs::path sweep = slow_sweep(2);  // a launcher takes its time to end a job
  const fs::path out = scratch_folder() / "results.sqlite";
  const BackgroundProgram launcher(launched(sweep, out));
  EXPECT_TRUE(wait_until([&] { return rows_in(out) >= 4; }));
  const pid_t worker = process_of(launcher, 2);
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGKILL);
  EXPECT_NE(launcher.wait(), 0);
  const std::int64_t kept = rows_in(out);
  EXPECT_GE(kept, 4);
  EXPECT_LT(kept, kPoints);
  EXPECT_EQ(BackgroundProgram(launched(sweep, out)).wait(), 0);
  EXPECT_EQ(dump(out), whole_sweep(sweep));
}

// This launcher lets the other workers live, and they answer the points of the dead one.
TEST(LaunchedSweep, GivesADeadWorkersPointsToTheOthers) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  const fs::path log = scratch_folder() / "log";
  const BackgroundProgram launcher(launched(sweep, out, {"--enable-recovery"}), log);
  EXPECT_TRUE(wait_until([&] { return rows_in(out) >= 4; }));
  const pid_t worker = process_of(launcher, 3);
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGKILL);
  launcher.wait();  // the launcher's status tells of the dead one
  EXPECT_THAT(read_text(log), HasSubstr("\"lost_workers\": 1"));
  EXPECT_EQ(dump(out), whole_sweep(sweep));
}

// The variables of srun's tasks and of MPICH's launcher, but without their server. Every process
// would be rank 0 of 1, and all of them would write the same file.
TEST(LaunchedSweep, RefusesProcessesThatDoNotKnowEachOther) {
  for (const char* launcher : {"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3", "PMI_RANK=1 PMI_SIZE=3"}) {
    const fs::path out = scratch_folder() / "results.sqlite";
    const Ran ran = run_trainyard(sweep_command(slow_sweep(), out),
                                  launcher + std::string(" ASAN_OPTIONS=detect_leaks=0"));
    EXPECT_NE(ran.status, 0);
    EXPECT_THAT(ran.err, HasSubstr("3 processes were started and do not know each other"));
    EXPECT_FALSE(fs::exists(out));
  }
}

TEST(LaunchedSweep, RefusesALauncherWhoseProcessesDoNotMeetByMpi) {
  const fs::path out = scratch_folder() / "results.sqlite";
  const Ran ran = run_trainyard(sweep_command(slow_sweep(), out), "RANK=0 WORLD_SIZE=2");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("RANK: found a launcher that sets it"));
  EXPECT_FALSE(fs::exists(out));
}

// The commands of a batch script are not tasks of a step, whatever the size of the job is.
TEST(LaunchedSweep, IsOneProcessInABatchScript) {
  const fs::path out = scratch_folder() / "results.sqlite";
  const Ran ran = run_trainyard(sweep_command(slow_sweep(), out),
                                "SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_JOB_ID=1");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(rows_in(out), kPoints);
}

TEST(LaunchedSweep, SaysOnceWhatIsWrong) {
  const fs::path sweep = write_scratch("bad.json", "{ \"trainyard\": \"sweep/1\" }");
  const fs::path out = scratch_folder() / "results.sqlite";
  EXPECT_EQ(BackgroundProgram(launched(sweep, out)).wait(), 2);
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace trainyard
