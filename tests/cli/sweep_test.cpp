// trainyard sweep as its users start, stop and kill it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/cli/sweeping.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SweepCommand, SaysWhatItFound) {
  const fs::path sweep = slow_sweep(3);  // one life each would leave the order to chance
  const fs::path out = scratch_folder() / "results.sqlite";
  const Ran ran = run_trainyard(sweep_command(sweep, out));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("32 fit, 0 do not fit, 0 refused"));
  EXPECT_THAT(ran.out, HasSubstr("reliability.device_mtbf 80000 h"));  // the rarest failures
  const Ran again = run_trainyard(sweep_command(sweep, out) + " --format json");
  EXPECT_EQ(again.status, 0) << again.err;
  const auto json = nlohmann::json::parse(again.out);
  EXPECT_EQ(json.at("answered"), 0);
  EXPECT_EQ(json.at("found"), kPoints);
  EXPECT_EQ(json.at("best").at("point"), kPoints - 1);
  // The rows are ordered by goodput below a header and a rule, so the rarest failures come first.
  const std::string table = ran.out.substr(ran.out.find("the best 10 by goodput"));
  EXPECT_THAT(table, HasSubstr("device_mtbf"));
  EXPECT_THAT(table, HasSubstr("goodput\n"));
  EXPECT_LT(table.find("80000 h"), table.find(fmt::format("\n{:5}  ", kPoints - 2))) << table;
}

// Keys that do not fit in a line are left to the report.
TEST(SweepCommand, PrintsATableOfAsManyKeysAsALineHolds) {
  const auto printed = [](const std::string& keys) {
    const fs::path sweep = write_scratch("keys.json", fmt::format(R"({{ "trainyard": "sweep/1",
        "scenario": {{ "model": "llama-3.1-8b", "cluster": {{ "node": "dgx-h100-80gb", "nodes": 1 }},
          "training": {{ "global_batch": 32, "sequence_length": 4096 }},
          "plan": {{ "tensor_parallel": 2, "recompute": "full" }} }},
        "combine": "one-at-a-time", "vary": [{}] }})",
                                                                  keys));
    return run_trainyard(
               sweep_command(sweep, scratch_folder() / fmt::format("{}.sqlite", keys.size())))
        .out;
  };
  const std::string few = R"({ "key": "plan.tensor_parallel", "values": [4] },
                             { "key": "plan.zero_stage", "values": [2] })";
  const std::string two = printed(few);
  EXPECT_THAT(two, HasSubstr("point  tensor_parallel  zero_stage "));
  EXPECT_THAT(two, HasSubstr("0                ·           · "));  // as the scenario has it
  const std::string many = printed(few + R"(, { "key": "training.global_batch", "values": [64] },
      { "key": "training.sequence_length", "values": [2048] },
      { "key": "plan.sequence_parallel", "values": [false] })");
  EXPECT_THAT(many, HasSubstr("best   "));
  EXPECT_THAT(many, Not(HasSubstr("the best")));
}

TEST(SweepCommand, KilledLosesThePointsInFlightAloneAndContinues) {
  const fs::path sweep = slow_sweep();
  const fs::path whole = scratch_folder() / "whole.sqlite";
  const fs::path killed = scratch_folder() / "killed.sqlite";
  ASSERT_EQ(run_trainyard(sweep_command(sweep, whole)).status, 0);
  int kills = 0;
  for (const std::int64_t least : {2, 8, 14}) {
    const BackgroundProgram program =
        sweeping({sweep.string(), "-o", killed.string(), "--threads", "1"});
    EXPECT_TRUE(wait_until([&] { return rows_in(killed) >= least; }));
    const std::int64_t seen = rows_in(killed);
    program.send(SIGKILL);
    kills += program.wait() == -SIGKILL ? 1 : 0;
    EXPECT_GE(rows_in(killed), seen);
  }
  EXPECT_EQ(kills, 3);
  EXPECT_LT(rows_in(killed), kPoints);
  EXPECT_EQ(run_trainyard(sweep_command(sweep, killed)).status, 0);
  EXPECT_EQ(dump(killed), dump(whole));
}

TEST(SweepCommand, InterruptedKeepsWhatIsDoneAndSaysHowToContinue) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  const BackgroundProgram program =
      sweeping({sweep.string(), "-o", out.string(), "--threads", "1"});
  EXPECT_TRUE(wait_until([&] { return rows_in(out) >= 2; }));
  program.send(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_FALSE(fs::exists(out.string() + "-wal"));
  EXPECT_GE(rows_in(out), 2);
  EXPECT_LT(rows_in(out), kPoints);
  EXPECT_EQ(run_trainyard(sweep_command(sweep, out)).status, 0);
  EXPECT_EQ(rows_in(out), kPoints);
}

TEST(SweepCommand, WithRanksLosesNothingWhenOneOfFourIsKilled) {
  const fs::path sweep = slow_sweep();
  const fs::path whole = scratch_folder() / "whole.sqlite";
  const fs::path ranked = scratch_folder() / "ranked.sqlite";
  const fs::path log = scratch_folder() / "log";
  ASSERT_EQ(run_trainyard(sweep_command(sweep, whole)).status, 0);
  const BackgroundProgram program =
      sweeping({sweep.string(), "-o", ranked.string(), "--ranks", "4", "--format", "json"}, log);
  EXPECT_TRUE(wait_until([&] { return rows_in(ranked) >= 4; }));
  const std::vector<pid_t> workers = children_of(program.pid());
  ASSERT_EQ(workers.size(), 4u);
  ::kill(workers[1], SIGKILL);
  EXPECT_EQ(program.wait(), 0);
  const auto json = nlohmann::json::parse(read_text(log));
  EXPECT_EQ(json.at("lost_workers"), 1);
  EXPECT_TRUE(json.at("complete").get<bool>());
  EXPECT_EQ(dump(ranked), dump(whole));
}

TEST(SweepCommand, WithRanksLeavesNoProcessBehindWhenItIsKilled) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  const BackgroundProgram program = sweeping({sweep.string(), "-o", out.string(), "--ranks", "2"});
  EXPECT_TRUE(wait_until([&] { return rows_in(out) >= 2; }));
  const std::vector<pid_t> workers = children_of(program.pid());
  ASSERT_EQ(workers.size(), 2u);
  program.send(SIGKILL);
  EXPECT_EQ(program.wait(), -SIGKILL);
  for (const pid_t worker : workers) {
    EXPECT_TRUE(wait_until([worker] { return is_gone(worker); }));
  }
  EXPECT_EQ(run_trainyard(sweep_command(sweep, out) + " --ranks 2").status, 0);
  EXPECT_EQ(rows_in(out), kPoints);
}

TEST(SweepCommand, WithRanksNamesTheCaseWhereEveryWorkerDied) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  const BackgroundProgram program = sweeping({sweep.string(), "-o", out.string(), "--ranks", "2"});
  EXPECT_TRUE(wait_until([&] { return rows_in(out) >= 2; }));
  for (const pid_t worker : children_of(program.pid())) ::kill(worker, SIGKILL);
  EXPECT_EQ(program.wait(), 3);
  EXPECT_EQ(run_trainyard(sweep_command(sweep, out)).status, 0);
  EXPECT_EQ(rows_in(out), kPoints);
}

// Tiny networks run on this machine: the measured values stand beside the estimates, and a plan
// that the machine cannot run gives a row with the reason.
TEST(SweepCommand, RunsItsPointsForReal) {
  const fs::path sweep = write_scratch("runs.json", R"({ "trainyard": "sweep/1", "evaluate": "run",
    "scenario": { "name": "tiny",
      "model": { "layers": 2, "hidden_size": 16, "attention_heads": 4, "ffn_size": 24,
                 "vocabulary": 29 },
      "cluster": { "device": "h100-sxm-80gb", "devices_per_node": 1, "nodes": 1,
                   "intra_node": { "kind": "nvswitch", "bandwidth": "450 GB/s" } },
      "training": { "global_batch": 2, "sequence_length": 8, "precision": "fp32",
                    "optimizer": "adam" },
      "plan": {} },
    "vary": [ { "key": "training.optimizer", "values": ["adam", "muon"] } ] })");
  const fs::path out = scratch_folder() / "results.sqlite";
  const Ran ran = run_trainyard(sweep_command(sweep, out));
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::vector<std::string> rows = lines_of(dump(out));
  ASSERT_EQ(rows.size(), 2u);
  const auto adam = nlohmann::json::parse(rows[0]);
  EXPECT_GT(adam.at("measured_step_time_s").get<double>(), 0);
  EXPECT_GT(adam.at("measured_peak_memory_bytes").get<double>(), 0);
  EXPECT_GT(adam.at("step_time_s").get<double>(), 0);
  const auto muon = nlohmann::json::parse(rows[1]);
  EXPECT_EQ(muon.at("status"), "refused");
  EXPECT_THAT(muon.at("note").get<std::string>(), HasSubstr("muon"));
  const fs::path unrun = scratch_folder() / "unrun.sqlite";
  run_trainyard(sweep_command(sweep, unrun), "env TMPDIR=/nowhere");
  EXPECT_THAT(dump(unrun), HasSubstr("no temporary folder can be made there"));
  const Ran several =
      run_trainyard(sweep_command(sweep, scratch_folder() / "s.sqlite") + " --ranks 2");
  EXPECT_EQ(several.status, 2);
  EXPECT_THAT(several.err, HasSubstr("measures one run at a time"));
}

TEST(SweepCommand, RefusesInOneLine) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  ASSERT_EQ(run_trainyard(sweep_command(sweep, out)).status, 0);
  const fs::path other = write_scratch("other.json", R"({ "trainyard": "sweep/1",
    "scenario": "small.json", "vary": [ { "key": "cluster.nodes", "values": [1, 2] } ] })");
  small_scenario();
  const Ran another = run_trainyard(sweep_command(other, out));
  EXPECT_EQ(another.status, 2);
  EXPECT_EQ(lines_of(another.err).size(), 1u) << another.err;
  EXPECT_THAT(another.err, HasSubstr("found the results of another sweep"));
  const Ran nowhere = run_trainyard(sweep_command(sweep, scratch_folder() / "no" / "r.sqlite"));
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_EQ(lines_of(nowhere.err).size(), 1u) << nowhere.err;
}

}  // namespace
}  // namespace trainyard
