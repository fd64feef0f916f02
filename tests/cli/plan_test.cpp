// `trainyard plan` as its users see it, beyond the best plan of one size: sizes, rows that look
// alike, searches that are stopped.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program.h"

namespace trainyard {
namespace {

std::string quoted(const std::filesystem::path& file) { return "'" + file.string() + "'"; }

std::filesystem::path scenario_of(const std::string& nodes, const std::string& planner) {
  return write_scratch("sizes.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": )" +
                                         nodes + R"( },
    "training": { "global_batch": 256, "sequence_length": 8192, "tokens": 1e12 },
    "planner": )" + planner + " }");
}

TEST(PlanOfSizes, NamesTheFewestDevicesInTime) {
  const std::string file = quoted(scenario_of(
      "1", R"({ "nodes": { "from": 2, "to": 32 }, "deadline": "30 days", "micro_batch": 1 })"));
  const Ran ran = run_trainyard("plan --format json " + file);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& points = json.at("points");
  ASSERT_EQ(points.size(), 5u);  // 2, 4, 8, 16, 32
  constexpr double kLimit = 30 * 86400;
  const PrintedJson* fewest = nullptr;
  for (const PrintedJson& point : points) {
    EXPECT_EQ(point.at("in_time"), point.at("run_time_s") <= kLimit);
    const PrintedJson& best = point.at("best");
    const double alone =
        1e12 / (best.at("tokens_per_second").get<double>() * best.at("goodput").get<double>());
    EXPECT_NEAR(point.at("run_time_s").get<double>(), alone, 1e-6 * alone);
    if (point.at("in_time") == true && fewest == nullptr) fewest = &point;
  }
  ASSERT_NE(fewest, nullptr);
  ASSERT_NE(fewest, &points.front());
  EXPECT_EQ(points.at(json.at("fewest_devices").get<std::size_t>()), *fewest);
  const std::string text = run_trainyard("plan " + file).out;
  EXPECT_NE(text.find("fewest devices "), std::string::npos) << text;
  EXPECT_NE(text.find("within 30.00 days"), std::string::npos) << text;
}

TEST(PlanOfSizes, NamesTheLargestNetworkAndTheLongestSequence) {
  const std::filesystem::path file =
      scenario_of("1", R"({ "model": ["llama-3.1-8b", "llama-3.1-405b", "llama-3.1-70b"],
                            "sequence_length": [8192, 16384], "micro_batch": 1 })");
  const Ran ran = run_trainyard("plan --format json " + quoted(file));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& points = json.at("points");
  ASSERT_EQ(points.size(), 6u);
  // 18 B a parameter on 8 × 80 GiB: 70.6 billion need 1.3 TB.
  EXPECT_EQ(points.at(json.at("largest_model").get<std::size_t>()).at("model"), "llama-3.1-8b");
  EXPECT_EQ(points.at(json.at("longest_sequence").get<std::size_t>()).at("sequence_length"), 16384);
  EXPECT_TRUE(points[2].at("best").is_null());
  const Ran csv = run_trainyard("plan --format csv " + quoted(file));
  EXPECT_EQ(lines_of(csv.out).size(), 7u);
}

TEST(PlanOfSizes, SaysNoWhereNoSizeIsInTime) {
  const Ran ran = run_trainyard(
      "plan " + quoted(scenario_of("1", R"({ "nodes": [1, 2], "deadline": "1 h" })")));
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.out.find("none of these sizes"), std::string::npos) << ran.out;
}

TEST(PlanOfSizes, RefusesOptionsOfASinglePlan) {
  const std::string file = quoted(scenario_of("1", R"({ "nodes": [1, 2] })"));
  for (const char* option :
       {"--out a.json", "--explain tp=2", "--confirm 1", "--pareto step-time,memory"}) {
    const Ran ran = run_trainyard(std::string("plan ") + option + " " + file);
    EXPECT_EQ(ran.status, 2) << option;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  }
}

TEST(PlanOfGroups, RefusesOptionsThatItDoesNotTake) {
  const std::string file =
      "'" TRAINYARD_SOURCE "/scenarios/cases/llama-3.1-70b-64-a100-and-64-h100.json'";
  for (const char* option : {"--objective cost", "--robust", "--time-limit 1", "--out a.json"}) {
    const Ran ran = run_trainyard(std::string("plan ") + option + " " + file);
    EXPECT_EQ(ran.status, 2) << option;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  }
}

// The rows of the table of plans, without their numbers.
std::set<std::string> rows_of(const std::string& text, std::size_t expected) {
  std::set<std::string> rows;
  bool in_table = false;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("best plans")) in_table = true;
    if (in_table && line.empty()) break;
    const std::size_t start = line.find_first_not_of(' ');
    if (!in_table || start == std::string::npos || line[start] < '1' || line[start] > '9') continue;
    rows.insert(line.substr(line.find(' ', start)));
  }
  EXPECT_EQ(rows.size(), expected) << text;
  return rows;
}

TEST(PlanTable, TellsAllPlansApart) {
  const std::filesystem::path file = scenario_of(
      "2", R"({ "rank_order": ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"], "tensor_parallel": 2,
                "collective": ["ring", "double-binary-tree"], "context_parallel": [1, 2],
                "offload": ["none", "optimizer"], "micro_batch": [1, 2],
                "sequence_parallel": [true, false] })");
  rows_of(run_trainyard("plan --top 60 " + quoted(file)).out, 60);
}

// Bounding an exhaustive space of a job that no device can hold: stopped, it has nothing to show.
TEST(Plan, EndsWith130WhenInterruptedWithNothingFound) {
  const std::filesystem::path file = write_scratch("nothing.json", R"({
    "trainyard": "scenario/1", "model": "deepseek-v3",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 2048 },
    "planner": { "zero_stage": 0, "expert_parallel": 1, "expert_tensor_parallel": 1,
                 "pipeline_parallel": 1, "sharding_group": [1],
                 "rank_order": ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "cp-tp-ep-dp-pp",
                                "cp-tp-ep-pp-dp", "tp-ep-cp-dp-pp", "tp-ep-dp-cp-pp",
                                "ep-tp-cp-dp-pp", "ep-cp-tp-dp-pp"] },
    "training": { "global_batch": 15360, "sequence_length": 4096 } })");
  const Ran ran = run_trainyard("plan " + quoted(file), "timeout --preserve-status -s INT 0.2");
  EXPECT_EQ(ran.status, 130);
  EXPECT_EQ(ran.out, "");
}

}  // namespace
}  // namespace trainyard
