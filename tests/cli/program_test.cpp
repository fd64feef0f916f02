// The command as its users and their scripts see it: exit statuses, errors, output formats.
#include "tests/cli/program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

constexpr const char* kPlan =
    R"(, "plan": { "tensor_parallel": 2, "pipeline_parallel": 2, "micro_batch": 1 })";
constexpr const char* kIllegal = R"(, "plan": { "tensor_parallel": 3 })";
// Unsharded states of 8 billion parameters, 18 bytes each: 145 GB on 80 GiB.
constexpr const char* kTooLarge = R"(, "plan": { "tensor_parallel": 1, "zero_stage": 0 })";

void expect_one_line_error(const Ran& ran, const std::vector<std::string>& parts) {
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_TRUE(ran.err.starts_with("trainyard: ")) << ran.err;
  for (const std::string& part : parts) {
    EXPECT_NE(ran.err.find(part), std::string::npos) << part << " in: " << ran.err;
  }
}

TEST(Program, EstimatesAPlanThatFits) {
  const Ran ran = run_trainyard("estimate " + quoted(small_scenario(kPlan)));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  for (const char* part :
       {"model      ", "\ncluster    ", "\ntraining   ", "\nfits: ", "\nLimited by "}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << " in: " << ran.out;
  }
}

// "A bound, not a prediction" (its document): no measurement could give it an interval.
TEST(Program, SaysOfNoSoftwareThatItsStepIsABound) {
  const std::string scenario = quoted(write_scratch("ideal.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "training": { "global_batch": 32, "sequence_length": 8192, "stack": "ideal" },
    "plan": { "tensor_parallel": 8 } })"));
  const Ran ran = run_trainyard("estimate " + scenario);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("(a bound: the stack states no interval)"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("80 % interval"), std::string::npos) << ran.out;
}

// An interval of one point cannot be widened, and for a device whose kernels were measured there is
// nothing to say.
TEST(Program, SaysThatAnIntervalIsWiderWhereNoKernelWasMeasured) {
  const auto shown = [](const std::string& device, const std::string& stack) {
    const std::string file = quoted(write_scratch("carried.json", R"({
      "trainyard": "scenario/1", "model": "gpt-1.7b",
      "cluster": { "device": ")" + device + R"(", "devices_per_node": 8, "nodes": 1,
        "intra_node": { "kind": "pcie", "bandwidth": "64 GB/s" } },
      "training": { "global_batch": 32, "sequence_length": 2048, "stack": ")" +
                                                                      stack + R"(" },
      "plan": { "micro_batch": 1, "recompute": "full" } })"));
    return run_trainyard("estimate " + file).out;
  };
  const std::string words = "\ninterval   widened: no kernel of h100-pcie-80gb was measured\n";
  EXPECT_NE(shown("h100-pcie-80gb", "fsdp").find(words), std::string::npos);
  EXPECT_EQ(shown("h100-pcie-80gb", "ideal").find("widened"), std::string::npos);
  EXPECT_EQ(shown("h100-sxm-80gb", "fsdp").find("widened"), std::string::npos);
}

TEST(Program, PrintsEverythingWhenThePlanDoesNotFit) {
  const Ran ran = run_trainyard("estimate " + quoted(small_scenario(kTooLarge)));
  EXPECT_EQ(ran.status, 1) << ran.err;
  for (const char* part : {"where the step goes", "memory of a device",
                           "does not fit: a device needs", "80.00 GiB", "makes it fit"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part;
  }
}

TEST(Program, EstimateJsonHasTheKeysOfTheContract) {
  const Ran ran = run_trainyard("estimate --format json " + quoted(small_scenario(kPlan)));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  for (const char* key : {"step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_second",
                          "tokens_per_second_per_device", "model_tflops_per_device", "mfu",
                          "mfu_bf16", "hfu", "parameters", "active_parameters", "feasible",
                          "peak_allocated_bytes", "peak_reserved_bytes", "peak_memory_bytes",
                          "stages", "breakdown", "cost_per_step_usd", "energy_per_step_joule"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json.at("parameters"), 8030261248.0);  // handbook §2
  EXPECT_EQ(json.at("stages").size(), 2u);
  double sum = 0;
  for (const auto& [part, seconds] : json.at("breakdown").items()) {
    sum += seconds.get<double>();
  }
  EXPECT_NEAR(sum, json.at("step_time_s").get<double>(), 1e-9 * sum);
}

TEST(Program, EstimatesTheBestPlanWhereTheScenarioHasNone) {
  const std::string file = quoted(small_scenario());
  const PrintedJson estimate =
      PrintedJson::parse(run_trainyard("estimate --format json " + file).out);
  const PrintedJson plan =
      PrintedJson::parse(run_trainyard("plan --top 1 --format json " + file).out);
  EXPECT_EQ(estimate.at("step_time_s"), plan.at("plans").at(0).at("step_time_s"));
}

TEST(Program, PlanJsonHasTheKeysOfTheContract) {
  const Ran ran = run_trainyard("plan --top 2 --format json " + quoted(small_scenario()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  ASSERT_EQ(json.at("plans").size(), 2u);
  EXPECT_LE(json["plans"][0]["step_time_s"], json["plans"][1]["step_time_s"]);
  EXPECT_TRUE(json["plans"][0]["plan"].contains("tensor_parallel"));
  const PrintedJson& search = json.at("search");
  for (const char* key : {"space", "space_size", "considered", "pruned", "infeasible", "evaluated",
                          "wall_time_s", "optimal", "gap"}) {
    EXPECT_TRUE(search.contains(key)) << key;
  }
  EXPECT_EQ(search.at("optimal"), true);
  EXPECT_EQ(search.at("considered"), search.at("space_size"));
}

TEST(Program, WritesAScenarioWithTheBestPlanThatEstimatesToTheSame) {
  const std::filesystem::path out = scratch_folder() / "planned.json";
  const Ran planned =
      run_trainyard("plan --format json --out " + quoted(out) + " " + quoted(small_scenario()));
  ASSERT_EQ(planned.status, 0) << planned.err;
  const Ran estimated = run_trainyard("estimate --format json " + quoted(out));
  ASSERT_EQ(estimated.status, 0) << estimated.err;
  EXPECT_EQ(PrintedJson::parse(planned.out)["plans"][0]["step_time_s"],
            PrintedJson::parse(estimated.out)["step_time_s"]);
}

TEST(Program, SaysNoAndShowsTheClosestWhenNoPlanFits) {
  const std::filesystem::path file = write_scratch("large.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-405b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "training": { "global_batch": 8, "sequence_length": 8192 } })");
  const std::filesystem::path out = scratch_folder() / "planned.json";
  const Ran ran = run_trainyard("plan --format json --out " + quoted(out) + " " + quoted(file));
  EXPECT_EQ(ran.status, 1) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_TRUE(json.at("plans").empty());
  EXPECT_FALSE(json.at("closest").empty());
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_NE(run_trainyard("plan " + quoted(file)).out.find("no plan fits"), std::string::npos);
}

TEST(Program, ExplainsWhyOtherKeysLose) {
  const std::string file = quoted(small_scenario());
  const Ran slower = run_trainyard("plan --explain tp=8 " + file);
  EXPECT_EQ(slower.status, 0) << slower.err;
  EXPECT_NE(slower.out.find("explained      tensor_parallel 8: "), std::string::npos);
  const Ran illegal = run_trainyard("plan --explain tp=3 " + file);
  EXPECT_EQ(illegal.status, 0) << illegal.err;
  EXPECT_NE(illegal.out.find("no plan: /plan/tensor_parallel: found 3"), std::string::npos);
}

TEST(Program, MinimisesTheObjectiveOfTheCommandLine) {
  const std::string file = quoted(small_scenario());
  const auto best = [&](const std::string& objective) {
    const Ran ran =
        run_trainyard("plan --top 1 --format json --objective " + objective + " " + file);
    return PrintedJson::parse(ran.out).at("plans").at(0);
  };
  EXPECT_LT(best("memory").at("peak_memory_bytes"), best("step-time").at("peak_memory_bytes"));
  EXPECT_LT(best("step-time").at("step_time_s"), best("memory").at("step_time_s"));
}

TEST(Program, PlansAFrontOfTwoObjectives) {
  const PrintedJson plans =
      PrintedJson::parse(
          run_trainyard("plan --format json --pareto step-time,memory " + quoted(small_scenario()))
              .out)
          .at("plans");
  ASSERT_GT(plans.size(), 1u);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    EXPECT_GT(plans[i]["step_time_s"], plans[i - 1]["step_time_s"]);
    EXPECT_LT(plans[i]["peak_memory_bytes"], plans[i - 1]["peak_memory_bytes"]);
  }
}

TEST(Program, ConfirmsTheBestPlansBySimulation) {
  const std::string arguments = " --top 2 --confirm 2 " + quoted(small_scenario());
  const PrintedJson plans =
      PrintedJson::parse(run_trainyard("plan --format json" + arguments).out).at("plans");
  ASSERT_EQ(plans.size(), 2u);
  for (const PrintedJson& plan : plans) {
    const bool inside = plan["simulated_step_time_s"] >= plan["step_time_low_s"] &&
                        plan["simulated_step_time_s"] <= plan["step_time_high_s"];
    EXPECT_EQ(plan["simulation_departs"], !inside);
    EXPECT_NEAR(
        plan["simulated_peak_memory_bytes"].get<double>() / plan["peak_memory_bytes"].get<double>(),
        1, 0.1);
    EXPECT_EQ(plan["simulated_feasible"], true);
  }
  EXPECT_LE(plans[0]["simulated_step_time_s"], plans[1]["simulated_step_time_s"]);
  EXPECT_NE(run_trainyard("plan" + arguments).out.find("simulated "), std::string::npos);
}

// The device has memory to spare in these plans.
TEST(Program, PlansForTheBadEndOfTheInterval) {
  const std::string file =
      quoted(small_scenario(R"(, "planner": { "recompute": "full", "micro_batch": 1 })"));
  const PrintedJson usual =
      PrintedJson::parse(run_trainyard("plan --top 1 --format json " + file).out);
  const PrintedJson robust =
      PrintedJson::parse(run_trainyard("plan --top 1 --robust --format json " + file).out);
  const auto value = [](const PrintedJson& answer) {
    return answer.at("plans").at(0).at("robust_step_time_s").get<double>();
  };
  EXPECT_LE(value(robust), value(usual));
  EXPECT_EQ(value(usual), usual["plans"][0]["step_time_high_s"]) << "no straggler in the scenario";
}

// Without recomputation the plan fills the 80 GiB of a device.
TEST(Program, PlansForTheBadEndOfTheMemoryToo) {
  const std::string file = quoted(write_scratch("full.json", R"({ "trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "training": { "global_batch": 32, "sequence_length": 4096 } })"));
  const auto high = [&file](const std::string& options) {
    const Ran ran = run_trainyard("plan --top 1 --format json " + options + file);
    return PrintedJson::parse(ran.out).at("plans").at(0).at("peak_memory_high_bytes").get<double>();
  };
  const double device = 80 * 1024.0 * 1024 * 1024;
  EXPECT_GT(high(""), device);
  EXPECT_LE(high("--robust "), device);
}

TEST(Program, ValidatesRowsAndKeepsThoseThatCannotBePriced) {
  const std::string measured = R"(, "measured": { "step_time": "10 s", "source": "none" })";
  const std::string array = "[" + read_text(small_scenario(kPlan + measured)) + "," +
                            read_text(small_scenario(kIllegal + measured)) + "]";
  const std::filesystem::path file = write_scratch("rows.json", array);
  const Ran ran = run_trainyard("validate --format json " + quoted(file));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  ASSERT_EQ(json.at("rows").size(), 2u);
  EXPECT_EQ(json["rows"][0]["measured_step_time_s"], 10.0);
  const double predicted = json["rows"][0]["predicted_step_time_s"];
  EXPECT_NEAR(json["rows"][0]["error"], predicted / 10 - 1, 1e-12);
  EXPECT_TRUE(json["rows"][1]["predicted_step_time_s"].is_null());
  EXPECT_NE(json["rows"][1]["note"].get<std::string>().find("tensor_parallel"), std::string::npos);
  EXPECT_EQ(json["files"][0]["rows"], 2);
  EXPECT_EQ(json["files"][0]["priced"], 1);
  for (const char* key :
       {"mape", "median", "memory_mape", "groups", "by_device", "by_size", "by_parallelism"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["by_parallelism"][0]["name"], "tp+pp");
  const Ran text = run_trainyard("validate " + quoted(file));
  EXPECT_NE(text.out.find("cannot be priced: rows.json, small: "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("rows.json  1 of 2"), std::string::npos) << text.out;
}

TEST(Program, SaysOfHowManyRowsNoStepTimeWasMeasured) {
  const std::string measured = R"(, "measured": { "step_time": "10 s", "source": "none" })";
  const auto rows = [&](const std::string& other) {
    return quoted(write_scratch("some.json", "[" + read_text(small_scenario(kPlan + measured)) +
                                                 "," + read_text(small_scenario(kPlan + other)) +
                                                 "]"));
  };
  EXPECT_NE(run_trainyard("validate " + rows("")).out.find("of 1 of the rows no step time"),
            std::string::npos);
  EXPECT_EQ(run_trainyard("validate " + rows(measured)).out.find("no step time"),
            std::string::npos);
}

// Two files: each is predicted by what was fitted to the other.
TEST(Program, LeavesOneSourceOutAndPlots) {
  const auto source = [](const std::string& name, const std::string& time) {
    const std::string measured = R"(, "measured": { "step_time": ")" + time + R"(" })";
    return write_scratch(name, "[" + read_text(small_scenario(kPlan + measured)) + "]");
  };
  const std::string files =
      quoted(source("a.json", "10 s")) + " " + quoted(source("b.json", "9 s"));
  const std::filesystem::path plot = scratch_folder() / "plot.svg";
  const Ran ran = run_trainyard("validate --leave-one-source-out --format json --plot " +
                                quoted(plot) + " " + files);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& row = json.at("rows").at(0);
  EXPECT_NEAR(row["held_out_error"], row["held_out_step_time_s"].get<double>() / 10 - 1, 1e-12);
  EXPECT_LT(row["held_out_step_time_low_s"], row["held_out_step_time_s"]);
  EXPECT_NEAR(json["files"][0]["held_out_mape"], std::abs(row["held_out_error"].get<double>()),
              1e-12);
  EXPECT_EQ(json["intervals"][0]["stack"], "megatron-core");
  EXPECT_EQ(json["intervals"][0]["evidence"]["runs"], 2);
  EXPECT_TRUE(read_text(plot).starts_with("<svg"));
  EXPECT_NE(run_trainyard("validate --leave-one-source-out " + files).out.find("held out"),
            std::string::npos);
}

TEST(Program, ValidatesAsCsvUnderTheKeysOfJson) {
  const std::string measured = R"(, "measured": { "step_time": "10 s", "source": "none" })";
  const std::filesystem::path one = small_scenario(kPlan + measured);
  const std::filesystem::path other = write_scratch("other.json", read_text(one));
  const std::string command =
      "validate --leave-one-source-out " + quoted(one) + " " + quoted(other) + " --format ";
  const Ran csv = run_trainyard(command + "csv");
  const Ran json = run_trainyard(command + "json");
  ASSERT_EQ(csv.status, 0) << csv.err;
  ASSERT_EQ(json.status, 0) << json.err;
  const auto row = nlohmann::ordered_json::parse(json.out).at("rows").at(0);
  std::string head;
  for (const auto& [key, value] : row.items()) head += (head.empty() ? "" : ",") + key;
  const std::vector<std::string> lines = lines_of(csv.out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], head);
  const auto stack_and_experts = fmt::format(",{},false,", row.at("stack").get<std::string>());
  EXPECT_EQ(row.at("experts"), false);
  EXPECT_NE(lines[1].find(stack_and_experts), std::string::npos) << lines[1];
}

TEST(Program, CannotLeaveOutTheOnlySource) {
  const std::filesystem::path plot = scratch_folder() / "none.svg";
  expect_one_line_error(run_trainyard("validate --leave-one-source-out --plot " + quoted(plot) +
                                      " " + quoted(small_scenario(kPlan))),
                        {"--leave-one-source-out", "two files"});
  EXPECT_FALSE(std::filesystem::exists(plot));
}

TEST(Program, ListsEveryRunOnRequest) {
  const std::string measured = R"(, "measured": { "step_time": "10 s" })";
  const std::string file = quoted(small_scenario(kPlan + measured));
  EXPECT_EQ(run_trainyard("validate " + file).out.find("fits"), std::string::npos);
  EXPECT_NE(run_trainyard("validate --rows " + file).out.find("fits"), std::string::npos);
}

// A device, a node and a stack as calibrate wrote them on an H200, and a step that was measured
// there (docs/accuracy.md, "On a GPU").
TEST(Program, PricesTheStepOfACalibratedGpuAsItWasMeasured) {
  const Ran ran = run_trainyard("validate --format json '" TRAINYARD_SOURCE
                                "/scenarios/examples/calibrated-h200/llama-3.1-8b-layers.json'");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_NEAR(json.at("rows")[0]["measured_step_time_s"], 0.3769, 1e-12);
  EXPECT_NEAR(json["rows"][0]["error"], 0, 0.02);
}

TEST(Program, ImportsAConfigAndReadsItBack) {
  const std::filesystem::path out = scratch_folder() / "model.json";
  const std::string config = TRAINYARD_SOURCE "/scenarios/examples/llama-3.1-405b.config.json";
  const Ran imported = run_trainyard("import huggingface '" + config + "' -o " + quoted(out));
  ASSERT_EQ(imported.status, 0) << imported.err;
  EXPECT_NE(imported.out.find("405.9 B parameters"), std::string::npos);
  const std::filesystem::path scenario = write_scratch("s.json", R"({
    "trainyard": "scenario/1", "model": "model.json",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 256 },
    "training": { "global_batch": 2048, "sequence_length": 8192 },
    "plan": { "tensor_parallel": 8, "pipeline_parallel": 16 } })");
  const Ran ran = run_trainyard("estimate --format json " + quoted(scenario));
  EXPECT_EQ(PrintedJson::parse(ran.out).at("parameters"), 405853388800.0)
      << ran.err;  // handbook §2
}

TEST(Program, PrintsSchemas) {
  for (const char* kind : {"scenario", "model", "device", "node", "fabric", "stack"}) {
    const Ran ran = run_trainyard(std::string("schema ") + kind);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_TRUE(PrintedJson::parse(ran.out).contains("$schema")) << kind;
  }
  expect_one_line_error(run_trainyard("schema scenari"), {"scenari"});
}

TEST(Program, RefusesBadInputInOneLine) {
  expect_one_line_error(run_trainyard("estimate /no/such/file.json"), {"/no/such/file.json"});
  expect_one_line_error(run_trainyard("estimate " + quoted(small_scenario(kIllegal))),
                        {"small.json: /plan/tensor_parallel: found 3, allowed"});
  expect_one_line_error(run_trainyard("validate " + quoted(write_scratch("bad.json", "[{}"))),
                        {"bad.json"});
  expect_one_line_error(run_trainyard("plan --explain foo=1 " + quoted(small_scenario())),
                        {"--explain", "foo"});
}

TEST(Program, RefusesABadCommandLineInOneLine) {
  const std::string file = quoted(small_scenario(kPlan));
  const std::vector<std::string> lines = {"",
                                          "nothing",
                                          "estimate",
                                          "estimate --format xml " + file,
                                          "estimate --nonsense " + file,
                                          "plan --top 0 " + file,
                                          "plan --top many " + file,
                                          "plan --objective speed " + file,
                                          "plan --time-limit -1 " + file,
                                          "plan --time-limit nan " + file,
                                          "validate",
                                          "import",
                                          "import huggingface x",
                                          "schema"};
  for (const std::string& arguments : lines) {
    SCOPED_TRACE(arguments);
    expect_one_line_error(run_trainyard(arguments), {"command line"});
  }
}

TEST(Program, SaysWhatAnOptionAllows) {
  const std::string file = quoted(small_scenario(kPlan));
  expect_refused("plan --top 1.5 " + file, "found \"1.5\", allowed whole numbers 1 to 1000");
  expect_refused("run --ranks 0 " + file, "found \"0\", allowed whole numbers 1 to 65536");
  expect_refused("run --seed -3 " + file,
                 "found \"-3\", allowed whole numbers 0 to 9000000000000000");
  expect_refused("estimate --format xml " + file, "found \"xml\"; allowed: text, json, csv");
  expect_refused("plan --objective speed " + file,
                 "found \"speed\"; allowed: cost, energy, goodput, memory, step-time");
}

TEST(Program, NamesAWordThatIsNotOneOfThoseItKnows) {
  const std::string file = quoted(small_scenario(kPlan));
  expect_one_line_error(run_trainyard("nothing"), {"found \"nothing\"", "allowed: estimate, plan"});
  expect_one_line_error(run_trainyard("export nothing x"),
                        {"found \"nothing\"", "allowed: megatron, deepspeed, torchtitan, fsdp"});
  expect_one_line_error(run_trainyard("simulate --network far " + file),
                        {"--network: found \"far\"", "allowed: collective, message"});
  expect_one_line_error(run_trainyard("simulate --fold 0 " + file),
                        {"--fold: found \"0\"", "allowed: auto, off"});
}

TEST(Program, HelpsWithAnExampleOfEveryCommand) {
  for (const std::string command :
       {"", "estimate", "plan", "validate", "fit", "import", "import huggingface", "schema",
        "program", "goodput", "simulate", "compare"}) {
    const Ran ran = run_trainyard(command + " --help");
    EXPECT_EQ(ran.status, 0) << command;
    EXPECT_NE(ran.out.find("Example:\n  trainyard "), std::string::npos) << command;
    EXPECT_EQ(ran.err, "");
  }
}

TEST(Program, HelpsWithEveryExitStatus) {
  const std::string help = words_of(run_trainyard("--help").out);
  for (const char* status :
       {"0 done", "1 the answer is no", "2 bad input", "3 the machine failed", "130 interrupted"}) {
    EXPECT_NE(help.find(status), std::string::npos) << status;
  }
}

TEST(Program, SaysThatTheMachineFailedWhenTheDiskIsFull) {
  const Ran ran = run_trainyard("estimate " + quoted(small_scenario(kPlan)) + " > /dev/full");
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("stdout"), std::string::npos);
}

TEST(Program, WritesCsvWithOneHeadAndEqualRows) {
  const Ran ran = run_trainyard("plan --top 3 --format csv " + quoted(small_scenario()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::vector<std::string> lines = lines_of(ran.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].starts_with("name,tensor_parallel,"));
  const auto fields = [](const std::string& line) {
    return std::count(line.begin(), line.end(), ',');
  };
  for (const std::string& line : lines) {
    EXPECT_EQ(fields(line), fields(lines[0])) << line;
  }
}

TEST(Program, DoesNotDependOnTheLocale) {
  const std::string arguments = "estimate " + quoted(small_scenario(kPlan));
  EXPECT_EQ(run_trainyard(arguments, "LC_ALL=de_DE.UTF-8").out,
            run_trainyard(arguments, "LC_ALL=C").out);
}

// ---- Text for people ------------------------------------------------------------------

class TextOutput : public testing::TestWithParam<std::string> {
 protected:
  std::string text() const {
    return run_trainyard(GetParam() + " " + quoted(small_scenario(kPlan))).out;
  }
};

TEST_P(TextOutput, FitsInAHundredColumnsWithoutColourWhenPiped) {
  const std::string out = text();
  ASSERT_FALSE(out.empty());
  EXPECT_EQ(out.find('\x1b'), std::string::npos);
  for (const std::string& line : lines_of(out)) {
    const auto continuation = [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    };
    const auto columns = static_cast<std::ptrdiff_t>(line.size()) -
                         std::count_if(line.begin(), line.end(), continuation);
    EXPECT_LE(columns, 100) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, TextOutput,
                         testing::Values("estimate", "plan", "plan --explain tp=8,pp=1", "validate",
                                         "estimate --help", "plan --help"));

TEST(Program, ColoursOnATerminalUnlessAskedNotTo) {
  if (std::system("script --version >/dev/null 2>&1") != 0) {
    constexpr const char* kAbsent =
        "script(1), which gives the program a terminal, is not installed";
    ASSERT_FALSE(shared_data_required()) << "CI=true, and " << kAbsent;
    GTEST_SKIP() << kAbsent;
  }
  const std::string inner =
      std::string(TRAINYARD_PROGRAM) + " estimate " + small_scenario(kPlan).string();
  const std::filesystem::path out = scratch_folder() / "terminal";
  const auto on_terminal = [&](const std::string& environment) {
    const std::string command =
        environment + " script -qec '" + inner + "' /dev/null > " + out.string() + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return read_text(out);
  };
  EXPECT_NE(on_terminal("TERM=xterm NO_COLOR=").find("\x1b["), std::string::npos);
  EXPECT_EQ(on_terminal("TERM=xterm NO_COLOR=1").find("\x1b["), std::string::npos);
  EXPECT_EQ(on_terminal("TERM=dumb").find("\x1b["), std::string::npos);
}

// ---- A search that ends early ---------------------------------------------------------

// Experts over 2,048 devices, in eight orders of the ranks: twelve seconds, and more where the
// program is built to be checked; something is found at once.
std::filesystem::path long_search() {
  return write_scratch("long.json", R"({
    "trainyard": "scenario/1", "model": "deepseek-v3",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 256 },
    "planner": { "rank_order": ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "cp-tp-ep-dp-pp",
                                "cp-tp-ep-pp-dp", "tp-ep-cp-dp-pp", "tp-ep-dp-cp-pp",
                                "ep-tp-cp-dp-pp", "ep-cp-tp-dp-pp"],
                 "collective": ["ring", "double-binary-tree", "hierarchical", "nvls"] },
    "training": { "global_batch": 2048, "sequence_length": 4096 } })");
}

TEST(Program, StopsAtItsTimeLimitAndShowsTheBestSoFar) {
  const Ran ran = run_trainyard("plan --format json --time-limit 2 " + quoted(long_search()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_FALSE(json.at("plans").empty());
  EXPECT_EQ(json["search"]["optimal"], false);
  EXPECT_GT(json["search"]["gap"], 0.0);
  EXPECT_LT(json["search"]["considered"], json["search"]["space_size"]);
  EXPECT_TRUE(json.at("improvement").is_null());  // there is no time for it
}

TEST(Program, SaysThatATimeLimitLeftNothingToShow) {
  const Ran ran = run_trainyard("plan --time-limit 1e-6 " + quoted(long_search()));
  EXPECT_EQ(ran.status, 130);
  EXPECT_EQ(ran.out, "");
  EXPECT_NE(ran.err.find("the time limit came before any plan that fits was found"),
            std::string::npos)
      << ran.err;
}

// On a busy machine the first attempt may have found nothing (130); then the test waits longer.
TEST(Program, ShowsTheBestSoFarWhenInterrupted) {
  Ran ran;
  for (const int seconds : {3, 10, 30}) {
    ran = run_trainyard("plan " + quoted(long_search()),
                        fmt::format("timeout --preserve-status -s INT {}", seconds));
    if (ran.status != 130) break;
  }
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("Stopped"), std::string::npos);  // a line may end behind it
}

}  // namespace
}  // namespace trainyard
