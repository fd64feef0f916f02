// `trainyard plan` as its users see it, beyond the best plan of one size: several sizes, rows that
// look alike, searches that are stopped.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program.h"
#include "tests/cli/sweeping.h"

namespace trainyard {
namespace {

std::filesystem::path scenario_of(const std::string& nodes, const std::string& planner) {
  return write_scratch("sizes.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": )" +
                                         nodes + R"( },
    "training": { "global_batch": 256, "sequence_length": 8192, "tokens": 1e12 },
    "price": "2 USD/h", "planner": )" + planner +
                                         " }");
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
    // One spare node, the default up to 149 nodes, is paid for as well.
    const double dollars = 2 * (point.at("devices").get<double>() + 8) * alone / 3600;
    EXPECT_NEAR(point.at("run_cost_usd").get<double>(), dollars, 1e-6 * dollars);
    if (point.at("in_time") == true && fewest == nullptr) fewest = &point;
  }
  ASSERT_NE(fewest, nullptr);
  ASSERT_NE(fewest, &points.front());
  EXPECT_EQ(points.at(json.at("fewest_devices").get<std::size_t>()), *fewest);
  const std::string text = run_trainyard("plan " + file).out;
  EXPECT_NE(text.find("fewest devices "), std::string::npos) << text;
  EXPECT_NE(text.find("within 30.00 days"), std::string::npos) << text;
  EXPECT_NE(text.find("cluster    h100-sxm-80gb · nodes of 8"), std::string::npos) << text;
}

// What 25.07 changes on Blackwell concerns latent attention. So each network has its own stack,
// whichever the document names first.
TEST(PlanOfSizes, ResolvesAReleaseForEachNetwork) {
  const auto steps_of = [](const std::string& model, const std::string& models) {
    const std::string file = quoted(write_scratch("release.json", R"({
      "trainyard": "scenario/1", "model": ")" + model + R"(",
      "cluster": { "node": "dgx-b200", "nodes": 1 },
      "training": { "global_batch": 64, "sequence_length": 4096, "stack": "megatron-core",
                    "release": "25.07" },
      "planner": { "model": )" + models + R"(, "micro_batch": 1 } })"));
    const Ran ran = run_trainyard("plan --format json " + file);
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::map<std::string, double> steps;
    const PrintedJson json = PrintedJson::parse(ran.out);
    for (const PrintedJson& point : json.at("points")) {
      steps[point.at("model")] = point.at("best").at("step_time_s");
    }
    return steps;
  };
  const auto dense = steps_of("llama-3.1-8b", R"(["llama-3.1-8b"])");
  const auto latent = steps_of("deepseek-v2-lite", R"(["deepseek-v2-lite"])");
  for (const char* models :
       {R"(["llama-3.1-8b", "deepseek-v2-lite"])", R"(["deepseek-v2-lite", "llama-3.1-8b"])"}) {
    for (const char* own : {"llama-3.1-8b", "deepseek-v2-lite"}) {
      const auto steps = steps_of(own, models);
      EXPECT_EQ(steps.at("llama-3.1-8b"), dense.at("llama-3.1-8b")) << own << " " << models;
      EXPECT_EQ(steps.at("deepseek-v2-lite"), latent.at("deepseek-v2-lite"))
          << own << " " << models;
    }
  }
}

TEST(PlanOfSizes, NamesTheLargestNetworkAndTheLongestSequence) {
  const std::filesystem::path file = scenario_of(
      "1", R"({ "model": ["llama-3.1-8b", "llama-3.1-405b", "llama-3.1-70b"], "offload": "none",
                "sequence_length": [8192, 16384], "micro_batch": 1 })");
  const Ran ran = run_trainyard("plan --format json " + quoted(file));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& points = json.at("points");
  ASSERT_EQ(points.size(), 6u);
  // 18 B per parameter on 8 × 80 GiB: 70.6 billion parameters need 1.3 TB.
  EXPECT_EQ(points.at(json.at("largest_model").get<std::size_t>()).at("model"), "llama-3.1-8b");
  EXPECT_EQ(points.at(json.at("longest_sequence").get<std::size_t>()).at("sequence_length"), 16384);
  EXPECT_TRUE(points[2].at("best").is_null());
  const Ran csv = run_trainyard("plan --format csv " + quoted(file));
  EXPECT_EQ(lines_of(csv.out).size(), 7u);
}

TEST(PlanOfSizes, PutsOnTheHostsWhatTheStackCan) {
  const Ran ran = run_trainyard(
      "plan --format json " +
      quoted(scenario_of("1", R"({ "model": ["llama-3.1-8b", "llama-3.1-405b", "llama-3.1-70b"],
                                   "tensor_parallel": 8, "micro_batch": 1 })")));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& points = json.at("points");
  ASSERT_EQ(points.size(), 3u);
  // 6 B a parameter without the optimizer's on 8 × 80 GiB: 70.6 billion need 424 GB, 405 billion
  // 2.4 TB. Its 12 B a parameter need 847 GB of the node's 2 TB.
  EXPECT_EQ(points.at(json.at("largest_model").get<std::size_t>()).at("model"), "llama-3.1-70b");
  const PrintedJson& best = points[2].at("best");
  EXPECT_EQ(best.at("plan").at("offload").at("optimizer"), "host");
  EXPECT_EQ(best.at("plan").at("offload").at("activations"), "none");
  EXPECT_TRUE(points[1].at("best").is_null());
}

TEST(PlanOfSizes, SaysNoWhereNoSizeIsInTime) {
  const Ran ran = run_trainyard(
      "plan " + quoted(scenario_of("1", R"({ "nodes": [1, 2], "deadline": "1 h" })")));
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.out.find("none of these sizes"), std::string::npos) << ran.out;
}

// The plan with the least memory may miss a deadline that the fastest plan meets.
TEST(PlanOfSizes, RefusesADeadlineForPlansThatNeedNotBeFast) {
  const std::string file = quoted(scenario_of("1", R"({ "nodes": [1, 2], "deadline": "1 h" })"));
  for (const char* objective : {"memory", "energy"}) {
    const Ran ran = run_trainyard(std::string("plan --objective ") + objective + " " + file);
    EXPECT_EQ(ran.status, 2) << objective;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_NE(ran.err.find("/planner/deadline"), std::string::npos) << ran.err;
  }
}

// At their peak, 128 H100 (989 TFLOP/s) do 6 · 8.03e9 · 1e12 FLOP and some attention in 5 days, so
// 15 days are enough; 6 · 70.6e9 · 1e12 take 39. With 81,920 tokens per sequence, attention adds 6
// · 32 · 4,096 · 81,920 per token, more than the rest: 10 days at the peak, or 15 at 68 % of it,
// which no plan reaches.
TEST(PlanOfSizes, NamesOnlyWhatIsInTime) {
  const std::string file = quoted(scenario_of(
      "16", R"({ "model": ["llama-3.1-8b", "llama-3.1-70b"], "sequence_length": [8192, 81920],
                 "deadline": "15 days", "tensor_parallel": 8, "micro_batch": 1 })"));
  const Ran ran = run_trainyard("plan --format json " + file);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& points = json.at("points");
  ASSERT_EQ(points.size(), 4u);
  for (std::size_t i = 0; i < points.size(); ++i) {
    ASSERT_FALSE(points[i].at("best").is_null()) << i;
    EXPECT_EQ(points[i].at("run_time_s") <= 15 * 86400.0, i == 0) << points[i];
    EXPECT_EQ(points[i].at("gap"), 0);
  }
  EXPECT_EQ(json.at("largest_model"), 0);
  EXPECT_EQ(json.at("longest_sequence"), 0);
  const std::string text = run_trainyard("plan " + file).out;
  EXPECT_NE(text.find("largest model  llama-3.1-8b of 8,192 tokens on 128 devices, 256 sequences a "
                      "step, in time:"),
            std::string::npos)
      << text;
}

// How far these searches get in a second depends on the machine; that they end early does not. The
// limit is raised until a plan is found, which takes a small part of the time of the proof.
TEST(PlanOfSizes, MarksTheRowsOfStoppedSearches) {
  const std::string file = quoted(write_scratch("stopped.json", R"({
    "trainyard": "scenario/1", "model": "deepseek-v3",
    "cluster": { "node": "hgx-h800", "nodes": 256 },
    "training": { "global_batch": 15360, "sequence_length": 4096 },
    "planner": { "nodes": [256, 512] } })"));
  Ran text, printed;
  for (const char* limit : {"0.01", "0.4", "1", "2", "4", "8", "16"}) {
    const std::string asked = std::string("--time-limit ") + limit + " " + file;
    text = run_trainyard("plan " + asked);
    printed = run_trainyard("plan --format json " + asked);
    if (text.status == 0 && printed.status == 0) break;
    const Ran& ended = text.status == 0 ? printed : text;
    EXPECT_EQ(ended.status, 130);
    EXPECT_NE(ended.err.find("the time limit came before any plan that fits was found"),
              std::string::npos)
        << ended.err;
  }
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* devices : {"\n  2,048", "\n  4,096"}) {
    const std::size_t row = text.out.find(devices);
    ASSERT_NE(row, std::string::npos) << text.out;
    const std::string line = text.out.substr(row + 1, text.out.find('\n', row + 1) - row - 1);
    EXPECT_NE(line.find("stopped: "), std::string::npos) << text.out;
  }
  EXPECT_NE(text.out.find("2 of 2 searches ended early"), std::string::npos) << text.out;
  const PrintedJson json = PrintedJson::parse(printed.out);
  for (const PrintedJson& point : json.at("points")) {
    EXPECT_EQ(point.at("optimal"), false);
    EXPECT_GT(point.at("gap"), 0);
  }
}

TEST(PlanOfSizes, RefusesOptionsOfASinglePlan) {
  const std::string file = quoted(scenario_of("1", R"({ "nodes": [1, 2] })"));
  for (const char* option :
       {"--out a.json", "--explain tp=2", "--confirm 1", "--pareto step-time,memory", "--top 3"}) {
    const Ran ran = run_trainyard(std::string("plan ") + option + " " + file);
    EXPECT_EQ(ran.status, 2) << option;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  }
}

// With a batch of 1,008, the factor 31 of 31 nodes must go to the pipeline. What 28 of the nodes
// take, `plan` says for a cluster of 28.
TEST(Plan, SaysWhereFewerNodesAreFaster) {
  const auto printed = [](int nodes, const char* format) {
    const std::filesystem::path file =
        write_scratch(fmt::format("nodes-{}.json", nodes),
                      fmt::format(R"({{ "trainyard": "scenario/1", "model": "llama-3.1-8b",
                          "cluster": {{ "node": "dgx-h100-80gb", "nodes": {} }},
                          "training": {{ "global_batch": 1008, "sequence_length": 8192,
                                         "stack": "torchtitan" }} }})",
                                  nodes));
    return run_trainyard(fmt::format("plan --format {} {}", format, quoted(file))).out;
  };
  const PrintedJson all = PrintedJson::parse(printed(31, "json"));
  const PrintedJson& fewer = all.at("fewer_nodes");
  ASSERT_EQ(fewer.at("change"), "28 of the 31 nodes");
  const PrintedJson own = PrintedJson::parse(printed(28, "json"));
  EXPECT_EQ(fewer.at("step_time_s"), own.at("plans").at(0).at("step_time_s"));
  EXPECT_NE(printed(31, "text").find("28 of the 31 nodes: "), std::string::npos);
  EXPECT_TRUE(PrintedJson::parse(printed(32, "json")).at("fewer_nodes").is_null());
}

TEST(Plan, SaysInJsonWhatItSaysInText) {
  const std::string file =
      quoted(scenario_of("2", R"({ "micro_batch": 1, "layers_per_stage": [15, 17] })"));
  const Ran ran = run_trainyard("plan --format json --explain tp=4,pp=2 " + file);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& best = json.at("plans").at(0);
  EXPECT_EQ(best.at("plan").at("layers_per_stage"), PrintedJson({15, 17}));
  EXPECT_EQ(best.at("plan").at("pipeline_parallel"), 2);
  ASSERT_EQ(json.at("baselines").size(), 3u);
  EXPECT_EQ(json.at("baselines").at(0).at("name"), "rule of thumb");
  EXPECT_EQ(json.at("marginal_values").size(), 5u);
  EXPECT_TRUE(json.at("ways_out").empty());
  const PrintedJson& explained = json.at("explained");
  EXPECT_EQ(explained.at("keys").at("tensor_parallel"), "4");
  EXPECT_EQ(explained.at("best").at("plan").at("tensor_parallel"), 4);
  EXPECT_GE(explained.at("best").at("step_time_s"), best.at("step_time_s"));
}

// The best plan's own value is explained by the best plan, with or without a pipeline.
TEST(Plan, ExplainsASchedule) {
  const auto answer_to = [](const std::string& planner, const std::string& keys) {
    const Ran ran = run_trainyard("plan --format json --explain " + keys + " " +
                                  quoted(scenario_of("2", planner)));
    EXPECT_EQ(ran.status, 0) << ran.err;
    return PrintedJson::parse(ran.out);
  };
  const PrintedJson named =
      answer_to(R"({ "schedule": ["1f1b"], "pipeline_parallel": 1 })", "mb=1");
  EXPECT_EQ(named.at("explained").at("best").at("plan").at("pipeline_parallel"), 1);
  const PrintedJson found = answer_to("{}", "schedule=1f1b");
  EXPECT_GT(found.at("explained").at("best").at("plan").at("pipeline_parallel"), 1);
  const Ran ran =
      run_trainyard("plan --explain layers_per_stage=[3,5] " + quoted(scenario_of("2", "{}")));
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("--explain: /layers_per_stage: found 8 layers in all; allowed: 32"),
            std::string::npos)
      << ran.err;
}

// Megatron-LM of 2021 holds whole optimizer states on every rank; DeepSpeed's fork of it does not.
TEST(Plan, SaysWhatTheStackHasNoZeroFor) {
  const auto text_of = [](const std::string& planner) {
    const std::string file = quoted(write_scratch("no_zero.json", R"({
      "trainyard": "scenario/1", "model": "llama-3.1-8b",
      "cluster": { "node": "dgx-a100-80gb", "nodes": 1 },
      "training": { "global_batch": 16, "sequence_length": 2048, "stack": "megatron-2021" },
      "planner": )" + planner + " }"));
    const Ran ran = run_trainyard("plan " + file);
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::string text = ran.out;
    text.erase(std::unique(text.begin(), text.end(),
                           [](char a, char b) { return std::isspace(a) && std::isspace(b); }),
               text.end());
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  };
  const std::string own = text_of(R"({ "zero_stage": [0, 1], "micro_batch": 1 })");
  EXPECT_NE(
      own.find("plain FSDP not with megatron-2021, which has no ZeRO; megatron-deepspeed has"),
      std::string::npos)
      << own;
  EXPECT_NE(own.find("ZeRO was not searched, for megatron-2021 has none"), std::string::npos)
      << own;
  EXPECT_EQ(own.find("zero_stage, recompute"), std::string::npos) << own;
  const std::string fork = text_of(R"({ "zero_stage": 1, "micro_batch": 1 })");
  EXPECT_NE(fork.find("megatron-2021 has no ZeRO: the plan runs on megatron-deepspeed"),
            std::string::npos)
      << fork;
  EXPECT_EQ(fork.find("ZeRO was not searched"), std::string::npos) << fork;
}

TEST(Plan, RefusesLayersThatAreNotTheModels) {
  const Ran ran =
      run_trainyard("plan " + quoted(scenario_of("1", R"({ "layers_per_stage": [15, 16] })")));
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("/planner/layers_per_stage: found 31 layers in all; allowed: 32"),
            std::string::npos)
      << ran.err;
}

// The rows of the table of plans without their numbers: where it is too wide for a page, what plans
// give and what they are stand apart, and make one row.
std::set<std::string> rows_of(const std::string& text, std::size_t expected) {
  std::map<std::string, std::string> by_number;
  bool in_table = false;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("best plans") || line.starts_with("the degrees")) in_table = true;
    if (line.empty()) in_table = false;
    const std::size_t start = line.find_first_not_of(' ');
    if (!in_table || start == std::string::npos || line[start] < '1' || line[start] > '9') continue;
    const std::size_t end = line.find(' ', start);
    by_number[line.substr(start, end - start)] += line.substr(end);
  }
  std::set<std::string> rows;
  for (const auto& [number, row] : by_number) rows.insert(row);
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

std::size_t rows_in_front(const std::string& text) {
  std::size_t rows = 0;
  for (const std::string& line : lines_of(text)) {
    const std::size_t start = line.find_first_not_of(' ');
    if (line.starts_with("plan 1") || line.starts_with("the degrees and choices")) break;
    if (start != std::string::npos && line[start] >= '1' && line[start] <= '9') ++rows;
  }
  return rows;
}

TEST(PlanTable, LeavesOutPlansOfAFrontThatLookTheSame) {
  const std::string file =
      quoted(scenario_of("2", R"({ "micro_batch": [1, 2], "offload": "none" })"));
  const Ran json = run_trainyard("plan --format json --pareto step-time,memory " + file);
  ASSERT_EQ(json.status, 0) << json.err;
  std::size_t distinct = 0;
  double last = 1e300;
  const PrintedJson all = PrintedJson::parse(json.out).at("plans");
  for (const PrintedJson& plan : all) {
    const double memory = plan.at("peak_memory_bytes");
    if (memory > 0.99 * last) continue;
    last = memory;
    ++distinct;
  }
  ASSERT_LT(distinct, all.size()) << "else nothing is left out";
  const Ran text = run_trainyard("plan --top 2 --pareto step-time,memory " + file);
  EXPECT_EQ(rows_in_front(text.out), distinct) << text.out;
  EXPECT_NE(text.out.find("are in --format json"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\nplan 2  "), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("\nplan 3  "), std::string::npos) << "explained without being asked";
}

TEST(PlanTable, ShowsWhatThePlansAreOrderedBy) {
  const std::string file =
      quoted(scenario_of("1", R"({ "micro_batch": 1, "pipeline_parallel": 1 })"));
  const std::pair<const char*, const char*> heads[] = {{"--objective cost", "USD/step"},
                                                       {"--objective energy", "kWh/step"},
                                                       {"--objective goodput", "goodput"},
                                                       {"--robust", "robust"}};
  for (const auto& [option, head] : heads) {
    const Ran ran = run_trainyard(std::string("plan ") + option + " " + file);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find(head), std::string::npos) << ran.out;
  }
  const Ran plain = run_trainyard("plan " + file);
  for (const auto& [option, head] : heads) {
    EXPECT_EQ(plain.out.find(std::string(head) + "\n"), std::string::npos) << plain.out;
  }
}

// With memory as objective it does not matter what limits the step.
TEST(Plan, EndsWithWhatHoldsTheMemoryWhereThatIsMinimised) {
  const std::string file =
      quoted(scenario_of("1", R"({ "micro_batch": 1, "pipeline_parallel": 1 })"));
  const Ran json = run_trainyard("plan --objective memory --format json " + file);
  ASSERT_EQ(json.status, 0) << json.err;
  const PrintedJson plans = PrintedJson::parse(json.out).at("plans");
  std::pair<double, std::string> most;
  for (const auto& [kind, bytes] : plans.at(0).at("stages").at(0).at("memory").items()) {
    most = std::max(most, {bytes.get<double>(), kind.substr(0, kind.rfind("_bytes"))});
  }
  const Ran text = run_trainyard("plan --objective memory " + file);
  EXPECT_NE(text.out.find("Most of it: " + most.second + " ("), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("Limited by"), std::string::npos) << text.out;
}

TEST(Plan, RefusesToWriteToNoFile) {
  const Ran ran = run_trainyard("plan --out '' " + quoted(scenario_of("1", "{}")));
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err, "trainyard: command line: --out: found \"\", allowed the name of a file\n");
}

// The way out and the last line must not contradict each other.
TEST(Plan, EndsWithTheCheapestWayOutWhereNothingFits) {
  const Ran ran =
      run_trainyard("plan '" TRAINYARD_SOURCE "/scenarios/cases/gpt3-175b-zero-3-on-8-h100.json'");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.out.find("a way out      8 nodes instead of 1"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("The cheapest way out: 8 nodes instead of 1."), std::string::npos);
  EXPECT_EQ(ran.out.find("No single change"), std::string::npos);
}

TEST(Plan, SaysWhyNoPlanIsLegal) {
  const std::filesystem::path file = write_scratch("illegal.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx1-v100", "nodes": 1 },
    "training": { "global_batch": 8, "sequence_length": 2048, "precision": "bf16" } })");
  const Ran ran = run_trainyard("plan '" + file.string() + "'");
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  EXPECT_NE(ran.err.find("found bf16, which v100-sxm-32gb does not support"), std::string::npos)
      << ran.err;
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
  const std::filesystem::path printed = scratch_folder() / "printed";
  const BackgroundProgram program({TRAINYARD_PROGRAM, "plan", file.string()}, printed);
  EXPECT_TRUE(wait_until([&] { return catches(program.pid(), SIGINT); }));
  program.send(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_EQ(read_text(printed), "");
}

// Schedulers end a job with SIGTERM; the answer is the same as for Ctrl-C.
TEST(Plan, EndsWith130WhenTerminatedWithNothingFound) {
  const std::filesystem::path file = write_scratch("nothing.json", R"({
    "trainyard": "scenario/1", "model": "deepseek-v3",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 2048 },
    "planner": { "zero_stage": 0, "expert_parallel": 1, "expert_tensor_parallel": 1,
                 "pipeline_parallel": 1, "sharding_group": [1],
                 "rank_order": ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "cp-tp-ep-dp-pp",
                                "cp-tp-ep-pp-dp", "tp-ep-cp-dp-pp", "tp-ep-dp-cp-pp",
                                "ep-tp-cp-dp-pp", "ep-cp-tp-dp-pp"] },
    "training": { "global_batch": 15360, "sequence_length": 4096 } })");
  const BackgroundProgram program({TRAINYARD_PROGRAM, "plan", file.string()},
                                  scratch_folder() / "printed");
  EXPECT_TRUE(wait_until([&] { return catches(program.pid(), SIGINT); }));
  program.send(SIGTERM);
  EXPECT_EQ(program.wait(), 130);
}

// The recomputation of a given plan is searched anew, as the note says.
TEST(Plan, SearchesTheRecomputationOfAGivenPlanAnew) {
  const auto answer_with = [](const std::string& plan) {
    const Ran ran = run_trainyard("plan --format json " + quoted(small_scenario(plan)));
    EXPECT_EQ(ran.status, 0) << ran.err;
    return PrintedJson::parse(ran.out);
  };
  const PrintedJson without = answer_with("");
  const PrintedJson with = answer_with(R"(, "plan": { "recompute": "full" })");
  EXPECT_EQ(with.at("plans"), without.at("plans"));
  EXPECT_EQ(with.at("improvement"), without.at("improvement"));
}

// The section names the layers of each stage and the recomputation, and the improved plan keeps
// both.
TEST(Plan, ImprovesWithRecomputationThatIsNamed) {
  const std::filesystem::path best = scratch_folder() / "best.json";
  const Ran ran =
      run_trainyard("plan --out " + quoted(best) + " " + quoted(write_scratch("pinned.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-70b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 8 },
    "training": { "global_batch": 128, "sequence_length": 8192, "stack": "megatron-core" },
    "planner": { "recompute": [["full", {"full": 2}, "none", "none"]] } })")));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson plan = PrintedJson::parse(read_text(best)).at("plan");
  EXPECT_EQ(plan.at("recompute"), PrintedJson::parse(R"(["full", {"full": 2}, "none", "none"])"));
}

// Searching the pass orders of five plans takes a second. So a limit of 0.3 s passes before they
// end, in the search or after it; a limit of a day does not.
TEST(Plan, KeepsToItsTimeLimitWhenTheSearchIsDone) {
  const std::string file = quoted(write_scratch("limit.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "planner": { "pipeline_parallel": 8, "virtual_stages": 1 },
    "training": { "global_batch": 4096, "sequence_length": 8192, "stack": "internevo" } })"));
  const Ran cut = run_trainyard("plan --time-limit 0.3 " + file);
  EXPECT_EQ(cut.status, 0) << cut.err;
  const bool in_search = cut.out.find("Stopped after") != std::string::npos;
  EXPECT_NE(in_search, cut.out.find("cut short") != std::string::npos) << cut.out;
  EXPECT_EQ(cut.out.find("1 % more "), std::string::npos) << cut.out;
  const Ran all = run_trainyard("plan --time-limit 86400 --top 1 " + file);
  EXPECT_EQ(all.out.find("cut short"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("1 % more "), std::string::npos) << all.out;
}

// Once the best plan is written, only the pass orders of five plans are left, which take seconds.
TEST(Plan, KeepsItsAnswerWhenInterruptedWhileItImprovesIt) {
  const std::filesystem::path file = write_scratch("orders.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "planner": { "pipeline_parallel": 8, "virtual_stages": 1 },
    "training": { "global_batch": 1024, "sequence_length": 8192, "stack": "internevo" } })");
  const std::filesystem::path printed = scratch_folder() / "printed";
  const std::filesystem::path best = scratch_folder() / "best.json";
  const BackgroundProgram program(
      {TRAINYARD_PROGRAM, "plan", "--format", "json", "--out", best.string(), file.string()},
      printed);
  EXPECT_TRUE(wait_until([&] { return std::filesystem::exists(best); }));
  program.send(SIGINT);
  ASSERT_EQ(program.wait(), 0);
  const PrintedJson json = PrintedJson::parse(read_text(printed));
  EXPECT_EQ(json.at("plans").size(), 5u);
  EXPECT_EQ(json.at("search").at("optimal"), true);
}

}  // namespace
}  // namespace trainyard
