// Ranks without a supervisor: under the user's own mpirun, and under launchers that set RANK and
// WORLD_SIZE. Uses real processes and real signals.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "tests/executor/running.h"
#include "tests/executor/tiny_scenario.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// ---- Under the user's own mpirun ----------------------------------------------------------------

// The library keeps what it allocated until the process ends.
constexpr const char* kMpirun =
    "env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe --bind-to none "
    "--mca btl_vader_single_copy_mechanism none -n 2";

TEST(LaunchedRanks, RunsUnderTheUsersOwnMpirun) {
  const fs::path profile = scratch_folder() / "profile.json";
  const Ran ran = run_trainyard(
      fmt::format("run {} --verify -o {}", tiny_scenario(kTwoStages, 2), profile.string()),
      kMpirun);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("Verified"), std::string::npos) << ran.out << ran.err;
  EXPECT_NE(read_text(profile).find("profile/1"), std::string::npos);
}

// One rank fails before it has contacted the other, which waits for it: the folder for its board
// cannot be made.
TEST(LaunchedRanks, EndsTheUsersOwnMpirunWhenOneRankFailsAlone) {
  const fs::path script = write_scratch(
      "one.sh",
      "if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then export TMPDIR=/proc; fi; exec \"$@\"\n");
  const Ran ran = run_trainyard(fmt::format("run {}", tiny_scenario(kTwoStages, 2)),
                                fmt::format("{} --timeout 100 sh {}", kMpirun, script.string()));
  EXPECT_EQ(ran.status, 3) << ran.err;
  const char* said = "trainyard: rank 1: /proc: no temporary folder can be made there: ";
  EXPECT_NE(ran.err.find(said), std::string::npos) << ran.err;
}

// The message is given under a launcher and by the command alone.
TEST(LaunchedRanks, SayWhereNoTemporaryFolderCanBeMade) {
  const std::string nowhere = (scratch_folder() / "nowhere").string();
  for (const char* launched : {"RANK=0 WORLD_SIZE=1", ""}) {
    const Ran ran = run_trainyard(fmt::format("run {}", tiny_scenario("", 1)),
                                  fmt::format("env TMPDIR={} {}", nowhere, launched));
    EXPECT_EQ(ran.status, 3) << launched;
    EXPECT_EQ(ran.err, fmt::format("trainyard: {}: no temporary folder can be made there: No such "
                                   "file or directory\n",
                                   nowhere));
  }
}

// The variables that torchrun and similar launchers set for each rank.
TEST(LaunchedRanks, RunsFromRankAndWorldSizeInTheEnvironment) {
  const std::string scenario = tiny_scenario(R"("tensor_parallel": 2, "pipeline_parallel": 2)", 4);
  const fs::path profile = scratch_folder() / "profile.json";
  const fs::path script =
      write_scratch("ranks.sh",
                    "port=$((20000 + $$ % 20000)); status=0; pids=\n"
                    "for rank in 3 2 1 0; do\n"
                    "  RANK=$rank WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \"$@\" & "
                    "pids=\"$pids $!\"\n"
                    "done\nfor pid in $pids; do wait $pid || status=$?; done; exit $status\n");
  const auto ran = run_trainyard(fmt::format("run {} --verify -o {}", scenario, profile.string()),
                                 fmt::format("sh {}", script.string()));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("Verified"), std::string::npos) << ran.out << ran.err;
  EXPECT_NE(read_text(profile).find("profile/1"), std::string::npos);
}

// The variables that a launcher of one process leaves in the shells that it starts. The command
// then starts the two ranks of the plan itself.
TEST(LaunchedRanks, AreStartedWhereALauncherHasStartedOneProcess) {
  for (const char* launcher :
       {"env PMIX_RANK=0", "env PMI_SIZE=1 PMI_RANK=0", "env RANK=0 WORLD_SIZE=1",
        "env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root -n 1"}) {
    const Ran ran =
        run_trainyard(fmt::format("run {} --verify", tiny_scenario(kTwoStages, 2)), launcher);
    EXPECT_EQ(ran.status, 0) << launcher << ran.err;
    EXPECT_NE(ran.out.find("Verified"), std::string::npos) << launcher << ran.out;
  }
}

// A single process of a plan of four ranks reports what it measured, whichever rank it is.
TEST(LaunchedRanks, RunARankAloneUnderAnyLauncher) {
  const std::string scenario = tiny_scenario(R"("tensor_parallel": 2, "pipeline_parallel": 2)", 4);
  for (const char* launcher : {"env RANK=0 WORLD_SIZE=1",
                               "env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root -n 1"}) {
    for (const int rank : {0, 3}) {
      const fs::path profile = scratch_folder() / "profile.json";
      fs::remove(profile);
      const Ran ran = run_trainyard(
          fmt::format("run {} --alone --rank {} -o {}", scenario, rank, profile.string()),
          launcher);
      EXPECT_EQ(ran.status, 0) << launcher << ran.err;
      EXPECT_NE(ran.out.find(fmt::format("rank {} alone", rank)), std::string::npos) << ran.out;
      EXPECT_NE(read_text(profile).find(fmt::format("\"rank\": {}", rank)), std::string::npos);
    }
  }
}

TEST(LaunchedRanks, SavesUnderTheUsersOwnMpirunWhenItIsToldToEnd) {
  const fs::path profile = scratch_folder() / "profile.json";
  Running running(
      fmt::format("run {} --steps 100000 -o {}", tiny_scenario(kTwoStages, 2), profile.string()),
      fmt::format("{} --mca odls_base_sigkill_timeout 3",
                  kMpirun));  // 1 s unless told: a busy host
  const auto board = running.board(1);
  ASSERT_TRUE(board);
  kill(running.process(), SIGTERM);
  running.wait();
  for (const char* rank : {"profile.rank-0.json", "profile.rank-1.json"}) {
    const std::string text = read_text(scratch_folder() / rank);
    EXPECT_NE(text.find("the rank was told to end"), std::string::npos) << rank;
  }
}

// Rank 3 of four is missing, and each of the three others says so.
TEST(LaunchedRanks, AllSayWhichRankNeverCame) {
  const std::string scenario = tiny_scenario(R"("tensor_parallel": 2, "pipeline_parallel": 2)", 4);
  const int port = 20000 + ::getpid() % 20000;
  std::vector<std::unique_ptr<Running>> ranks;
  for (const int rank : {1, 2, 0}) {
    ranks.push_back(std::make_unique<Running>(
        fmt::format("run {} --timeout 2", scenario),
        fmt::format("env RANK={} WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT={}", rank, port),
        fmt::format("-{}", rank)));
  }
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->wait(), 3);
    EXPECT_EQ(rank->error(),
              fmt::format("trainyard: rank 3 of 4 never came to 127.0.0.1:{}\n", port));
  }
}

// The variables of srun's tasks, but without a server of MPI: each process would make a run of its
// own.
TEST(LaunchedRanks, RefuseToRunSideBySideWhereTheyDoNotKnowEachOther) {
  const std::string tasks = "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 ASAN_OPTIONS=detect_leaks=0";
  const char* strangers = "2 processes were started and do not know each other";
  const Ran two = run_trainyard(fmt::format("run {}", tiny_scenario(kTwoStages, 2)), tasks);
  EXPECT_EQ(two.status, 3);
  EXPECT_NE(two.err.find(strangers), std::string::npos) << two.err;
  const Ran one = run_trainyard(fmt::format("run {}", tiny_scenario("", 1)), tasks);
  EXPECT_EQ(one.status, 2);
  EXPECT_NE(one.err.find("found 2 ranks, started by a launcher"), std::string::npos) << one.err;
  const Ran measured =
      run_trainyard(fmt::format("calibrate --backend cpu --time-limit 4 -o {}",
                                (scratch_folder() / "machine.json").string()),
                    "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2 "
                    "ASAN_OPTIONS=detect_leaks=0");
  EXPECT_EQ(measured.status, 3);
  EXPECT_NE(measured.err.find(strangers), std::string::npos) << measured.err;
}

// ---- Without a supervisor -----------------------------------------------------------------------

// Two ranks as a launcher with RANK and WORLD_SIZE starts them, each in a process of its own.
class TwoRanks {
 public:
  TwoRanks() {
    const int port = 20000 + ::getpid() % 20000;
    const std::string scenario = tiny_scenario(kTwoStages, 2);
    for (const int rank : {0, 1}) {
      ranks_.push_back(std::make_unique<Running>(
          endless(scenario, scratch_folder() / "profile.json"),
          fmt::format("env RANK={} WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={}", rank, port),
          fmt::format("-{}", rank)));
    }
  }
  ~TwoRanks() {
    for (const auto& rank : ranks_) rank->end();
  }
  TwoRanks(const TwoRanks&) = delete;
  TwoRanks& operator=(const TwoRanks&) = delete;

  bool have_begun() const { return ranks_[0]->board(0) && ranks_[1]->board(1); }
  Running& operator[](std::size_t rank) { return *ranks_[rank]; }

 private:
  std::vector<std::unique_ptr<Running>> ranks_;
};

void expect_saved(int rank, std::string_view why) {
  const std::string text = read_text(scratch_folder() / fmt::format("profile.rank-{}.json", rank));
  EXPECT_NE(text.find("\"loss\": "), std::string::npos) << rank;
  EXPECT_NE(text.find(why), std::string::npos) << rank << text;
}

TEST(LaunchedRanks, EndsARankThatHasNotGoneOnWhereThereIsNoSupervisor) {
  TwoRanks ranks;
  ASSERT_TRUE(ranks.have_begun());
  kill(ranks[1].process(), SIGSTOP);
  EXPECT_EQ(ranks[0].wait(), 3);
  const std::string error = ranks[0].error();
  EXPECT_TRUE(error.starts_with("trainyard: rank 1 on ")) << error;
  EXPECT_NE(error.find(" is stopped and has not gone on for 2 s: step "), std::string::npos)
      << error;
  EXPECT_EQ(lines_of(error).size(), 1U) << error;
  expect_saved(0, "has not gone on for 2 s: step ");
}

TEST(LaunchedRanks, SavesWhatARankMeasuredWhosePeerIsKilled) {
  TwoRanks ranks;
  ASSERT_TRUE(ranks.have_begun());
  kill(ranks[1].process(), SIGKILL);
  EXPECT_EQ(ranks[0].wait(), 3);
  const std::string error = ranks[0].error();
  EXPECT_TRUE(error.starts_with("trainyard: rank 1 on ")) << error;
  EXPECT_NE(error.find(" was killed: step "), std::string::npos) << error;
  EXPECT_EQ(lines_of(error).size(), 1U) << error;
  expect_saved(0, " was killed: step ");
}

TEST(LaunchedRanks, SavesARankThatIsInterruptedWhereThereIsNoSupervisor) {
  TwoRanks ranks;
  ASSERT_TRUE(ranks.have_begun());
  kill(ranks[1].process(), SIGINT);
  EXPECT_EQ(ranks[1].wait(), 128 + SIGINT);
  expect_saved(1, "the rank was told to end");
}

// Three of four ranks find the fourth hanging; only one of them says so.
TEST(LaunchedRanks, EndsTheUsersOwnMpirunWithOneSentenceWhenARankHangs) {
  const fs::path profile = scratch_folder() / "profile.json";
  const std::string plan = R"("tensor_parallel": 2, "pipeline_parallel": 2)";
  const std::string four = std::string(kMpirun).replace(std::string(kMpirun).rfind('2'), 1, "4");
  for (const int rank : {3, 0}) {
    Running running(endless(tiny_scenario(plan, 4), profile), four, fmt::format("-{}", rank));
    const auto board = running.board(rank);
    ASSERT_TRUE(board);
    for (const int other : {0, 1, 2, 3}) ASSERT_TRUE(running.board(other));
    kill(board->head().process, SIGSTOP);
    EXPECT_EQ(running.wait(), 3);
    const std::string error = running.error();
    EXPECT_TRUE(error.starts_with(fmt::format("trainyard: rank {} on ", rank))) << error;
    EXPECT_EQ(error.find("trainyard: ", 1), std::string::npos) << error;
    expect_saved(3 - rank, "");
  }
}

// ---- Measured under it --------------------------------------------------------------------------

// By the launcher's variables, four ranks lie on two hosts; all messages stay on this host.
TEST(LaunchedRanks, MeasureWhatGoesBetweenHosts) {
  const fs::path script =
      write_scratch("hosts.sh", "export OMPI_COMM_WORLD_LOCAL_SIZE=2; exec \"$@\"\n");
  const std::string four = std::string(kMpirun).replace(std::string(kMpirun).rfind('2'), 1, "4");
  const fs::path device = scratch_folder() / "machine.json";
  const Ran ran =
      run_trainyard(fmt::format("calibrate --backend cpu --time-limit 4 -o {}", device.string()),
                    fmt::format("{} sh {}", four, script.string()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const char* family : {"all-reduce, 2 ranks", "all-gather, 2 hosts", "all-reduce, 2 hosts"}) {
    EXPECT_NE(ran.out.find(family), std::string::npos) << ran.out;
  }
  EXPECT_EQ(ran.out.find("4 ranks"), std::string::npos) << ran.out;
  const fs::path fabric = scratch_folder() / "machine.fabric.json";
  EXPECT_NE(read_text(fabric).find("collectives among all ranks of 2 to 2 hosts"),
            std::string::npos);

  std::string text = read_text(tiny_scenario(R"("data_parallel": 4)", 4));
  const auto cluster = text.find(R"("cluster": )"), training = text.find(R"("training": )");
  text.replace(cluster, training - cluster,
               R"("cluster": { "node": "machine.node.json", "nodes": 2,
                               "fabric": "machine.fabric.json" },)");
  const fs::path own = write_scratch("own.json", text);
  const Ran priced = run_trainyard(fmt::format("estimate {}", own.string()));
  EXPECT_LE(priced.status, 1) << priced.err;
}

TEST(LaunchedRanks, AreNotMeasuredWhereHostsHaveUnlikeNumbersOfThem) {
  const fs::path device = scratch_folder() / "machine.json";
  const std::string calibrate = fmt::format("calibrate --backend cpu -o {}", device.string());
  const Ran unlike = run_trainyard(
      calibrate, "env OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2");
  EXPECT_EQ(unlike.status, 2);
  EXPECT_EQ(unlike.err,
            "trainyard: found 3 ranks, 2 of them on this host; allowed: as many on every host\n");
  const Ran sockets =
      run_trainyard(calibrate, "env RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29500");
  EXPECT_EQ(sockets.status, 2);
  EXPECT_EQ(sockets.err,
            "trainyard: RANK: found a launcher that sets it; allowed: mpirun, srun, or none of "
            "them\n");
  EXPECT_FALSE(fs::exists(device));
}

}  // namespace
}  // namespace trainyard
