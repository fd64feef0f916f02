// What launchers say in the environment. Variables and formats are those of Open MPI, MPICH
// (PMI-1), Slurm's srun (its manual's "OUTPUT ENVIRONMENT VARIABLES") and torchrun.
#include "executor/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// The launcher that is found if these variables are all that it has set.
Expected<Launcher> launcher_of(const Variables& variables) {
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  auto launcher = launcher_in_environment();
  for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
  return launcher;
}

TEST(Launcher, IsNoneWhereNothingIsSet) {
  const auto launcher = launcher_of({});
  ASSERT_TRUE(launcher);
  EXPECT_EQ(launcher->kind, LauncherKind::none);
  EXPECT_FALSE(launcher->has_started_several());
}

TEST(Launcher, IsKnownByTheRankAndTheNumberOfThem) {
  for (const Variables& variables :
       {Variables{{"OMPI_COMM_WORLD_RANK", "3"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
        Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}},
        Variables{{"PMIX_RANK", "3"},
                  {"SLURM_STEP_NUM_TASKS", "4"},
                  {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}},
        Variables{{"SLURM_PROCID", "3"},
                  {"SLURM_STEP_NUM_TASKS", "4"},
                  {"SLURM_STEP_TASKS_PER_NODE", "2"}}}) {
    const auto launcher = launcher_of(variables);
    ASSERT_TRUE(launcher) << variables.front().first;
    EXPECT_EQ(launcher->kind, LauncherKind::mpi) << variables.front().first;
    EXPECT_EQ(launcher->rank, 3) << variables.front().first;
    EXPECT_EQ(launcher->ranks, 4) << variables.front().first;
    EXPECT_EQ(launcher->local_ranks, 2) << variables.front().first;
  }
}

// The variables that a task of Slurm sets for itself, as in `srun bash -c 'RANK=$SLURM_PROCID …'`.
TEST(Launcher, SpeaksTcpWhereTasksOfSlurmSayWhereRankZeroIs) {
  const auto launcher = launcher_of({{"SLURM_PROCID", "1"},
                                     {"SLURM_STEP_NUM_TASKS", "2"},
                                     {"RANK", "3"},
                                     {"WORLD_SIZE", "4"},
                                     {"MASTER_ADDR", "node-7"},
                                     {"MASTER_PORT", "29417"}});
  ASSERT_TRUE(launcher);
  EXPECT_EQ(launcher->kind, LauncherKind::torchrun);
  EXPECT_EQ(launcher->rank, 3);
  EXPECT_EQ(launcher->address, "node-7");
  EXPECT_EQ(launcher->port, "29417");
  EXPECT_TRUE(not_by_mpi(*launcher));
}

// For unlike nodes Slurm gives a list; a single task is no plan's.
TEST(Launcher, SaysOneWhereSlurmSaysNothingOfUse) {
  const auto unlike = launcher_of({{"SLURM_PROCID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "5"},
                                   {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"}});
  ASSERT_TRUE(unlike);
  EXPECT_EQ(unlike->local_ranks, 1);
  const auto one = launcher_of({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->kind, LauncherKind::none);
}

TEST(Launcher, RefusesWhatIsNoNumber) {
  for (const auto& [rank, ranks] :
       {std::pair{"0", "4x"}, {"1x", "4"}, {"", "4"}, {" 1", "4"}, {"-1", "4"}, {"4", "4"}}) {
    const auto launcher = launcher_of({{"SLURM_PROCID", rank}, {"SLURM_STEP_NUM_TASKS", ranks}});
    ASSERT_FALSE(launcher) << rank << " of " << ranks;
    EXPECT_EQ(launcher.error().where, "SLURM_PROCID");
  }
  for (const char* local : {"2x", "0", "2(x)", "(x2)"}) {
    const auto launcher =
        launcher_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}, {"SLURM_STEP_TASKS_PER_NODE", local}});
    ASSERT_FALSE(launcher) << local;
    EXPECT_EQ(launcher.error().where, "SLURM_STEP_TASKS_PER_NODE");
  }
}

}  // namespace
}  // namespace trainyard
