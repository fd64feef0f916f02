// What `trainyard run` says if its launcher starts no rank, or only ranks that end before they
// begin. The launcher is a script in the place of mpirun.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/executor/running.h"
#include "tests/executor/tiny_scenario.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// The environment in which `mpirun` is a script with these lines.
std::string launched_by(std::string_view script) {
  const fs::path folder = scratch_folder() / "bin";
  fs::create_directories(folder);
  const fs::path launcher = folder / "mpirun";
  std::ofstream(launcher) << "#!/bin/sh\n" << script;
  fs::permissions(launcher, fs::perms::owner_all);
  return fmt::format("PATH='{}':$PATH", folder.string());
}

TEST(RunCommand, SaysWhenTheLauncherStartsNobody) {
  const Ran ran = run_trainyard(fmt::format("run {}", tiny_scenario(kTwoStages, 2)),
                                launched_by("echo no slots on this host\nexit 1\n"));
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("rank 0 of 2 never started: no slots on this host"), std::string::npos)
      << ran.err;
}

// Files may not grow, so even the launcher's own output is lost.
TEST(RunCommand, SaysThatTheDiskIsFullWhenNobodyStarts) {
  const Ran ran = run_trainyard(fmt::format("run {}", tiny_scenario(kTwoStages, 2)),
                                "trap '' XFSZ; ulimit -f 1; " + launched_by("exit 1\n"));
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("rank 0 of 2 never started: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find(" cannot be written: File too large"), std::string::npos) << ran.err;
}

TEST(RunCommand, SaysWhenThereIsNoLauncher) {
  const Ran ran = run_trainyard(fmt::format("run {}", tiny_scenario(kTwoStages, 2)), "PATH=/none");
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("mpirun cannot be started: No such file or directory"), std::string::npos)
      << ran.err;
}

TEST(RunCommand, SaysWhichPeerNeverStarts) {
  const Ran ran = run_trainyard(fmt::format("run {} --timeout 1", tiny_scenario(kTwoStages, 2)),
                                launched_by("exec sleep 1000\n"));
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("rank 0 of 2 never started"), std::string::npos) << ran.err;
}

// Open MPI puts its message into a frame of lines like these.
TEST(RunCommand, SaysWhatTheLauncherSaidLastAndNotItsFrame) {
  const Ran ran = run_trainyard(fmt::format("run {}", tiny_scenario(kTwoStages, 2)),
                                launched_by("echo 'no slots are left'\necho '*** *** ***'\n"
                                            "echo '-------------'\nexit 1\n"));
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("rank 0 of 2 never started: no slots are left"), std::string::npos)
      << ran.err;
}

// The words of Open MPI, and those of its store of files.
TEST(RunCommand, SaysWhoWasKilledBeforeItBegan) {
  const std::string run = fmt::format("run {}", tiny_scenario(kTwoStages, 2));
  const Ran killed = run_trainyard(
      run, launched_by("echo 'mpirun noticed that process rank 1 with PID 0 on node vm exited on "
                       "signal 9 (Killed).'\nexit 137\n"));
  EXPECT_EQ(killed.status, 3);
  EXPECT_NE(killed.err.find("rank 1 on vm was ended by signal 9 (Killed) before its first"),
            std::string::npos)
      << killed.err;
  const Ran full = run_trainyard(
      run, launched_by("echo '[vm:1] PMIX ERROR: OUT-OF-RESOURCE in file dstore.c at line 1'\n"
                       "echo 'Exit code: 1'\nexit 1\n"));
  EXPECT_EQ(full.status, 3);
  EXPECT_NE(full.err.find("has no room for the files of mpirun"), std::string::npos) << full.err;
}

// Rank 0 of a step whose program is refused ends before it has a board, and Open MPI reports that
// it ended. Which of them is last in the output is chance.
TEST(RunCommand, SaysWhatARankSaidThatFailedBeforeItBegan) {
  const std::string run = fmt::format("run {}", tiny_scenario(kTwoStages, 2));
  const std::string rank = "echo 'trainyard: program: rank 0: it is refused'\n";
  const std::string mpi =
      "echo 'mpirun detected that one or more processes exited'\n"
      "echo '  Process name: [[1,1],0]'\necho '  Exit code:    3'\n";
  const std::string doubled = "echo 'trainyard: trainyard: program: rank 0: it is refused'\n";
  for (const std::string& output : {rank + mpi, mpi + rank, doubled + mpi}) {
    const Ran ran = run_trainyard(run, launched_by(output + "exit 3\n"));
    EXPECT_EQ(ran.status, 3);
    EXPECT_EQ(ran.err, "trainyard: program: rank 0: it is refused\n");
  }
}

}  // namespace
}  // namespace trainyard
