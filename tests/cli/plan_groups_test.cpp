// `trainyard plan` for clusters of unlike nodes as its users see it, and the commands that read its
// plans.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/sweeping.h"

namespace trainyard {
namespace {

TEST(PlanOfGroups, RefusesToConfirm) {
  const Ran ran = run_trainyard("plan --confirm 1 " + quoted(unlike_groups(2)));
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  EXPECT_NE(ran.err.find("simulate plays a pipeline"), std::string::npos) << ran.err;
}

// The best plan of `file` as JSON, and the document in the same folder to which it was written.
struct WrittenBest {
  PrintedJson best;
  std::filesystem::path document;
};
WrittenBest written_best(const std::filesystem::path& file) {
  WrittenBest written{.best = {}, .document = file.parent_path() / "written.json"};
  std::filesystem::remove(written.document);
  const Ran ran =
      run_trainyard("plan --format json --out " + quoted(written.document) + " " + quoted(file));
  EXPECT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_EQ(json.at("written").at("plan"), "plans/0");
  written.best = json.at("plans").at(0);
  return written;
}

// The plan of a document is simulated within a few percent of the estimate, compared with itself
// and listed.
void expect_played(const std::filesystem::path& document, const PrintedJson& priced) {
  const Ran ran = run_trainyard("simulate --format json " + quoted(document));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson played = PrintedJson::parse(ran.out);
  EXPECT_EQ(played.at("trainyard"), "simulation/1");
  EXPECT_EQ(played.at("estimated_step_time_s"), priced.at("step_time_s"));
  EXPECT_NEAR(played.at("step_time_s").get<double>() / priced.at("step_time_s").get<double>(), 1,
              0.03);
  EXPECT_EQ(played.at("stages").size(), 2u);
  EXPECT_TRUE(played.at("plans").at(0).at("boundary_s").is_null());
  const Ran compared =
      run_trainyard("compare --format json " + quoted(document) + " " + quoted(document));
  ASSERT_EQ(compared.status, 0) << compared.err;
  EXPECT_EQ(PrintedJson::parse(compared.out).at("step_time_b_s"), played.at("step_time_s"));
  const Ran listed = run_trainyard("program --format json --rank 31 " + quoted(document));
  ASSERT_EQ(listed.status, 0) << listed.err;
  EXPECT_EQ(PrintedJson::parse(listed.out).at("stage"), 1);
}

// A pipeline through both groups, and replicas on both: `estimate` prices the written plan.
TEST(PlanOfGroups, WritesAPlanThatEstimateReads) {
  for (const auto& [section, use] :
       {std::pair{R"("pipeline_parallel": 2, "tensor_parallel": 8, "data_parallel": 2)",
                  "pipeline"},
        {R"("data_parallel": 4, "tensor_parallel": 8)", "replicas"}}) {
    const auto [best, document] =
        written_best(unlike_groups(2, fmt::format(R"(, "price": ["1 USD/h", "2 USD/h"],
                                          "planner": {{ {} }})",
                                                  section)));
    EXPECT_EQ(best.at("use"), use);
    const Ran ran = run_trainyard("estimate --format json " + quoted(document));
    ASSERT_EQ(ran.status, 0) << ran.err;
    const PrintedJson priced = PrintedJson::parse(ran.out).at("plans").at(0);
    for (const char* key : {"use", "order", "step_time_s", "step_time_high_s", "boundary_s",
                            "memory_share", "cost_per_step_usd", "energy_per_step_joule"}) {
      EXPECT_EQ(priced.at(key), best.at(key)) << key;
    }
    EXPECT_EQ(priced.at("groups"), best.at("groups"));
    if (best.at("use") == "pipeline") {
      expect_played(document, priced);
    } else {
      expect_refused("simulate " + quoted(document), "replicas on several groups");
      expect_refused("compare " + quoted(document) + " " + quoted(document), "replicas");
      expect_refused("program --rank 0 " + quoted(document), "replicas on several groups");
    }
    expect_refused("run --verify " + quoted(document), "groups of unlike nodes");
  }
}

// One group costs a hundredth of the other, so the written plan's cluster is that group.
TEST(PlanOfGroups, WritesOneGroupAloneAsAClusterOfItsOwn) {
  const auto file = unlike_groups(2, R"(, "price": ["100 USD/h", "1 USD/h"],
                                          "planner": { "schedule": "interleaved-1f1b",
                                                       "pipeline_parallel": 2 })");
  const auto [best, document] = written_best(file);
  ASSERT_EQ(best.at("use"), "alone");
  const Ran ran = run_trainyard("estimate --format json " + quoted(document));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson priced = PrintedJson::parse(ran.out);
  EXPECT_EQ(priced.at("step_time_s"), best.at("step_time_s"));
  EXPECT_NEAR(priced.at("cost_per_step_usd").get<double>(),
              best.at("cost_per_step_usd").get<double>(), 1e-12);
  EXPECT_EQ(run_trainyard("simulate " + quoted(document)).status, 0);
}

TEST(PlanOfGroups, RefusesAUseThatCannotBe) {
  const auto refused = [](const std::string& sections, const std::string& line) {
    const Ran ran = run_trainyard("estimate " + quoted(unlike_groups(2, sections)));
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_NE(ran.err.find(line), std::string::npos) << ran.err;
  };
  refused(R"(, "use_of_groups": { "order": [0, 1] })", "/use_of_groups: found without /plan");
  refused(R"(, "plan": {})", "/plan: found a plan with groups of unlike nodes");
  refused(R"(, "plan": {}, "use_of_groups": { "order": [0, 4] })", "/use_of_groups/order/1");
  refused(R"(, "plan": { "tensor_parallel": 8 }, "use_of_groups":
               { "use": "replicas", "order": [0, 1], "micro_batches": [8, 8] })",
          "found 32 sequences in all; allowed: 128");
  const Ran alike = run_trainyard(
      "estimate " +
      quoted(small_scenario(R"(, "plan": {}, "use_of_groups": { "order": [0, 1] })")));
  EXPECT_EQ(alike.status, 2);
  EXPECT_NE(alike.err.find("/use_of_groups: found with one kind of node"), std::string::npos)
      << alike.err;
}

// 16 A100 at 1 USD/h and 16 H100 at 2 USD/h; 360 g per kWh are 1e-4 g per joule.
TEST(PlanOfGroups, EstimatesTheKeysOfOneCluster) {
  const auto file = unlike_groups(2, R"(, "price": ["1 USD/h", "2 USD/h"],
      "power": { "carbon_intensity": "360 gCO2/kWh" },
      "planner": { "pipeline_parallel": 2, "tensor_parallel": 8, "data_parallel": 2 })");
  const Ran ran = run_trainyard("estimate --format json " + quoted(file));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const auto figure = [&json](const char* key) { return json.at(key).get<double>(); };
  const PrintedJson& plan = json.at("plans").at(0);
  for (const char* key : {"step_time_s", "step_time_low_s", "step_time_high_s", "feasible",
                          "cost_per_step_usd", "energy_per_step_joule", "carbon_per_step_g"}) {
    EXPECT_EQ(json.at(key), plan.at(key)) << key;
  }
  const double step = figure("step_time_s");
  EXPECT_EQ(json.at("devices"), 32);
  EXPECT_EQ(figure("parameters"), 8030261248);
  EXPECT_NEAR(figure("tokens_per_second") * step / (128 * 8192), 1, 1e-9);
  EXPECT_NEAR(figure("tokens_per_second_per_device") * 32 / figure("tokens_per_second"), 1, 1e-9);
  EXPECT_NEAR(figure("cost_per_step_usd"), 16 * (1 + 2) * step / 3600, 1e-6);
  EXPECT_NEAR(figure("carbon_per_step_g"), 1e-4 * figure("energy_per_step_joule"), 1e-6);
  double fullest = 0, sum = 0;
  for (const PrintedJson& group : plan.at("groups")) {
    fullest = std::max(fullest, group.at("peak_memory_bytes").get<double>());
  }
  EXPECT_EQ(figure("peak_memory_bytes"), fullest);
  for (const auto& [part, time] : json.at("breakdown").items()) sum += time.get<double>();
  EXPECT_NEAR(sum / step, 1, 1e-9);
  EXPECT_GT(figure("mfu"), 0.2);
  for (const char* key : {"hfu", "stages"}) EXPECT_TRUE(json.at(key).is_null()) << key;
  EXPECT_NE(run_trainyard("estimate " + quoted(file)).out.find("g of CO2 a step"),
            std::string::npos);
  for (const char* command : {"estimate", "plan"}) {
    const Ran csv = run_trainyard(fmt::format("{} --format csv {}", command, quoted(file)));
    EXPECT_NE(csv.out.find(fmt::format(",{},{},", plan.at("energy_per_step_joule").dump(),
                                       plan.at("carbon_per_step_g").dump())),
              std::string::npos)
        << csv.out;
  }
}

// 16 + 16 replicas of one device: the answer says that they do not fit, as for one kind of node.
TEST(PlanOfGroups, EstimatesWhatDoesNotFit) {
  const auto file = unlike_groups(2, R"(, "plan": { "tensor_parallel": 1 }, "use_of_groups":
      { "use": "replicas", "order": [0, 1], "micro_batches": [2, 6] })");
  const Ran ran = run_trainyard("estimate " + quoted(file));
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("does not fit"), std::string::npos) << ran.out;
}

// With one kind of node a plan always uses all nodes. Here the front has, beside the plan with the
// shortest step, plans that take less memory, and ends with the one that takes least.
TEST(PlanOfGroups, ListsTheFrontOfTwoObjectives) {
  const std::string file = quoted(unlike_groups(2, R"(, "planner": { "tensor_parallel": 8 })"));
  const PrintedJson json =
      PrintedJson::parse(run_trainyard("plan --format json --pareto step-time,memory " + file).out);
  EXPECT_EQ(json.at("second_objective"), "memory");
  const PrintedJson& plans = json.at("plans");
  ASSERT_GT(plans.size(), 1u);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    EXPECT_GT(plans[i].at("step_time_s"), plans[i - 1].at("step_time_s"));
    EXPECT_LT(plans[i].at("memory_share"), plans[i - 1].at("memory_share"));
  }
  const auto best_by = [&file](const std::string& objective, const char* key) {
    const Ran ran = run_trainyard("plan --format json --objective " + objective + " " + file);
    return PrintedJson::parse(ran.out).at("plans").at(0).at(key).get<double>();
  };
  EXPECT_LE(plans.front().at("step_time_s").get<double>(),
            best_by("step-time", "step_time_s") * (1 + 1e-9));
  EXPECT_LE(plans.back().at("memory_share").get<double>(),
            best_by("memory", "memory_share") * (1 + 2e-3));
  const Ran text = run_trainyard("plan --pareto step-time,memory " + file);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("the plans that none found beats in both"), std::string::npos)
      << text.out;
}

TEST(PlanOfGroups, IsRobust) {
  const std::string file = quoted(unlike_groups(
      2, R"(, "planner": { "tensor_parallel": 4, "micro_batch": 1, "schedule": "1f1b" },
              "reliability": { "stragglers": { "mtbf": "30 days", "speed": 0.5,
                                               "detection": "1 days" } })"));
  const Ran ran = run_trainyard("plan --robust " + file);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("at the high end of their intervals"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("  step  robust  devices"), std::string::npos) << ran.out;
  const PrintedJson json =
      PrintedJson::parse(run_trainyard("plan --robust --format json " + file).out);
  for (const PrintedJson& plan : json.at("plans")) {
    EXPECT_GT(plan.at("step_time_high_s"), plan.at("step_time_s"));
    EXPECT_LT(plan.at("step_time_low_s"), plan.at("step_time_s"));
  }
}

TEST(PlanOfGroups, ExplainsKeysWhereNothingFits) {
  const std::string file = quoted(unlike_groups(
      2, R"(, "planner": { "tensor_parallel": 1, "pipeline_parallel": 1, "recompute": "none",
                            "zero_stage": 0 })"));
  const Ran ran = run_trainyard("plan --explain tp=8 " + file);
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("explained      tensor_parallel 8: at its best"), std::string::npos)
      << ran.out;
}

// 3 ranks do not form a sharding group of 2, 4, … or 32, nor of a group of nodes alone.
TEST(PlanOfGroups, NamesTheShardingGroupThatLeavesNothing) {
  const Ran ran = run_trainyard(
      "plan --format json " +
      quoted(unlike_groups(2, R"(, "planner": { "sharding_group": 3, "zero_stage": [1, 2, 3] })")));
  EXPECT_EQ(ran.status, 1);
  const std::string why = "no plan of the space is legal for this job; /planner/sharding_group";
  EXPECT_NE(ran.err.find(why), std::string::npos) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_TRUE(json.at("plans").empty());
  EXPECT_EQ(json.at("notes").at(0).at("note").get<std::string>().find(why), 0u) << ran.out;
}

// 175·10^9 parameters with Adam take 16 or 18 bytes each, at least 2.8 TB. 8 A100 of 40 GB and 8
// H100 of 80 GB have less than 1 TB together. The answer says what is missing, and that more nodes
// are a way out.
TEST(PlanOfGroups, SaysWhatIsMissingWhereNothingFits) {
  const std::string file = quoted(write_scratch("groups_too_small.json", R"({
    "trainyard": "scenario/1", "model": "gpt3-175b",
    "cluster": { "groups": [{ "node": "dgx-a100-40gb", "nodes": 1 },
                            { "node": "dgx-h100-80gb", "nodes": 1 }] },
    "training": { "global_batch": 512, "sequence_length": 8192, "stack": "megatron-core" } })"));
  const Ran ran = run_trainyard("plan " + file);
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("the closest    "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("a way out      2 nodes of dgx-h100-80gb instead of 1"), std::string::npos)
      << ran.out;
  const Ran csv = run_trainyard("plan --format csv " + file);
  EXPECT_EQ(csv.status, 1);
  EXPECT_EQ(csv.out.rfind("name,use,", 0), 0u) << csv.out;
  EXPECT_NE(csv.out.find(",false,"), std::string::npos) << csv.out;
  const PrintedJson json = PrintedJson::parse(run_trainyard("plan --format json " + file).out);
  EXPECT_TRUE(json.at("plans").empty());
  ASSERT_FALSE(json.at("closest").empty());
  double last = 1;
  for (const PrintedJson& plan : json.at("closest")) {
    EXPECT_EQ(plan.at("feasible"), false);
    EXPECT_GE(plan.at("memory_share").get<double>(), last);
    last = plan.at("memory_share").get<double>();
  }
  ASSERT_FALSE(json.at("ways_out").empty());
  for (const PrintedJson& way : json.at("ways_out")) {
    EXPECT_LE(way.at("memory_share").get<double>(), 1);
  }
}

// Every way out is another plan, or the same plan on another cluster or batch.
TEST(PlanOfGroups, ShowsEachWayOutOnce) {
  const std::string file = quoted(unlike_groups(
      2, R"(, "planner": { "tensor_parallel": 1, "pipeline_parallel": 1, "recompute": "none",
                            "zero_stage": 0, "micro_batch": 1 })"));
  const Ran ran = run_trainyard("plan --format json " + file);
  EXPECT_EQ(ran.status, 1) << ran.err;
  const PrintedJson ways = PrintedJson::parse(ran.out).at("ways_out");
  ASSERT_GE(ways.size(), 2u) << ran.out;
  for (std::size_t a = 0; a < ways.size(); ++a) {
    for (std::size_t b = a + 1; b < ways.size(); ++b) {
      const bool alike = ways[a].at("plan") == ways[b].at("plan") &&
                         ways[a].at("use") == ways[b].at("use") &&
                         ways[a].at("step_time_s") == ways[b].at("step_time_s");
      EXPECT_FALSE(alike) << ways[a].at("change") << " and " << ways[b].at("change");
    }
  }
}

// Two thirds of Llama-3.1-70B's step here are GEMM, so a faster device gains most.
TEST(PlanOfGroups, SaysWhatResourcesAndRulesOfThumbAreWorth) {
  const std::string file =
      quoted(unlike_groups(2, R"(, "planner": { "micro_batch": 1, "schedule": "1f1b" })"));
  const PrintedJson json = PrintedJson::parse(run_trainyard("plan --format json " + file).out);
  const PrintedJson& values = json.at("marginal_values");
  ASSERT_GE(values.size(), 4u);
  EXPECT_EQ(values[0].at("resource"), "FLOP/s");
  for (const PrintedJson& value : values) {
    EXPECT_LE(value.at("gained"), values[0].at("gained")) << value;
    for (const PrintedJson& one : value.at("gained_by_group")) {
      EXPECT_LE(one.get<double>(), value.at("gained").get<double>() + 1e-3) << value;
    }
  }
  const double best = json.at("plans")[0].at("step_time_s");
  ASSERT_EQ(json.at("baselines").size(), 3u);
  for (const PrintedJson& baseline : json.at("baselines")) {
    if (!baseline.at("reason").is_null()) continue;
    EXPECT_GE(baseline.at("best").at("step_time_s").get<double>(), best) << baseline;
  }
  const Ran text = run_trainyard("plan " + file);
  for (const char* paragraph : {"\nrule of thumb  ", "\nplain DDP      ", "\nplain FSDP     ",
                                "\n1 % more       of a resource on all groups"}) {
    EXPECT_NE(text.out.find(paragraph), std::string::npos) << paragraph << text.out;
  }
}

// The A100 has no 8-bit floats (datasheet), so its missing price is not asked for.
TEST(PlanOfGroups, AsksNoPriceOfWhatNoPlanCanUse) {
  const std::string file = quoted(write_scratch("groups_fp8_price.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "groups": [{ "node": "dgx-a100-80gb", "nodes": 1 },
                            { "node": "dgx-h100-80gb", "nodes": 1 }] },
    "training": { "global_batch": 64, "sequence_length": 4096, "precision": "fp8" } })"));
  const Ran ran = run_trainyard("plan --objective cost " + file);
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("/cluster/groups/1 (dgx-h100-80gb): the device has no price"),
            std::string::npos)
      << ran.err;
}

// The catalog's devices have a power but no price.
TEST(PlanOfGroups, NamesTheGroupWhosePriceIsNotKnown) {
  const std::string file =
      "'" TRAINYARD_SOURCE "/scenarios/cases/llama-3.1-70b-64-a100-and-64-h100.json'";
  const Ran ran = run_trainyard("plan --objective cost " + file);
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("/cluster/groups/0 (dgx-a100-80gb): the device has no price"),
            std::string::npos)
      << ran.err;
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
}

// 16 A100 at 1 USD an hour and 16 H100 at 100: only a plan that leaves out the expensive group is
// best.
TEST(PlanOfGroups, OrdersByTheObjective) {
  const std::string file = quoted(unlike_groups(2, R"(, "price": ["1 USD/h", "100 USD/h"],
                                       "planner": { "tensor_parallel": 4, "micro_batch": 1 })"));
  const Ran printed = run_trainyard("plan --format json --objective cost " + file);
  ASSERT_EQ(printed.status, 0) << printed.err;
  const PrintedJson json = PrintedJson::parse(printed.out);
  EXPECT_EQ(json.at("objective"), "cost");
  const PrintedJson& best = json.at("plans").at(0);
  EXPECT_EQ(best.at("use"), "alone");
  EXPECT_EQ(best.at("order").at(0), 0);
  const auto bill = [](const PrintedJson& plan, double dollars_an_hour) {
    return plan.at("step_time_s").get<double>() / 3600 * 16 * dollars_an_hour;
  };
  EXPECT_NEAR(best.at("cost_per_step_usd").get<double>(), bill(best, 1), 1e-9);
  for (const PrintedJson& plan : json.at("plans")) {
    if (plan.at("order").size() != 2) continue;
    EXPECT_NEAR(plan.at("cost_per_step_usd").get<double>(), bill(plan, 101), 1e-6);
  }
  for (const auto& [objective, head] : {std::pair{"cost", "USD/step"},
                                        {"energy", "kWh/step"},
                                        {"memory", "fullest"},
                                        {"goodput", "goodput"}}) {
    const Ran ran = run_trainyard(fmt::format("plan --objective {} {}", objective, file));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find(head), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find(" % higher."), std::string::npos) << ran.out;
  }
}

// The same node under two names, so either of them alone takes the same time.
TEST(PlanOfGroups, SaysOfATieThatItIsOne) {
  const auto file = write_scratch("tie.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "groups": [{ "node": "dgx-h100-80gb", "nodes": 1 }, { "node": "p5", "nodes": 1 }] },
    "training": { "global_batch": 128, "sequence_length": 8192, "stack": "megatron-core" },
    "planner": { "tensor_parallel": 8, "context_parallel": 1, "pipeline_parallel": 1,
                 "data_parallel": 1 } })");
  const Ran ran = run_trainyard("plan " + quoted(file));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::string words = words_of(ran.out);
  EXPECT_NE(words.find("Its step time is the same."), std::string::npos) << ran.out;
  EXPECT_EQ(words.find("slower: ."), std::string::npos) << ran.out;
}

TEST(PlanOfGroups, KeepsToThePlannerSection) {
  const std::string file = quoted(unlike_groups(
      2, R"(, "planner": { "tensor_parallel": 4, "schedule": ["1f1b"], "context_parallel": 1 })"));
  const PrintedJson json = PrintedJson::parse(run_trainyard("plan --format json " + file).out);
  EXPECT_EQ(json.at("plans").size(), 5u);
  EXPECT_TRUE(json.at("ways_left_out").empty());
  for (const PrintedJson& plan : json.at("plans")) {
    EXPECT_EQ(plan.at("plan").at("tensor_parallel"), 4);
  }
}

// The option gives what the section gives with the same value.
TEST(PlanOfGroups, ExplainsKeys) {
  const std::string file = quoted(unlike_groups(2));
  const PrintedJson explained =
      PrintedJson::parse(run_trainyard("plan --format json --explain tp=8,mb=4 " + file).out)
          .at("explained");
  EXPECT_EQ(explained.at("keys").at("tensor_parallel"), "8");
  const PrintedJson bounded = PrintedJson::parse(
      run_trainyard("plan --format json " +
                    quoted(unlike_groups(2, R"(, "planner": { "tensor_parallel": 8,
                                                              "micro_batch": 4 })")))
          .out);
  EXPECT_EQ(explained.at("best"), bounded.at("plans").at(0));
  const Ran none = run_trainyard("plan --explain tp=3 " + file);
  EXPECT_EQ(none.status, 0) << none.err;
  EXPECT_NE(none.out.find("explained      tensor_parallel 3: no plan: a pipeline through"),
            std::string::npos)
      << none.out;
}

TEST(PlanOfGroups, SaysWhichWaysThePlannerSectionLeavesOut) {
  const std::string file =
      quoted(unlike_groups(2, R"(, "planner": { "context_parallel": 2, "micro_batch": 1 })"));
  const Ran ran = run_trainyard("plan " + file);
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::string reason = "the only context_parallel there, 1, is not allowed by the";
  EXPECT_NE(ran.out.find("left out       replicas on several groups: " + reason), std::string::npos)
      << ran.out;
  const PrintedJson json = PrintedJson::parse(run_trainyard("plan --format json " + file).out);
  EXPECT_EQ(json.at("plans").size(), 3u);  // as one cluster, and either alone
  ASSERT_EQ(json.at("ways_left_out").size(), 2u);
  EXPECT_EQ(json.at("ways_left_out").at(0).at("use"), "pipeline");
  const Ran none =
      run_trainyard("plan " + quoted(unlike_groups(2, R"(, "planner": { "tensor_parallel": 3 })")));
  EXPECT_EQ(none.status, 1) << none.out;
  EXPECT_NE(none.err.find("no plan of the space is legal for this job; /planner/tensor_parallel: "
                          "found 3, allowed a divisor of "),
            std::string::npos)
      << none.err;
}

// DeepSeek-V3 on two generations takes seconds from end to end.
std::string large_groups() {
  return quoted(write_scratch("groups.json", R"({
    "trainyard": "scenario/1", "model": "deepseek-v3",
    "cluster": { "groups": [{ "node": "dgx-h100-80gb", "nodes": 512 },
                            { "node": "dgx-b200", "nodes": 512 }] },
    "training": { "global_batch": 15360, "sequence_length": 4096 } })"));
}

// How much is found in a given time depends on the machine. What is tested is that the answer says
// so.
void expect_the_best_so_far(const Ran& ran) {
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& search = json.at("search");
  EXPECT_EQ(search.at("complete"), false);
  const PrintedJson& plans = json.at("plans");
  EXPECT_EQ(ran.status, plans.empty() ? 1 : 0) << ran.err;
  const double bound = search.at("step_time_bound_s").get<double>();
  EXPECT_GT(bound, 0);
  const double gap = search.at("gap").get<double>();
  EXPECT_NEAR(gap, plans.empty() ? 1 : 1 - bound / plans.at(0).at("step_time_s").get<double>(),
              1e-9);
}

TEST(PlanOfGroups, PrintsTheBestSoFarAtATimeLimit) {
  expect_the_best_so_far(run_trainyard("plan --format json --time-limit 0.2 " + large_groups()));
}

TEST(PlanOfGroups, PrintsTheBestSoFarWhenInterrupted) {
  const Ran ran =
      run_trainyard("plan --format json " + large_groups(), "timeout --preserve-status -s INT 0.4");
  if (ran.status != 130) return expect_the_best_so_far(ran);
  EXPECT_EQ(ran.out, "") << "nothing was found";
}

// A100 has no 8-bit floats (datasheet).
TEST(PlanOfGroups, SaysWhichDevicesCannotComputeInThePrecision) {
  const std::string file = quoted(write_scratch("groups_fp8.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "groups": [{ "node": "dgx-a100-80gb", "nodes": 2 },
                            { "node": "dgx-a100-80gb", "nodes": 1 },
                            { "node": "dgx-h100-80gb", "nodes": 2 }] },
    "training": { "global_batch": 64, "sequence_length": 4096, "precision": "fp8" } })"));
  const Ran ran = run_trainyard("plan " + file);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find(" a100-sxm-80gb: no plan can use them"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("a100-sxm-80gb, a100-sxm-80gb"), std::string::npos) << ran.out;
  const Ran printed = run_trainyard("plan --format json " + file);
  const PrintedJson json = PrintedJson::parse(printed.out);
  ASSERT_EQ(json.at("left_out").size(), 2u) << printed.out;
  EXPECT_EQ(json.at("left_out").at(1).at("group"), 1);
  EXPECT_EQ(json.at("left_out").at(1).at("name"), "dgx-a100-80gb");
  EXPECT_EQ(json.at("left_out").at(1).at("reason"), "a100-sxm-80gb does not compute in fp8");
  const std::vector<std::string> rows = lines_of(run_trainyard("plan --format csv " + file).out);
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                          [](const std::string& row) {
                            return row.find(",left out,,,dgx-a100-80gb,") != std::string::npos;
                          }),
            2);
}

TEST(PlanOfGroups, ShowsAsManyPlansAsAskedFor) {
  PrintedJson scenario = PrintedJson::parse(
      read_text(TRAINYARD_SOURCE "/scenarios/cases/llama-3.1-70b-64-a100-and-64-h100.json"));
  scenario["planner"]["micro_batch"] = 1;
  const auto file = write_scratch("unnamed.json", scenario.dump());
  const Ran ran = run_trainyard("plan --format json --top 2 " + quoted(file));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_EQ(json.at("plans").size(), 2u);
  const PrintedJson& search = json.at("search");
  EXPECT_EQ(search.at("complete"), true);
  double parts = 0;
  for (const auto& part : json.at("plans").at(0).at("breakdown_s")) parts += part.get<double>();
  EXPECT_NEAR(parts / json.at("plans").at(0).at("step_time_s").get<double>(), 1, 1e-9);
  EXPECT_EQ(search.at("not_varied").at("pipeline").at("schedule"), "1f1b");
  EXPECT_FALSE(search.at("not_varied").at("pipeline").contains("expert_parallel"));
  EXPECT_EQ(search.at("not_varied").at("replicas").at("expert_parallel"), "1");
  // The scenario names no ZeRO stage, which must equal naming all of them (an audit once found 41.0
  // and 43.6 s where the named stages 0 to 3 gave 40.1 and 40.6 s).
  scenario["planner"]["zero_stage"] = {0, 1, 2, 3};
  const std::filesystem::path named = write_scratch("named.json", scenario.dump());
  const Ran all = run_trainyard("plan --format json --top 2 " + quoted(named));
  const PrintedJson plans = PrintedJson::parse(all.out).at("plans");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(json.at("plans").at(i).at("step_time_s"), plans.at(i).at("step_time_s"));
  }
}

}  // namespace
}  // namespace trainyard
