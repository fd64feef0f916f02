// trainyard goodput: the life of a whole run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace trainyard {
namespace {

std::string goodput(const std::filesystem::path& file, const std::string& options = "") {
  return "goodput '" + file.string() + "' " + options;
}

// One node of eight devices, of which one fails every second day, simulated for 30 days.
std::filesystem::path month() {
  return small_scenario(R"(, "plan": { "tensor_parallel": 2 },
    "run": { "duration": "30 days", "runs": 20 },
    "reliability": { "device_mtbf": "16 days", "repair": "6 h" })");
}

TEST(GoodputCommand, SaysWhereTheRunGoes) {
  const Ran ran = run_trainyard(goodput(month()));
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {"goodput", "interruptions", "useful training", "work lost", "Daly"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part;
  }
}

TEST(GoodputCommand, GivesPartsThatSumToTheRunAndTheSameAnswerTwice) {
  const Ran ran = run_trainyard(goodput(month(), "--format json"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(run_trainyard(goodput(month(), "--format json")).out, ran.out);
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_EQ(json.at("trainyard"), "goodput/1");
  double sum = 0;
  for (const auto& [part, time] : json.at("time").items()) sum += time.get<double>();
  EXPECT_NEAR(sum, 30 * 86400.0, 1);
  EXPECT_NEAR(json.at("interruptions").at("mean").get<double>(), 15, 3);  // 20 runs: 15 ± 0.9
  EXPECT_NEAR(json.at("closed_form").at("mtbf_s").get<double>(), 2 * 86400.0, 1e-6);
  const Ran csv = run_trainyard(goodput(month(), "--format csv"));
  EXPECT_EQ(lines_of(csv.out).size(), 2u);
}

// 32 devices on 2 + 2 nodes. Each fails once in 64 days, so one of them fails every second day.
TEST(GoodputCommand, AnswersForGroupsOfUnlikeNodes) {
  const auto file = unlike_groups(2, R"(, "run": { "duration": "60 days", "runs": 20 },
    "planner": { "tensor_parallel": 4, "micro_batch": 1 },
    "reliability": { "device_mtbf": "64 days", "elastic": "replan", "spares": 0 })");
  const Ran ran = run_trainyard(goodput(file, "--format json"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_EQ(json.at("devices"), 32);
  EXPECT_NEAR(json.at("closed_form").at("mtbf_s").get<double>(), 2 * 86400.0, 1e-6);
  EXPECT_NEAR(json.at("interruptions").at("mean").get<double>(), 30, 6);
  const PrintedJson plan =
      PrintedJson::parse(run_trainyard("plan '" + file.string() + "' --format json").out);
  EXPECT_EQ(json.at("plan"), plan.at("plans").at(0));
  EXPECT_NE(run_trainyard(goodput(file)).out.find("a100"), std::string::npos);
}

// The planner deals layers and micro-batches to the groups, and a plan in the document states
// neither.
TEST(GoodputCommand, RefusesAPlanForGroupsOfUnlikeNodesAsPlanDoes) {
  const auto file = unlike_groups(2, R"(, "plan": { "tensor_parallel": 2 },
    "run": { "duration": "60 days" })");
  for (const char* command : {"goodput", "plan"}) {
    const Ran ran = run_trainyard(fmt::format("{} '{}'", command, file.string()));
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(lines_of(ran.err).size(), 1u);
    EXPECT_NE(ran.err.find("/plan: found a plan with groups of unlike nodes"), std::string::npos)
        << ran.err;
  }
}

TEST(GoodputCommand, AsksForTheLengthOfTheRun) {
  const Ran ran = run_trainyard(goodput(small_scenario(R"(, "plan": { "tensor_parallel": 2 })")));
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(lines_of(ran.err).size(), 1u);
  EXPECT_NE(ran.err.find("/run: found no length"), std::string::npos) << ran.err;
}

// One of eight devices fails every four seconds and a restart takes twenty minutes, so no
// checkpoint is ever taken.
TEST(GoodputCommand, SaysWhenRunsAreGivenUp) {
  const auto file = small_scenario(R"(, "plan": { "tensor_parallel": 2 }, "price": "1 USD/h",
    "run": { "work": "30 days", "runs": 20 },
    "reliability": { "device_mtbf": "32 s", "restart": { "start": "20 min" } })");
  const Ran ran = run_trainyard(goodput(file));
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("20 were given up"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("best by simulation"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("give the most work"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("USD"), std::string::npos) << ran.out;
  const PrintedJson json = PrintedJson::parse(run_trainyard(goodput(file, "--format json")).out);
  EXPECT_EQ(json.at("finished"), 0);
  for (const char* key : {"wall_time_s", "cost_usd", "energy_joule", "best_interval_s",
                          "best_interval_goodput", "taken_interval_goodput", "best_spares"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  const std::string csv = run_trainyard(goodput(file, "--format csv")).out;
  EXPECT_NE(csv.find("runs,finished,goodput,wall_time_s,wall_time_low_s,wall_time_high_s"),
            std::string::npos)
      << csv;
  EXPECT_NE(csv.find(",20,0,0,,,,"), std::string::npos) << csv;
}

TEST(GoodputCommand, RefusesARunThatIsStruckAllTheTime) {
  const Ran ran = run_trainyard(goodput(small_scenario(R"(, "plan": { "tensor_parallel": 2 },
    "run": { "duration": "30 days" }, "reliability": { "device_mtbf": "1 us" })")));
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("checkpoints and failures in a run"), std::string::npos) << ran.err;
}

// A checkpoint is asked for every microsecond, but there are no more of them than steps.
TEST(GoodputCommand, TakesNoMoreCheckpointsThanSteps) {
  const Ran ran = run_trainyard(goodput(small_scenario(R"(, "plan": { "tensor_parallel": 2 },
    "run": { "duration": "1 h", "runs": 2 },
    "checkpoint": { "interval": "1 us", "bytes": "1 B", "mode": "synchronous" })"),
                                        "--format json"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const Ran estimate = run_trainyard(
      "estimate '" + small_scenario(R"(, "plan": { "tensor_parallel": 2 })").string() +
      "' --format json");
  const double step = PrintedJson::parse(estimate.out).at("step_time_s").get<double>();
  EXPECT_GE(json.at("interval_s").get<double>(), step);
  EXPECT_GE(json.at("best_interval_s").get<double>(), step);
}

// A checkpoint takes 1 s (1 GB at 1 GB/s) and a failure comes every 2 h, so Young's interval is √(2
// · 1 s · 7200 s) = 120 s. Whichever interval is asked for, the best is found there, and not at the
// end of a search around the one asked for.
TEST(GoodputCommand, LooksForTheBestIntervalWhereTheClosedFormHasIt) {
  const auto answer = [](const char* interval) {
    const Ran ran = run_trainyard(goodput(small_scenario(fmt::format(R"(,
        "plan": {{ "tensor_parallel": 2 }}, "run": {{ "duration": "30 days", "runs": 20 }},
        "reliability": {{ "device_mtbf": "16 h", "spares": 20 }},
        "checkpoint": {{ "mode": "synchronous", "bytes": "1 GB", "interval": "{}" }})",
                                                                     interval)),
                                          "--format json"));
    EXPECT_EQ(ran.status, 0) << ran.err;
    return PrintedJson::parse(ran.out);
  };
  const PrintedJson json = answer("1 h");
  // Half of it is lost at a failure, every two hours: 25 % where 120 s lose 2 % with their writing.
  EXPECT_LT(json.at("taken_interval_goodput").get<double>(),
            json.at("best_interval_goodput").get<double>());
  const double daly = json.at("closed_form").at("daly_interval_s").get<double>();
  EXPECT_NEAR(daly, 120, 5);
  EXPECT_GE(json.at("best_interval_s").get<double>(), daly / 2);
  EXPECT_LE(json.at("best_interval_s").get<double>(), daly * 2);
  EXPECT_NEAR(json.at("best_interval_goodput").get<double>(),
              answer("2 min").at("best_interval_goodput").get<double>(), 0.002);
}

// 18 bytes for each of 8.03e9 parameters do not fit in 86 GB.
TEST(GoodputCommand, SaysThatThePlanDoesNotFit) {
  const auto file = small_scenario(R"(, "plan": { "zero_stage": 0 },
    "run": { "work": "1 h", "runs": 1 })");
  const Ran ran = run_trainyard(goodput(file));
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("does not fit"), std::string::npos) << ran.out;
  EXPECT_EQ(PrintedJson::parse(run_trainyard(goodput(file, "--format json")).out).at("feasible"),
            false);
}

// An hour of work is never done if every restart is struck again.
TEST(GoodputCommand, EndsWithStatusOneWhenTheWorkIsNeverDone) {
  const Ran ran = run_trainyard(goodput(small_scenario(R"(, "plan": { "tensor_parallel": 2 },
    "run": { "work": "1 h", "runs": 2 }, "reliability": { "device_mtbf": "6 min", "spares": 0 })")));
  EXPECT_EQ(ran.status, 1) << ran.err;
}

}  // namespace
}  // namespace trainyard
