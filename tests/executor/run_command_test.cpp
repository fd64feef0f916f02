// `trainyard run` as its user sees it: what it prints and writes, and what it says and leaves
// behind if it is killed, numbers overflow or the disk is full. Uses real processes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>
#include <tuple>

#include "executor/supervision/process_state.h"
#include "scenarios/rank_status.h"
#include "tests/cli/program.h"
#include "tests/executor/running.h"
#include "tests/executor/tiny_scenario.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// ---- Right ------------------------------------------------------------------------------------

TEST(RunCommand, VerifiesAShardedPlanAndWritesItsProfile) {
  const std::string scenario = tiny_scenario(
      R"("tensor_parallel": 2, "pipeline_parallel": 2, "virtual_stages": 2, "zero_stage": 1)", 8);
  const fs::path profile = scratch_folder() / "profile.json";
  const Ran ran = run_trainyard(fmt::format(
      "run {} --backend cpu --ranks 8 --steps 2 --verify -o {}", scenario, profile.string()));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("Verified against the network on one rank"), std::string::npos) << ran.out;
  const std::string text = read_text(profile);
  EXPECT_NE(text.find("\"trainyard\": \"profile/1\""), std::string::npos);
  EXPECT_EQ(text.find("\"failure\""), std::string::npos);
  EXPECT_NE(text.find("\"measured\""), std::string::npos);
  const auto before = ran.out.find("one rank: ");
  ASSERT_NE(before, std::string::npos) << ran.out;
  const std::string compared = ran.out.substr(before + 10, ran.out.find(" tensors") - before - 10);
  EXPECT_NE(text.find(fmt::format("\"compared\": {},", compared)), std::string::npos) << text;
  EXPECT_NE(text.find("\"differing\": 0,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"complete\": true"), std::string::npos) << text;
}

// Of twelve seeds, those whose gradient norms were farthest off, by a fortieth: one more rounding
// to bf16 on each stage moves numbers of e5m2 by a quarter. In fp32 the same plan agrees to 1e-5.
TEST(RunCommand, VerifiesAPlanIn8BitsWhoseGradientNormIsFarOff) {
  const auto scenario = [](const char* precision) {
    return write_scratch("narrow.json", fmt::format(R"({{
    "trainyard": "scenario/1", "name": "narrow",
    "model": {{ "layers": 4, "hidden_size": 32, "attention_heads": 4, "kv_heads": 1, "head_dim": 8,
               "ffn_size": 40, "vocabulary": 64 }},
    "cluster": {{ "device": "h100-sxm-80gb", "devices_per_node": 4, "nodes": 1,
                 "intra_node": {{ "kind": "nvswitch", "bandwidth": "450 GB/s" }} }},
    "training": {{ "global_batch": 4, "sequence_length": 8, "precision": "{}",
                  "optimizer": "adam", "stack": "megatron-core" }},
    "plan": {{ "tensor_parallel": 2, "pipeline_parallel": 2, "virtual_stages": 2,
              "micro_batch": 1, "zero_stage": 0 }} }})",
                                                    precision))
        .string();
  };
  for (const auto& [precision, seed] : {std::pair{"fp8", 0}, {"fp8", 5}, {"fp32", 0}}) {
    const Ran ran = run_trainyard(
        fmt::format("run {} --steps 1 --warmup 0 --verify --seed {}", scenario(precision), seed));
    EXPECT_EQ(ran.status, 0) << precision << ran.out << ran.err;
  }
}

TEST(RunCommand, RefusesAnotherNumberOfRanksThanThePlanHas) {
  const Ran ran = run_trainyard(fmt::format("run {} --ranks 3", tiny_scenario("", 2)));
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("has 2 ranks"), std::string::npos) << ran.err;
}

// Two steps of 4 sequences of 8 tokens read 64 tokens, the next one, and one more for the layer of
// multi-token prediction. What follows in the file may be no token.
TEST(RunCommand, VerifiesMultiTokenPredictionAndReadsTheTokensThatItNeeds) {
  const std::string scenario =
      tiny_scenario(R"("tensor_parallel": 2, "pipeline_parallel": 2, "data_parallel": 2)", 8,
                    R"(, "mtp_layers": 1)");
  for (const std::size_t words : {66, 65}) {
    std::string bytes;
    for (std::size_t i = 0; i < words; ++i) bytes += {static_cast<char>(i % 29), '\0'};
    const fs::path tokens = write_scratch("tokens.bin", bytes + "\x7f\x7f");
    const Ran ran = run_trainyard(
        fmt::format("run {} --ranks 4 --scale-down --steps 2 --warmup 0 --verify --tokens {}",
                    scenario, tokens.string()));
    EXPECT_EQ(ran.status, words == 66 ? 0 : 2) << ran.out << ran.err;
    EXPECT_EQ(ran.err.find("token 65: found 32639") != std::string::npos, words == 65) << ran.err;
  }
}

// A layer has 16·h² = 2^36 weights of 16 bytes each in fp32 with Adam: a TiB.
std::string large_scenario(int ranks) {
  return write_scratch("large.json", fmt::format(R"({{
    "trainyard": "scenario/1", "name": "large",
    "model": {{ "layers": 1000, "hidden_size": 65536, "attention_heads": 512, "head_dim": 128,
               "ffn_size": 262144, "vocabulary": 1024 }},
    "cluster": {{ "device": "h100-sxm-80gb", "devices_per_node": {0}, "nodes": 1,
                 "intra_node": {{ "kind": "nvswitch", "bandwidth": "450 GB/s" }} }},
    "training": {{ "global_batch": 8, "sequence_length": 8, "precision": "fp32",
                  "optimizer": "adam", "stack": "megatron-core" }},
    "plan": {{ "tensor_parallel": {0} }} }})",
                                                 ranks))
      .string();
}

TEST(RunCommand, RefusesANetworkThatTheMachineCannotHold) {
  const std::string scenario = large_scenario(8);
  const Ran all = run_trainyard(fmt::format("run {}", scenario));
  EXPECT_EQ(all.status, 2) << all.out;
  EXPECT_NE(all.err.find(" TiB; this machine has"), std::string::npos) << all.err;
  const Ran one = run_trainyard(fmt::format("run {} --alone --rank 3", scenario));
  EXPECT_EQ(one.status, 2) << one.out;
  EXPECT_NE(one.err.find("optimizer states of 125"), std::string::npos) << one.err;
}

// Two of eight ranks on this host hold a quarter of 1000 TiB. If a launcher does not say how many
// ranks the host has, only one is known.
TEST(RunCommand, RefusesUnderALauncherWhatTheRanksOfTheHostCannotHold) {
  const std::string scenario = large_scenario(8);
  for (const auto& [launcher, states] :
       {std::pair{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_SIZE=2",
                  " of 250"},
        {"RANK=0 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4", " of 500"},
        {"RANK=0 WORLD_SIZE=8", " of 125"}}) {
    const Ran ran = run_trainyard(fmt::format("run {}", scenario), launcher);
    EXPECT_EQ(ran.status, 2) << launcher << ran.err;
    EXPECT_NE(ran.err.find(states), std::string::npos) << launcher << ran.err;
    EXPECT_NE(ran.err.find(" TiB; this machine has"), std::string::npos) << launcher << ran.err;
  }
}

TEST(RunCommand, DoesNotAdviseOneRankWhereThePlanHasOne) {
  const Ran ran = run_trainyard(fmt::format("run {}", large_scenario(1)));
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_NE(ran.err.find("smaller shards"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("--alone"), std::string::npos) << ran.err;
}

TEST(RunCommand, RepeatsARunFromItsSeed) {
  const std::string scenario = tiny_scenario("", 1);
  const auto losses = [&](int seed) {
    const Ran ran = run_trainyard(fmt::format("run {} --seed {} --format json", scenario, seed));
    std::vector<std::string> lines;
    for (const std::string& line : lines_of(ran.out)) {
      if (line.find("\"loss\"") != std::string::npos) lines.push_back(line);
    }
    return lines;
  };
  const auto first = losses(3);
  EXPECT_EQ(first.size(), 4U);  // three steps and the warm-up
  EXPECT_EQ(first, losses(3));
  EXPECT_NE(first, losses(4));
}

// With a learning rate of zero every step on the same batch has the loss of the first.
TEST(RunCommand, StandsStillAtALearningRateOfZero) {
  const Ran ran = run_trainyard(
      fmt::format("run {} --learning-rate 0 --same-batch --format json", tiny_scenario("", 2)));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("\"learning_rate\": 0"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("\"learning_rate\": 0.001"), std::string::npos) << ran.out;
  std::vector<std::string> losses;
  for (const std::string& line : lines_of(ran.out)) {
    if (line.find("\"loss\"") != std::string::npos) losses.push_back(line);
  }
  ASSERT_EQ(losses.size(), 4U);
  for (const std::string& loss : losses) EXPECT_EQ(loss, losses.front());
}

// A file whose tokens are all the same is learnt at once; the random tokens of a seed are not.
TEST(RunCommand, TrainsOnTheTokensOfAFile) {
  const fs::path tokens = write_scratch("tokens.bin", std::string("\5\0\5\0\5\0\5\0", 8));
  const fs::path profile = scratch_folder() / "profile.json";
  const std::string command =
      fmt::format("run {} --steps 9 --learning-rate 0.05 --verify", tiny_scenario("", 2));
  const auto ran = run_trainyard(
      fmt::format("{} --tokens {} -o {}", command, tokens.string(), profile.string()));
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::string text = read_text(profile);
  const auto last = text.rfind("\"loss\": ");
  ASSERT_NE(last, std::string::npos);
  double loss = 0;
  const char* number = text.data() + last + 8;
  std::from_chars(number, text.data() + text.size(), loss);
  EXPECT_LT(loss, 0.5);
  const fs::path strange = write_scratch("strange.bin", std::string("\5\0\35\0", 4));
  const auto refused = run_trainyard(fmt::format("{} --tokens {}", command, strange.string()));
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("token 1: found 29; allowed are 0 to 28"), std::string::npos)
      << refused.err;
  const auto onto =
      run_trainyard(fmt::format("{} --tokens {} -o {}", command, tokens.string(), tokens.string()));
  EXPECT_EQ(onto.status, 2);
  EXPECT_NE(onto.err.find("found a file that is read"), std::string::npos) << onto.err;
}

// A device has no end, so it is refused. Of a sparse file of a terabyte only the first tokens are
// read.
TEST(RunCommand, ReadsOfAFileWhatItTrainsOn) {
  const std::string command = fmt::format("run {} --steps 1 --tokens ", tiny_scenario("", 2));
  for (const std::string& file : {std::string("/dev/zero"), scratch_folder().string()}) {
    const Ran refused = run_trainyard(command + file);
    EXPECT_EQ(refused.status, 2);
    EXPECT_NE(refused.err.find(file + ": found no regular file"), std::string::npos) << refused.err;
    EXPECT_EQ(lines_of(refused.err).size(), 1U);
  }
  const fs::path huge = write_scratch("huge.bin", "");
  fs::resize_file(huge, std::uintmax_t{1} << 40);
  const Ran ran = run_trainyard(command + huge.string());
  EXPECT_EQ(ran.status, 0) << ran.err;
}

// One line per look, with the ranks in order and steps that never decrease.
TEST(RunCommand, SaysWhereEveryRankIsWhereItIsWatched) {
  const Ran ran =
      run_trainyard(fmt::format("run {} --steps 2 --warmup 1 --watch", tiny_scenario("", 2)));
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::int64_t before = 0;
  std::vector<RankStatus> last;
  for (const std::string& line : lines_of(ran.err)) {
    const auto ranks = read_rank_status(line);
    ASSERT_TRUE(ranks) << line;
    ASSERT_EQ(ranks->size(), 2U) << line;
    EXPECT_EQ(ranks->at(0).rank, 0);
    EXPECT_EQ(ranks->at(1).rank, 1);
    EXPECT_GE(ranks->at(0).steps_done, before);
    before = ranks->at(0).steps_done;
    last = *ranks;
  }
  ASSERT_EQ(last.size(), 2U);
  for (const RankStatus& status : last) {
    EXPECT_EQ(status.state, "done");
    EXPECT_EQ(status.steps_done, 3);
    EXPECT_EQ(status.steps, 3);
    EXPECT_GT(status.step_time, Seconds(0));
    EXPECT_FALSE(status.host.empty());
  }
}

// ---- When things go wrong -----------------------------------------------------------------------

TEST(RunCommand, LeavesNoRankWhenItIsKilledItself) {
  Running running(endless(tiny_scenario(kTwoStages, 2), scratch_folder() / "profile.json"));
  const auto board = running.board(0);
  ASSERT_TRUE(board);
  const int process = board->head().process;
  kill(running.process(), SIGKILL);
  running.wait();
  for (int i = 0; i < 500 && is_alive(process); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(is_alive(process));
}

int parent_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("PPid:")) return std::stoi(line.substr(5));
  }
  return 0;
}

// The files of the run's folder in memory that a process has mapped.
std::vector<fs::path> segments_of(int process) {
  std::vector<fs::path> found;
  std::ifstream file(fmt::format("/proc/{}/maps", process));
  for (std::string line; std::getline(file, line);) {
    const auto path = line.find("/dev/shm/trainyard-run-");
    if (path != std::string::npos) found.emplace_back(line.substr(path));
  }
  return found;
}

// The launcher's own files and segments lie in the folders of the run, which the supervisor
// removes.
TEST(RunCommand, LeavesNothingOfALauncherThatIsKilled) {
  Running running(endless(tiny_scenario(kTwoStages, 2), scratch_folder() / "profile.json"));
  const auto board = running.board(1);
  ASSERT_TRUE(board);
  const std::vector<fs::path> segments = segments_of(board->head().process);
  EXPECT_FALSE(segments.empty());
  kill(parent_of(board->head().process), SIGKILL);
  EXPECT_EQ(running.wait(), 3);
  for (const fs::path& segment : segments) EXPECT_FALSE(fs::exists(segment)) << segment;
  EXPECT_TRUE(fs::is_empty(running.folder()));
}

// The launcher sets RANK and WORLD_SIZE but never starts the peer. The rank waits for it as long as
// --timeout says.
TEST(RunCommand, WaitsForAPeerAsLongAsItIsTold) {
  const auto begun = std::chrono::steady_clock::now();
  const Ran ran = run_trainyard(fmt::format("run {} --timeout 1", tiny_scenario(kTwoStages, 2)),
                                "RANK=0 WORLD_SIZE=2 MASTER_PORT=29417");
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("rank 1 of 2 never came to 127.0.0.1:29417"), std::string::npos)
      << ran.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s);
}

TEST(RunCommand, RefusesARankThatALauncherCannotMean) {
  for (const char* environment :
       {"RANK=7 WORLD_SIZE=2", "RANK=x WORLD_SIZE=2", "RANK=0 WORLD_SIZE=0", "RANK=0 WORLD_SIZE=3",
        "RANK=0 WORLD_SIZE=2 MASTER_PORT=99999", "RANK=0 WORLD_SIZE=2 MASTER_PORT=x",
        "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2x", "PMI_RANK=2 PMI_SIZE=2",
        "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=2x"}) {
    const Ran ran = run_trainyard(fmt::format("run {}", tiny_scenario(kTwoStages, 2)), environment);
    EXPECT_EQ(ran.status, 2) << environment;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_NE(ran.err.find("allowed: "), std::string::npos) << ran.err;
  }
}

TEST(RunCommand, RefusesNumbersThatNoRunHas) {
  for (const char* option :
       {"--timeout nan", "--timeout 0", "--timeout inf", "--seed -1", "--learning-rate inf",
        "--learning-rate nan", "--learning-rate 1e39", "--learning-rate 1e400",
        "--learning-rate ''", "--rank 1", "--scale-down"}) {
    const Ran ran = run_trainyard(fmt::format("run {} {}", tiny_scenario("", 1), option));
    EXPECT_EQ(ran.status, 2) << option << ran.err;
    EXPECT_LT(ran.err.size(), 120u) << ran.err;  // no bound of 300 digits
  }
}

TEST(RunCommand, RefusesFilesThatOverwriteEachOther) {
  const std::string scenario = tiny_scenario("", 1);
  const fs::path file = scratch_folder() / "both.json";
  for (const std::string& outputs :
       {fmt::format("-o {} --trace {}", file.string(), file.string()), "-o " + scenario}) {
    const Ran ran = run_trainyard(fmt::format("run {} --steps 1 {}", scenario, outputs));
    EXPECT_EQ(ran.status, 2) << outputs;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_NE(ran.err.find("allowed: "), std::string::npos) << ran.err;
  }
  EXPECT_FALSE(fs::exists(file));
}

TEST(RunCommand, StopsAtALossThatIsNoNumber) {
  const fs::path profile = scratch_folder() / "profile.json";
  const Ran ran = run_trainyard(fmt::format("run {} --steps 20 --learning-rate 1e38 -o {}",
                                            tiny_scenario(kTwoStages, 2), profile.string()));
  EXPECT_EQ(ran.status, 3);
  // Steps with such a large learning rate leave weights of 1e38, so the second loss is not a
  // number. The error names one step.
  EXPECT_NE(ran.err.find("has a loss of "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find(": step 1, after its last operation"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("step "), ran.err.rfind("step ")) << ran.err;
  const std::string text = read_text(profile);
  EXPECT_NE(text.find("\"failure\""), std::string::npos);
  EXPECT_EQ(text.find("\"loss\": "), text.rfind("\"loss\": "));  // of the step that was done
}

// The test uses a link, so that a failure would not replace the real device file.
TEST(RunCommand, SaysThatTheDiskIsFullInTheEnd) {
  const fs::path full = scratch_folder() / "full.json";
  fs::remove(full);
  fs::create_symlink("/dev/full", full);
  for (const char* option : {"-o", "--trace"}) {
    const Ran ran =
        run_trainyard(fmt::format("run {} {} {}", tiny_scenario("", 1), option, full.string()));
    EXPECT_EQ(ran.status, 3) << option;
    EXPECT_NE(ran.err.find("full.json: cannot be written"), std::string::npos) << ran.err;
    EXPECT_TRUE(fs::is_symlink(full));
  }
}

// The error comes before the first step; so many steps would take days.
TEST(RunCommand, SaysWhatCannotBeWrittenBeforeItBegins) {
  const fs::path file = scratch_folder() / "none" / "out.json";
  for (const std::string& option :
       {"-o " + file.string(), "--trace " + file.string(), "-o " + scratch_folder().string()}) {
    const Ran ran =
        run_trainyard(fmt::format("run {} --steps 1000000 {}", tiny_scenario("", 1), option));
    EXPECT_EQ(ran.status, 2) << option;
    EXPECT_EQ(lines_of(ran.err).size(), 1U) << ran.err;
    EXPECT_NE(ran.err.find(option.substr(option.find('/')) + ": cannot be written: "),
              std::string::npos)
        << ran.err;
  }
  const Ran ran = run_trainyard(
      fmt::format("calibrate --backend cpu --ranks 1 --time-limit 100000 -o {}", file.string()));
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_NE(ran.err.find("out.json: cannot be written: "), std::string::npos) << ran.err;
}

// A limit on the size of files acts on a writer like a full disk.
TEST(RunCommand, SaysThatTheDiskIsFullBeforeARankBegins) {
  const auto ran =
      run_trainyard(fmt::format("run {}", tiny_scenario("", 1)), "trap '' XFSZ; ulimit -f 1;");
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("rank 0"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("cannot be written"), std::string::npos) << ran.err;
}

// A limit on address space stands for a lack of memory. Sanitizers need more address space than
// that.
TEST(RunCommand, SaysThatTheHostHasNoMemoryLeft) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes more address space than the limit";
  const std::string scenario = tiny_scenario("", 1, R"(, "hidden_size": 262144)");
  const std::string twice = R"("hidden_size": 16, )";
  std::string text = read_text(scenario);
  text.erase(text.find(twice), twice.size());
  const Ran ran = run_trainyard(fmt::format("run {}", write_scratch("wide.json", text).string()),
                                "ulimit -v 1000000;");
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("rank 0 on "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("has no memory left on its host"), std::string::npos) << ran.err;
}

TEST(RunCommand, SaysInOneLineThatThereIsNoGpu) {
  if (fs::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU";
  const auto ran = run_trainyard(fmt::format("run {} --backend cuda", tiny_scenario("", 1)));
  EXPECT_EQ(ran.status, 3);
  EXPECT_TRUE(ran.err.find("no GPU was found") != std::string::npos ||
              ran.err.find("built without CUDA") != std::string::npos)
      << ran.err;
  EXPECT_EQ(lines_of(ran.err).size(), 1U);
}

// ---- Smaller than the plan ----------------------------------------------------------------------

TEST(RunCommand, ScalesAPlanDownToTheRanksThatThereAre) {
  const Ran ran = run_trainyard(
      fmt::format("run {} --ranks 2 --scale-down --verify",
                  tiny_scenario(R"("pipeline_parallel": 4, "data_parallel": 4)", 16)));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("pipeline_parallel 4 → 2"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("data_parallel 4 → 1"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("layers 4 → 2"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("Verified"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("tiny, scaled down to 2 ranks"), std::string::npos) << ran.out;
}

// Six replicas do not form whole groups of four, and one stage has no chunks to interleave.
TEST(RunCommand, ScalesDownWhatItsScheduleOrItsGroupsHaveNoPlaceFor) {
  for (const auto& [plan, devices, ranks, change] :
       {std::tuple{R"("data_parallel": 8, "zero_stage": 3, "sharding_group": 4)", 8, 6,
                   "data_parallel 8 → 4"},
        std::tuple{R"("pipeline_parallel": 2, "virtual_stages": 2)", 2, 1,
                   "virtual_stages 2 → 1"}}) {
    const Ran ran = run_trainyard(fmt::format("run {} --ranks {} --scale-down --steps 1 --verify",
                                              tiny_scenario(plan, devices), ranks));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.err.find(change), std::string::npos) << ran.err;
    EXPECT_NE(ran.out.find("Verified"), std::string::npos) << ran.out;
  }
}

TEST(RunCommand, RunsOneRankOfManyAlone) {
  const Ran ran = run_trainyard(
      fmt::format("run {} --rank 5 --alone --format csv",
                  tiny_scenario(R"("tensor_parallel": 2, "pipeline_parallel": 2)", 8)));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("all-reduce"), std::string::npos) << ran.out;
}

// More ranks would not be used by a smaller run either.
TEST(RunCommand, AdvisesASmallerRunOnlyOfFewerRanks) {
  const auto refusal = [](int ranks, std::string_view more = "") {
    const Ran ran = run_trainyard(fmt::format(
        "run {} --ranks {} {}", tiny_scenario(R"("pipeline_parallel": 2)", 4), ranks, more));
    EXPECT_EQ(ran.status, 2);
    EXPECT_NE(ran.err.find(fmt::format("--ranks: found {}; ", ranks)), std::string::npos)
        << ran.err;
    return ran.err;
  };
  EXPECT_NE(refusal(2).find("--scale-down"), std::string::npos);
  EXPECT_EQ(refusal(16).find("--scale-down"), std::string::npos);
  EXPECT_NE(refusal(16).find("has 4 ranks"), std::string::npos);
  EXPECT_EQ(refusal(16, "--scale-down"), refusal(16));
}

TEST(RunCommand, RefusesARankThatTheSmallerPlanDoesNotHave) {
  const Ran ran = run_trainyard(
      fmt::format("run {} --alone --rank 5 --scale-down --ranks 2",
                  tiny_scenario(R"("tensor_parallel": 2, "pipeline_parallel": 2)", 8)));
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("--rank: found 5; "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("has 2 ranks, from 0"), std::string::npos) << ran.err;
}

// ---- Measured for a device ----------------------------------------------------------------------

// The node's document names the device beside it, and the stack is the executor's own. A scenario
// can name both.
TEST(CalibrateCommand, WritesANodeAndAStackThatAScenarioCanNameAtOnce) {
  const fs::path device = scratch_folder() / "machine.json";
  const Ran ran =
      run_trainyard(fmt::format("calibrate --backend cpu --time-limit 2 -o {}", device.string()));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("all-reduce, 2 ranks"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("send, 2 ranks"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("Beside an all-reduce arithmetic loses"), std::string::npos) << ran.out;
  std::string text = read_text(tiny_scenario(R"("tensor_parallel": 2)", 2));
  const auto cluster = text.find(R"("cluster": )"), training = text.find(R"("training": )");
  text.replace(cluster, training - cluster,
               R"("cluster": { "node": "machine.node.json", "nodes": 1 },)");
  const std::string stack = "megatron-core";
  text.replace(text.find(stack), stack.size(), "machine.stack.json");
  const fs::path own = write_scratch("own.json", text);
  const Ran priced = run_trainyard(fmt::format("simulate {}", own.string()));
  EXPECT_LE(priced.status, 1) << priced.err;
  EXPECT_NE(priced.out.find("step"), std::string::npos) << priced.out;
}

// One rank has no second one to communicate with. Every point is listed with its interval.
TEST(CalibrateCommand, ListsEveryPointWithItsInterval) {
  const fs::path device = scratch_folder() / "alone.json";
  const Ran ran = run_trainyard(fmt::format(
      "calibrate --backend cpu --ranks 1 --time-limit 1 --format csv -o {}", device.string()));
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::vector<std::string> lines = lines_of(ran.out);
  // A header, and the rows that are measured however short the time is (HostMeasurement, below a
  // fit's minimum). The steps add rows for as many networks as there is time for.
  ASSERT_GT(lines.size(), 1U + 1 + 60 + 120 + 12);
  EXPECT_EQ(lines.front(), "operations,what,median_s,low_s,high_s,runs,outliers,fitted_s");
  EXPECT_EQ(ran.out.find("all-reduce"), std::string::npos);
  EXPECT_NE(ran.out.find("GEMM in a step,weight gradient "), std::string::npos);
  EXPECT_NE(read_text(scratch_folder() / "alone.node.json").find("no second rank"),
            std::string::npos);
}

}  // namespace
}  // namespace trainyard
