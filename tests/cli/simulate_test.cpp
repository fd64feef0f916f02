// trainyard simulate and compare: what they print, and the trace that they write.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace trainyard {
namespace {

std::filesystem::path two_stages(const std::string& more = "") {
  return small_scenario(R"(, "plan": { "tensor_parallel": 2, "pipeline_parallel": 2)" + more + "}");
}

std::string simulate(const std::filesystem::path& file, const std::string& options = "") {
  return "simulate '" + file.string() + "' " + options;
}

TEST(SimulateCommand, SaysWhereTheStepGoes) {
  const Ran ran = run_trainyard(simulate(two_stages()));
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {"where the step goes", "critical path", "stage", "links", "peak"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part;
  }
}

TEST(SimulateCommand, GivesPartsThatSumToTheStep) {
  const Ran ran = run_trainyard(simulate(two_stages(), "--format json"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_EQ(json.at("trainyard"), "simulation/1");
  const double step = json.at("step_time_s").get<double>();
  double sum = 0;
  for (const auto& [part, time] : json.at("breakdown").items()) sum += time.get<double>();
  EXPECT_NEAR(sum / step, 1, 1e-9);
  EXPECT_EQ(json.at("stages").size(), 2u);
  for (const PrintedJson& stage : json.at("stages")) {
    EXPECT_GT(stage.at("memory_timeline").size(), 2u);
    EXPECT_LE(stage.at("utilisation").get<double>(), 1);
  }
  for (const PrintedJson& link : json.at("links")) {
    EXPECT_LE(link.at("utilisation").get<double>(), link.at("utilisation_max").get<double>());
    EXPECT_LE(link.at("utilisation_max").get<double>(), 1 + 1e-9);
  }
}

// Ranks that behave alike take the same time, whether one or all of them are played.
TEST(SimulateCommand, TakesTheSameTimeFoldedAndNot) {
  const PrintedJson folded =
      PrintedJson::parse(run_trainyard(simulate(two_stages(), "--format json")).out);
  const PrintedJson all =
      PrintedJson::parse(run_trainyard(simulate(two_stages(), "--format json --fold off")).out);
  EXPECT_EQ(folded.at("folded"), true);
  EXPECT_EQ(folded.at("ranks"), 2);
  EXPECT_EQ(all.at("folded"), false);
  EXPECT_EQ(all.at("ranks"), 8);
  EXPECT_NEAR(all.at("step_time_s").get<double>() / folded.at("step_time_s").get<double>(), 1,
              1e-9);
}

// Every rank has its slices, and every message has one that sends it and one that receives it.
TEST(SimulateCommand, WritesATraceOfEveryRank) {
  const auto file = scratch_folder() / "trace.json";
  const Ran ran = run_trainyard(
      simulate(two_stages(R"(, "micro_batch": 2)"), "--fold off --trace '" + file.string() + "'"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson trace = PrintedJson::parse(read_text(file));
  std::map<int, int> slices;
  std::map<std::int64_t, int> sent, received;
  for (const PrintedJson& event : trace.at("traceEvents")) {
    const auto kind = event.at("ph").get<std::string>();
    if (kind == "X") ++slices[event.at("pid").get<int>()];
    if (kind == "s") ++sent[event.at("id").get<std::int64_t>()];
    if (kind == "f") ++received[event.at("id").get<std::int64_t>()];
  }
  EXPECT_EQ(slices.size(), 8u);
  EXPECT_FALSE(sent.empty());
  EXPECT_EQ(sent, received);
  for (const auto& [id, count] : sent) EXPECT_EQ(count, 1) << id;
}

std::filesystem::path disturbed(const std::string& conditions) {
  return small_scenario(R"(, "plan": { "tensor_parallel": 2, "pipeline_parallel": 2 },
                            "simulation": )" +
                        conditions);
}

TEST(SimulateCommand, HonoursWhatDisturbsTheStep) {
  const auto step = [](const PrintedJson& json) { return json.at("step_time_s").get<double>(); };
  const PrintedJson alike =
      PrintedJson::parse(run_trainyard(simulate(two_stages(), "--format json")).out);
  EXPECT_FALSE(alike.contains("unfolded_because"));
  const auto slow = disturbed(R"({ "stragglers": [{ "rank": 7, "speed": 0.5 }], "seed": 3 })");
  const PrintedJson one = PrintedJson::parse(run_trainyard(simulate(slow, "--format json")).out);
  EXPECT_EQ(one.at("unfolded_because"), "ranks differ in speed");
  EXPECT_EQ(one.at("ranks"), 8);
  // The last stage has the head, so it is the longest. At half speed its busy time doubles, and the
  // step grows by that; it stays below twice the step.
  const double busy = alike.at("stages").at(1).at("busy_s").get<double>();
  EXPECT_GT(step(one), step(alike) + 0.95 * busy);
  EXPECT_LT(step(one), 2 * step(alike));
  EXPECT_NE(run_trainyard(simulate(slow)).out.find("slow devices"), std::string::npos);
  const auto kept = scratch_folder() / "slow.json";
  std::filesystem::copy_file(slow, kept, std::filesystem::copy_options::overwrite_existing);
  const PrintedJson compared = PrintedJson::parse(
      run_trainyard("compare '" + kept.string() + "' '" + two_stages().string() + "' --format json")
          .out);
  EXPECT_EQ(compared.at("step_time_a_s"), one.at("step_time_s"));
  EXPECT_EQ(compared.at("step_time_b_s"), alike.at("step_time_s"));
}

// Each of two replicas has 16 sequences of a quarter of the length, four per micro-batch.
TEST(SimulateCommand, SaysHowManyMicroBatchesDynamicOnesAre) {
  const auto file = disturbed(R"({ "sequences": { "lengths": [2048], "dynamic": true } })");
  const PrintedJson json = PrintedJson::parse(run_trainyard(simulate(file, "--format json")).out);
  EXPECT_EQ(json.at("micro_batches"), 4);
  EXPECT_EQ(json.at("micro_batch_tokens"), 8192);
  EXPECT_NE(run_trainyard(simulate(file))
                .out.find("4 micro-batches a replica, of 8,192 tokens at most; the plan has 16."),
            std::string::npos);
  const PrintedJson fixed =
      PrintedJson::parse(run_trainyard(simulate(two_stages(), "--format json")).out);
  EXPECT_FALSE(fixed.contains("micro_batches"));
}

TEST(SimulateCommand, RefusesConditionsThatTheClusterHasNot) {
  const Ran ran =
      run_trainyard(simulate(disturbed(R"({ "stragglers": [{ "rank": 8, "speed": 0.5 }] })")));
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(ran.out.empty());
  EXPECT_EQ(lines_of(ran.err).size(), 1U);
  EXPECT_NE(ran.err.find("/simulation/stragglers/0/rank: found rank 8, allowed 0 to 7"),
            std::string::npos)
      << ran.err;
}

// The speeds of one device multiply to a trillionth.
std::filesystem::path beyond_clock() {
  return disturbed(R"({ "stragglers": [{ "rank": 0, "speed": 1e-4 }, { "rank": 0, "speed": 1e-4 },
                                       { "rank": 0, "speed": 1e-4 }] })");
}

TEST(SimulateCommand, RefusesAStepBeyondItsClockInOneLine) {
  const auto file = beyond_clock();
  const Ran ran = run_trainyard(simulate(file));
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(ran.out.empty());
  EXPECT_EQ(ran.err, "trainyard: " + file.string() +
                         ": simulation: found a longer step, allowed up to 106 days, the range of "
                         "its clock\n");
}

// No simulation runs if its trace cannot be written. Of the two reasons to refuse, the answer gives
// this one.
TEST(SimulateCommand, SaysWhereATraceCannotBeWrittenBeforeItPlays) {
  const Ran ran = run_trainyard(simulate(beyond_clock(), "--trace /nowhere/trace.json"));
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(ran.out.empty());
  EXPECT_EQ(lines_of(ran.err).size(), 1U);
  EXPECT_NE(ran.err.find("/nowhere/trace.json: cannot be written"), std::string::npos) << ran.err;
}

TEST(SimulateCommand, SaysWhereATraceFindsNoRoom) {
  const Ran ran = run_trainyard(simulate(two_stages(), "--trace /dev/full"));
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("/dev/full: cannot be written"), std::string::npos) << ran.err;
}

TEST(CompareCommand, FindsNoDifferenceOfAScenarioToItself) {
  const std::string file = "'" + two_stages().string() + "' ";
  const Ran ran = run_trainyard("compare " + file + file + "--format json");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_EQ(json.at("step_time_a_s"), json.at("step_time_b_s"));
  EXPECT_FALSE(json.at("operations").empty());
  for (const PrintedJson& of : json.at("operations")) {
    EXPECT_EQ(of.at("tasks_a"), of.at("tasks_b"));
    EXPECT_EQ(of.at("time_a_s"), of.at("time_b_s"));
  }
}

// Full recomputation repeats the forward pass, so its operations are in B only.
TEST(CompareCommand, NamesWhatRecomputationAdds) {
  const auto before = scratch_folder() / "before.json";
  std::filesystem::copy_file(two_stages(), before,
                             std::filesystem::copy_options::overwrite_existing);
  const auto after = two_stages(R"(, "recompute": "full")");
  const Ran ran =
      run_trainyard("compare '" + before.string() + "' '" + after.string() + "' --format json");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  double again = 0;
  for (const PrintedJson& of : json.at("operations")) {
    if (of.at("operation").get<std::string>().find(" again") == std::string::npos) continue;
    EXPECT_EQ(of.at("tasks_a"), 0);
    again += of.at("time_b_s").get<double>();
  }
  EXPECT_GT(again, 0);
}

}  // namespace
}  // namespace trainyard
