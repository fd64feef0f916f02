// What `trainyard plan` shows of its search in CSV, tables and sentences: what was asked, how far
// it is proved, what was simulated, and nothing that contradicts the rest.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace trainyard {
namespace {

std::string shown_scenario(const std::string& nodes, const std::string& training,
                           const std::string& planner) {
  return quoted(write_scratch("shown.json", R"({ "trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": { "node": "dgx-h100-80gb", "nodes": )" +
                                                nodes + R"( }, "training": )" + training +
                                                R"(, "planner": )" + planner + " }"));
}

std::string on_two_nodes(const std::string& planner, const std::string& batch = "256") {
  return shown_scenario("2", R"({ "global_batch": )" + batch + R"(, "sequence_length": 8192 })",
                        planner);
}

PrintedJson answered(const std::string& arguments) {
  const Ran ran = run_trainyard("plan --format json " + arguments);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return PrintedJson::parse(ran.out);
}

// The refusal is one line that names the key, and nothing is printed.
void expect_line(const std::string& arguments, const std::string& words) {
  const Ran ran = run_trainyard("plan " + arguments);
  EXPECT_EQ(ran.status, 2) << arguments;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
}

// ---- CSV ------------------------------------------------------------------------------

// The cells of a CSV text by column and row; cells contain no commas.
std::map<std::string, std::vector<std::string>> columns_of(const std::string& csv) {
  const auto cells_of = [](const std::string& line) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == ',') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    return cells;
  };
  const std::vector<std::string> lines = lines_of(csv);
  std::map<std::string, std::vector<std::string>> columns;
  if (lines.empty()) return columns;
  const std::vector<std::string> head = cells_of(lines[0]);
  for (std::size_t row = 1; row < lines.size(); ++row) {
    const std::vector<std::string> cells = cells_of(lines[row]);
    EXPECT_EQ(cells.size(), head.size()) << lines[row];
    for (std::size_t i = 0; i < head.size(); ++i) columns[head[i]].push_back(cells.at(i));
  }
  return columns;
}

std::map<std::string, std::vector<std::string>> csv_answer(const std::string& arguments) {
  return columns_of(run_trainyard("plan --format csv " + arguments).out);
}

// Reads a number independently of the locale's decimal separator.
double figure_in(const std::string& cell) { return PrintedJson::parse(cell).get<double>(); }

// Expected is what JSON says for the same question.
TEST(PlanCsv, SaysWhatJsonSaysOfTheSearchAndItsPlans) {
  const std::string file = on_two_nodes(R"({ "micro_batch": 1, "tensor_parallel": [2, 4] })");
  const std::string asked = "--robust --objective goodput --confirm 6 " + file;
  const PrintedJson json = answered(asked);
  auto csv = csv_answer(asked);
  ASSERT_EQ(csv["objective"].size(), 6u) << "all that were played";
  ASSERT_EQ(json.at("plans").size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    const PrintedJson& plan = json.at("plans")[i];
    EXPECT_EQ(csv["objective"][i], "goodput");
    EXPECT_EQ(csv["second_objective"][i], "");
    EXPECT_EQ(csv["optimal"][i], "true");
    EXPECT_EQ(csv["gap"][i], "0");
    for (const char* key : {"goodput", "robust_step_time_s", "simulated_step_time_s",
                            "simulated_peak_memory_bytes"}) {
      EXPECT_EQ(figure_in(csv[key][i]), plan.at(key).get<double>()) << key;
    }
    EXPECT_EQ(csv["simulated_feasible"][i], "true");
    EXPECT_EQ(csv["simulation_departs"][i],
              plan.at("simulation_departs") == true ? "true" : "false");
    EXPECT_EQ(csv["not_simulated_because"][i], "");
  }
}

// Columns that were not asked for exist and are empty.
TEST(PlanCsv, HasTheSameColumnsWhateverIsAsked) {
  const std::string file = on_two_nodes(R"({ "micro_batch": 1, "tensor_parallel": 8 })");
  auto csv = csv_answer(file);
  const auto head = [](const std::string& text) { return lines_of(text).at(0); };
  EXPECT_EQ(head(run_trainyard("plan --format csv " + file).out),
            head(run_trainyard("plan --format csv --robust --confirm 1 " + file).out));
  for (const char* key : {"second_objective", "goodput", "robust_step_time_s",
                          "simulated_step_time_s", "simulation_departs", "not_simulated_because"}) {
    ASSERT_FALSE(csv[key].empty()) << key;
    EXPECT_EQ(csv[key][0], "") << key;
  }
}

// The search takes seconds on an idle machine, so some time limit is too short for it and long
// enough to find a plan.
TEST(PlanCsv, SaysThatASearchWasStopped) {
  const std::string file = quoted(write_scratch("stopped.json", R"({ "trainyard": "scenario/1",
    "model": "deepseek-v3", "cluster": { "node": "dgx-h100-80gb", "nodes": 512 },
    "training": { "global_batch": 15360, "sequence_length": 4096 } })"));
  std::map<std::string, std::vector<std::string>> csv;
  for (const char* limit : {"0.1", "0.2", "0.4", "0.8", "1.6", "3.2", "6.4"}) {
    csv = csv_answer(fmt::format("--time-limit {} {}", limit, file));
    if (!csv.empty()) break;
  }
  ASSERT_FALSE(csv.empty());
  EXPECT_EQ(csv["optimal"].front(), "false");
  EXPECT_GT(figure_in(csv["gap"].front()), 0);
}

// Every plan has a robust step time, whatever the objective is.
TEST(PlanCsv, OfGroupsHasTheRobustStep) {
  const std::string file = quoted(unlike_groups(1, R"(, "price": ["1 USD/h", "2 USD/h"],
      "planner": { "tensor_parallel": 8, "micro_batch": 1 })"));
  auto steps = csv_answer("--robust " + file),
       costs = csv_answer("--robust --objective cost " + file);
  ASSERT_FALSE(steps["robust_step_time_s"].empty());
  EXPECT_EQ(costs["objective"][0], "cost");
  EXPECT_EQ(csv_answer(file)["robust_step_time_s"][0], "");
  EXPECT_EQ(csv_answer(file)["complete"][0], "true");
  for (auto* csv : {&steps, &costs}) {
    for (std::size_t i = 0; i < (*csv)["use"].size(); ++i) {
      EXPECT_GT(figure_in((*csv)["robust_step_time_s"][i]), figure_in((*csv)["step_time_s"][i]));
    }
  }
}

// The cost of a step is the number of devices times their price times the step time.
TEST(PlanCsv, OfSizesHasWhatIsMinimised) {
  const std::string file = quoted(write_scratch("sizes.json", R"({ "trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "training": { "global_batch": 64, "sequence_length": 8192 }, "price": "3.6 USD/h",
    "planner": { "nodes": [2, 2, 1], "micro_batch": 1 } })"));
  auto csv = csv_answer("--objective cost " + file);
  ASSERT_EQ(csv["devices"], (std::vector<std::string>{"16", "8"})) << "each size once";
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(csv["objective"][i], "cost");
    const double cost = figure_in(csv["devices"][i]) * 0.001 * figure_in(csv["step_time_s"][i]);
    EXPECT_NEAR(figure_in(csv["cost_per_step_usd"][i]), cost, 1e-9 * cost);
  }
  EXPECT_EQ(answered("--objective energy " + file).at("objective"), "energy");
  const std::pair<const char*, const char*> heads[] = {{"cost", "USD/step"},
                                                       {"energy", "kWh/step"}};
  for (const auto& [objective, unit] : heads) {
    const std::string text =
        run_trainyard(fmt::format("plan --objective {} {}", objective, file)).out;
    EXPECT_NE(text.find(fmt::format("the best plan of every size by {}\n", objective)),
              std::string::npos)
        << text;
    EXPECT_NE(text.find(unit), std::string::npos) << text;
  }
}

// ---- Texts ----------------------------------------------------------------------------

TEST(PlanShown, ShowsAllThatWasPlayedInItsOrder) {
  const std::string file = on_two_nodes(R"({ "micro_batch": 1, "tensor_parallel": [2, 4] })");
  const std::string all = words_of(run_trainyard("plan --confirm 7 " + file).out);
  EXPECT_NE(all.find("best plans by step time, as simulated "), std::string::npos) << all;
  EXPECT_NE(all.find(" simulated "), std::string::npos) << all;
  EXPECT_NE(all.find(" plan 7 played "), std::string::npos) << all;
  const std::string two = words_of(run_trainyard("plan --confirm 2 " + file).out);
  EXPECT_NE(two.find("best plans by step time; the first 2 as simulated, before all others"),
            std::string::npos)
      << two;
  EXPECT_EQ(two.find(" plan 3 played "), std::string::npos) << two;
  const std::string none = run_trainyard("plan " + file).out;
  EXPECT_EQ(none.find("simulated"), std::string::npos) << none;
}

// Plans are shown even if they are alike: who asked for four simulations sees four.
TEST(PlanShown, ShowsEveryPlanOfAFrontThatWasPlayed) {
  const std::string asked = "plan --pareto step-time,memory --confirm 4 ";
  const std::string file = on_two_nodes(R"({ "micro_batch": 1, "tensor_parallel": [2, 4] })");
  const PrintedJson json = PrintedJson::parse(run_trainyard(asked + "--format json " + file).out);
  ASSERT_GE(json.at("plans").size(), 4u);
  const std::string text = words_of(run_trainyard(asked + file).out);
  EXPECT_NE(text.find(" plan 4 played "), std::string::npos) << text;
}

// The head of 128,256 rows takes as long as two layers, so uneven layers are faster and are shown.
TEST(PlanShown, DoesNotDenyAFasterPlanThatItShows) {
  const std::string text =
      words_of(run_trainyard("plan " + on_two_nodes(R"({ "micro_batch": 1, "tensor_parallel": 2,
      "pipeline_parallel": 4, "virtual_stages": 1 })",
                                                    "64"))
                   .out);
  ASSERT_NE(text.find(" less than plan 1)"), std::string::npos) << text;
  EXPECT_EQ(text.find("no neighbouring plan is faster"), std::string::npos) << text;
}

// torchtitan and FSDP offload under ZeRO-2 and 3, Megatron-Core under ZeRO-1 (their documents).
TEST(PlanShown, SaysWhatIsNotListedWhereItCouldBe) {
  const std::pair<const char*, const char*> said[] = {
      {"torchtitan", nullptr}, {"megatron-core", "With ZeRO-1, what is on the hosts without need"}};
  for (const auto& [stack, words] : said) {
    const std::string text = words_of(
        run_trainyard("plan " + shown_scenario("1",
                                               R"({ "global_batch": 1, "sequence_length": 4096,
                                              "stack": ")" +
                                                   std::string(stack) + R"(" })",
                                               R"({ "tensor_parallel": 8 })"))
            .out);
    EXPECT_NE(text.find("1 sequence of 4,096 tokens"), std::string::npos) << text;
    const bool is_said = text.find("on the hosts without need") != std::string::npos;
    EXPECT_EQ(is_said, words != nullptr) << text;
    if (words != nullptr) {
      EXPECT_NE(text.find(words), std::string::npos) << text;
    }
  }
}

TEST(PlanShown, NamesAllThatIsAllowed) {
  expect_line(on_two_nodes(R"({ "pipeline_parallel": { "from": 0, "to": 0 } })"),
              "/planner/pipeline_parallel/to: found 0; allowed: at least 1");
  expect_line(on_two_nodes(R"({ "sharding_group": "some" })"),
              "/planner/sharding_group: found \"some\"; allowed: \"all\", or a whole number");
  expect_line(on_two_nodes(R"({ "recompute": "auto" })"), "\"full\", or an object with \"full\"");
}

}  // namespace
}  // namespace trainyard
