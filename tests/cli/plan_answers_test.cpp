// What `trainyard plan` says besides its plans: why nothing fits, why a baseline is refused, what
// was fixed in vain, which plan a file holds. Also checks that the answer fits a page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

std::string scenario(const std::string& model, const std::string& cluster,
                     const std::string& training, const std::string& planner) {
  return quoted(write_scratch("answers.json", R"({ "trainyard": "scenario/1", "model": ")" + model +
                                                  R"(", "cluster": )" + cluster +
                                                  R"(, "training": )" + training +
                                                  R"(, "planner": )" + planner + " }"));
}

std::string llama_8b(const std::string& planner, const std::string& batch = "256") {
  return scenario("llama-3.1-8b", R"({ "node": "dgx-h100-80gb", "nodes": 2 })",
                  R"({ "global_batch": )" + batch + R"(, "sequence_length": 8192 })", planner);
}

PrintedJson answer(const std::string& arguments, int status = 0) {
  const Ran ran = run_trainyard("plan --format json " + arguments);
  EXPECT_EQ(ran.status, status) << ran.err;
  return PrintedJson::parse(ran.out);
}

// 405.9 B parameters on 8 × 80 GiB: with bf16 weights and fp32 gradients, 6 B each, they take 304
// GB per device without any optimizer. So every plan is pruned before it is priced.
TEST(PlanAnswers, SayWhyNothingFitsWhereNothingWasPriced) {
  const std::string file = scenario("llama-3.1-405b", R"({ "node": "dgx-h100-80gb", "nodes": 1 })",
                                    R"({ "global_batch": 64, "sequence_length": 8192 })", "{}");
  const PrintedJson json = answer(file, 1);
  ASSERT_EQ(json.at("search").at("evaluated"), 0);
  ASSERT_FALSE(json.at("closest").empty());
  const PrintedJson& shortfall = json.at("shortfall");
  EXPECT_EQ(shortfall.at("by"), "states");
  EXPECT_EQ(shortfall.at("available_bytes"), 80 * 1073741824.0);
  const double states = shortfall.at("states_bytes");
  EXPECT_GE(states, 6 * 405.8e9 / 8);
  EXPECT_NEAR(shortfall.at("required_bytes").get<double>(),
              states + shortfall.at("activations_bytes").get<double>() +
                  shortfall.at("others_bytes").get<double>(),
              1);
  EXPECT_EQ(shortfall.at("required_bytes"), json.at("closest").at(0).at("peak_memory_bytes"));
  const std::string text = words_of(run_trainyard("plan " + file).out);
  EXPECT_NE(text.find(" why plan 1 comes closest: "), std::string::npos) << text;
  EXPECT_NE(text.find("the device has 80.00 GiB. Parameters, gradients and optimizer take "),
            std::string::npos)
      << text;
}

TEST(PlanAnswers, NameTheBoundOfWhatIsMinimised) {
  const std::string file = llama_8b(R"({ "micro_batch": 1, "tensor_parallel": 1 })");
  const std::pair<const char*, const char*> said[] = {
      {"", "left out by a bound on the step time,"},
      {"--objective memory ", "left out by a bound on the memory,"},
      {"--objective energy ", "left out by a bound on the energy,"},
      {"--pareto step-time,memory ", "left out by a bound on the step time and memory,"}};
  for (const auto& [option, words] : said) {
    const std::string text = words_of(run_trainyard("plan " + (option + file)).out);
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_EQ(text.find("bound on time"), std::string::npos) << text;
  }
  const PrintedJson search = answer("--pareto memory,step-time " + file).at("search");
  EXPECT_EQ(search.at("objective"), "memory");
  EXPECT_EQ(search.at("second_objective"), "step-time");
  EXPECT_EQ(search.at("pruned"), search.at("pruned_by_memory").get<std::int64_t>() +
                                     search.at("pruned_by_objective").get<std::int64_t>());
}

// 24 sequences cannot be divided among 16 devices.
TEST(PlanAnswers, SayWhyABaselineIsNoPlan) {
  const std::string file = llama_8b(R"({ "micro_batch": 1 })", "24");
  const PrintedJson baselines = answer(file).at("baselines");
  ASSERT_EQ(baselines.size(), 3u);
  EXPECT_TRUE(baselines[0].at("reason").is_null()) << "the rule of thumb is legal and fits";
  for (const std::size_t i : {1, 2}) {
    EXPECT_TRUE(baselines[i].at("best").is_null());
    const std::string reason = baselines[i].at("reason");
    EXPECT_NE(reason.find("global_batch: found 24, allowed a multiple of 16"), std::string::npos)
        << reason;
  }
  const std::string text = words_of(run_trainyard("plan " + file).out);
  EXPECT_NE(text.find("plain DDP not legal: global_batch: found 24, allowed a multiple of 16"),
            std::string::npos)
      << text;
}

// At least 16 B for each of 8.03 B parameters on each device.
TEST(PlanAnswers, SayWhatABaselineNeedsThatDoesNotFit) {
  const PrintedJson ddp = answer(llama_8b(R"({ "micro_batch": 1 })")).at("baselines").at(1);
  EXPECT_EQ(ddp.at("best").at("feasible"), false);
  const std::string reason = ddp.at("reason");
  EXPECT_EQ(reason.find("does not fit: a device needs "), 0u) << reason;
}

TEST(PlanAnswers, SayWhatWasFixedInVain) {
  const std::string file =
      llama_8b(R"({ "micro_batch": 1, "sequence_parallel": true, "tensor_parallel": 1 })");
  const PrintedJson notes = answer(file).at("notes");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].at("note"), "sequence_parallel true has no effect without tensor parallelism");
  EXPECT_EQ(notes[0].at("plans"), PrintedJson({0, 1, 2, 3, 4}));
  const std::string text = words_of(run_trainyard("plan " + file).out);
  EXPECT_NE(text.find("note all plans"), std::string::npos) << text;
}

// Megatron-Core is not known to keep activations on the hosts (its catalog document).
TEST(PlanAnswers, SayWhatTheStackIsNotKnownToHave) {
  const PrintedJson notes =
      answer(llama_8b(R"({ "micro_batch": 1, "offload": "activations" })")).at("notes");
  ASSERT_FALSE(notes.empty());
  const std::string note = notes[0].at("note");
  EXPECT_EQ(note.find("offload activations under ZeRO-"), 0u) << note;
  EXPECT_NE(note.find("megatron-core is not known to have it; it has optimizer under ZeRO-1"),
            std::string::npos)
      << note;
}

// DeepSpeed has no sequence parallelism (its catalog document).
TEST(PlanAnswers, SayThatTheStackHasNoSequenceParallelism) {
  const auto of_stack = [](const std::string& planner) {
    return scenario("llama-3.1-8b", R"({ "node": "dgx-h100-80gb", "nodes": 1 })",
                    R"({ "global_batch": 32, "sequence_length": 4096, "stack": "deepspeed" })",
                    planner);
  };
  const std::string words = "Sequence parallelism was not searched, for deepspeed has none";
  const std::string unnamed =
      words_of(run_trainyard("plan " + of_stack(R"({ "micro_batch": 1 })")).out);
  EXPECT_NE(unnamed.find(words), std::string::npos) << unnamed;
  const std::string named = words_of(
      run_trainyard("plan " +
                    of_stack(R"({ "micro_batch": 1, "sequence_parallel": [true, false] })"))
          .out);
  EXPECT_EQ(named.find(words), std::string::npos) << named;
  EXPECT_NE(named.find("combinations of tensor_parallel, sequence_parallel,"), std::string::npos)
      << named;
}

TEST(PlanAnswers, SayWhatOfTheGivenPlanHolds) {
  const std::string file = quoted(write_scratch("given.json", R"({ "trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "training": { "global_batch": 32, "sequence_length": 4096 },
    "plan": { "tensor_parallel": 2, "sequence_parallel": false, "zero_stage": 1,
              "layers_per_stage": [32], "overlap": { "data_parallel": false } },
    "planner": { "micro_batch": 1, "pipeline_parallel": 1 } })"));
  const PrintedJson json = answer(file);
  const PrintedJson& notes = json.at("notes");
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].at("note").get<std::string>().find("at the high end of the interval of its"),
            std::string::npos);
  EXPECT_EQ(notes[1].at("note"),
            "of the given `plan` sequence_parallel, overlap are kept, tensor_parallel, zero_stage "
            "are searched anew, layers_per_stage is not taken; the `planner` section fixes what is "
            "to hold");
  EXPECT_TRUE(notes[1].at("plans").empty());
  for (const PrintedJson& plan : json.at("plans")) {
    EXPECT_EQ(plan.at("plan").at("sequence_parallel"), false);
    EXPECT_EQ(plan.at("plan").at("overlap").at("data_parallel"), false);
  }
  const PrintedJson& space = json.at("search").at("space");
  EXPECT_EQ(std::count(space.begin(), space.end(), "sequence_parallel"), 0);
  EXPECT_EQ(std::count(space.begin(), space.end(), "zero_stage"), 1);
}

// 3 does not divide the number of heads; Megatron-Core has no zb-v (its catalog document).
TEST(PlanAnswers, SayWhichKeyLeavesNothingLegal) {
  const std::pair<const char*, const char*> keys[] = {
      {R"({ "micro_batch": 1, "tensor_parallel": 3 })",
       "/planner/tensor_parallel: found 3, allowed a divisor of the 32 attention heads; nearest 2"},
      {R"({ "pipeline_parallel": 2, "schedule": "zb-v" })",
       "/planner/schedule: found zb-v, which megatron-core does not run, allowed "}};
  for (const auto& [planner, words] : keys) {
    const Ran ran = run_trainyard("plan " + llama_8b(planner));
    EXPECT_EQ(ran.status, 1);
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
    const PrintedJson json = answer(llama_8b(planner), 1);
    EXPECT_TRUE(json.at("plans").empty());
    EXPECT_NE(json.at("notes").at(0).at("note").get<std::string>().find(words), std::string::npos);
  }
}

// With t = 8, two of 16 devices are left for the stages.
TEST(PlanAnswers, ExplainWithAllOtherKeysFree) {
  const std::string file = llama_8b(R"({ "micro_batch": 1 })");
  EXPECT_EQ(
      answer("--explain tp=8,pp=16 " + file).at("explained").at("reason"),
      "/plan/pipeline_parallel: found 16, allowed a divisor of 2 = 16 devices / (tensor_parallel "
      "· context_parallel); nearest 2");
  const std::string schedule =
      answer("--explain schedule=zb-v " + file).at("explained").at("reason");
  EXPECT_EQ(schedule.find("/plan/schedule: found zb-v, which megatron-core does not run"), 0u)
      << schedule;
}

TEST(PlanAnswers, ExplainWhatHasNoEffect) {
  const std::string file = llama_8b(R"({ "micro_batch": 1, "tensor_parallel": 1,
                                         "context_parallel": 1 })");
  for (const char* key : {"sequence_parallel=true", "context_parallel_algorithm=ring"}) {
    const PrintedJson notes =
        answer(std::string("--explain ") + key + " " + file).at("explained").at("notes");
    ASSERT_EQ(notes.size(), 1u) << key;
    EXPECT_NE(notes[0].get<std::string>().find(" has no effect without "), std::string::npos);
  }
}

// The head of 128,256 rows takes as long as two layers, so uneven layers are faster.
std::string improvable() {
  return llama_8b(R"({ "micro_batch": 1, "tensor_parallel": 2, "pipeline_parallel": 4,
                       "virtual_stages": 1 })",
                  "64");
}

TEST(PlanAnswers, WriteTheImprovedPlan) {
  const std::string file = improvable();
  const std::filesystem::path out = scratch_folder() / "best.json";
  const PrintedJson json = answer("--out " + quoted(out) + " " + file);
  const PrintedJson& improvement = json.at("improvement");
  ASSERT_FALSE(improvement.is_null());
  ASSERT_LT(improvement.at("step_time_s"), json.at("plans").at(0).at("step_time_s"));
  EXPECT_EQ(json.at("written").at("plan"), "improvement");
  EXPECT_EQ(json.at("written").at("file"), out.string());
  EXPECT_EQ(PrintedJson::parse(read_text(out)).at("plan"), improvement.at("plan"));
  const Ran estimated = run_trainyard("estimate --format json " + quoted(out));
  ASSERT_EQ(estimated.status, 0) << estimated.err;
  EXPECT_EQ(PrintedJson::parse(estimated.out).at("step_time_s"), improvement.at("step_time_s"));
  const std::string text = words_of(run_trainyard("plan --out " + quoted(out) + " " + file).out);
  EXPECT_NE(text.find(": the improved plan (tp 2 · pp 4 · dp 2 "), std::string::npos) << text;
  EXPECT_NE(text.find(" % faster than plan 1."), std::string::npos) << text;
  const Ran csv = run_trainyard("plan --format csv --out " + quoted(out) + " " + file);
  ASSERT_EQ(csv.status, 0) << csv.err;
  EXPECT_EQ(PrintedJson::parse(read_text(out)).at("plan"), improvement.at("plan"));
}

// The plan that was simulated comes first because of it.
TEST(PlanAnswers, WriteTheFirstPlanThatWasConfirmed) {
  const std::filesystem::path out = scratch_folder() / "best.json";
  const PrintedJson json = answer("--confirm 1 --out " + quoted(out) + " " + improvable());
  EXPECT_EQ(json.at("written").at("plan"), "plans/0");
  EXPECT_EQ(PrintedJson::parse(read_text(out)).at("plan"), json.at("plans").at(0).at("plan"));
}

TEST(PlanAnswers, WriteOneDocumentIntoAPipe) {
  const std::filesystem::path pipe = scratch_folder() / "pipe";
  const std::filesystem::path got = scratch_folder() / "got.json";
  const std::string reads =
      "mkfifo " + quoted(pipe) + "; cat " + quoted(pipe) + " >" + quoted(got) + " &";
  const Ran ran = run_trainyard(
      "plan --format csv --out " + quoted(pipe) + " " + improvable() + " && wait", reads);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(PrintedJson::parse(read_text(got)).at("trainyard"), "scenario/1");
}

TEST(PlanOptions, AreRefusedWhereTheyWouldDoNothing) {
  const std::string file = llama_8b(R"({ "micro_batch": 1, "tensor_parallel": 8 })");
  expect_refused("plan --robust --objective memory " + file,
                 "--robust: found with --objective memory, which no time changes; allowed: ");
  expect_refused("plan --pareto step-time,step-time " + file,
                 "--pareto: found step-time,step-time; allowed: two different objectives");
  expect_refused("plan --top 5 " + llama_8b(R"({ "nodes": [1, 2] })"), "--top: found with sizes");
  const std::string unlike = quoted(unlike_groups(1));
  expect_refused("plan --robust --objective memory " + unlike, "--robust: found with ");
  expect_refused("plan --pareto energy,energy " + unlike, "--pareto: found energy,energy; ");
  expect_refused("plan --top 3 --pareto step-time,memory " + unlike, "--top: found with --pareto ");
}

// If memory is one objective of the front, only the other has an interval.
TEST(PlanOptions, MayBeRobustOnAFrontWithMemory) {
  const std::string file = llama_8b(R"({ "micro_batch": 1, "tensor_parallel": 8 })");
  EXPECT_FALSE(answer("--robust --pareto memory,step-time " + file).at("plans").empty());
}

// 405.9 B parameters with at least 16 B each, on 16 and 8 devices of 80 GiB.
TEST(PlanOptions, SayThatNothingIsWrittenOrPlayedWhereNothingFits) {
  const std::filesystem::path out = scratch_folder() / "best.json";
  const std::string asked = "--confirm 2 --out " + quoted(out) + " ";
  const std::string file = scenario("llama-3.1-405b", R"({ "node": "dgx-h100-80gb", "nodes": 1 })",
                                    R"({ "global_batch": 64, "sequence_length": 8192 })", "{}");
  const std::string played = "--confirm: no plan of the list fits, so that none was simulated";
  const std::string written = "--out: no plan fits, so that " + out.string() + " was not written";
  const PrintedJson json = answer(asked + file, 1);
  EXPECT_TRUE(json.at("written").is_null());
  ASSERT_EQ(json.at("notes").size(), 2u);
  EXPECT_EQ(json.at("notes")[0].at("note"), played);
  EXPECT_EQ(json.at("notes")[1].at("note"), written);
  const Ran csv = run_trainyard("plan --format csv " + asked + file);
  EXPECT_EQ(csv.status, 1);
  EXPECT_EQ(csv.err, "trainyard: " + played + "\ntrainyard: " + written + "\n");
  const Ran text = run_trainyard("plan " + asked + file);
  EXPECT_NE(words_of(text.out).find(" note --confirm: no plan of the list fits"), std::string::npos)
      << text.out;
  EXPECT_NE(words_of(text.out).find(" note --out: no plan fits, "), std::string::npos) << text.out;
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(PlanOptions, SayThatNothingIsWrittenWhereNoUseOfTheGroupsFits) {
  const std::filesystem::path out = scratch_folder() / "best.json";
  const std::string arguments =
      "--out " + quoted(out) + " " +
      quoted(unlike_groups(1, R"(, "planner": { "tensor_parallel": 1, "pipeline_parallel": 1,
                                   "recompute": "none", "zero_stage": 0 })"));
  const std::string note = "--out: no plan fits, so that " + out.string() + " was not written";
  const PrintedJson json = answer(arguments, 1);
  EXPECT_TRUE(json.at("written").is_null());
  ASSERT_EQ(json.at("notes").size(), 1u);
  EXPECT_EQ(json.at("notes")[0].at("note"), note);
  const Ran csv = run_trainyard("plan --format csv " + arguments);
  EXPECT_EQ(csv.err, "trainyard: " + note + "\n");
  EXPECT_NE(words_of(run_trainyard("plan " + arguments).out).find(" note --out: no plan fits, "),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(out));
}

void expect_a_page(const std::string& text) {
  for (const std::string& line : lines_of(text)) {
    const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // no continuation of UTF-8
    });
    EXPECT_LE(columns, 100) << line;
  }
}

TEST(PlanTable, IsNoWiderThanAPage) {
  for (const char* example : {"llama-3.1-70b-how-many-h100", "llama-3.1-405b-16384-h100"}) {
    if (!is_next_tried()) continue;
    const Ran ran = run_trainyard(std::string("plan '" TRAINYARD_SOURCE "/scenarios/examples/") +
                                  example + ".json'");
    ASSERT_EQ(ran.status, 0) << ran.err;
    expect_a_page(ran.out);
  }
}

// One table would be 128 columns wide. So what plans give and what they are stand in two tables,
// with the rows numbered.
TEST(PlanTable, OfAFrontIsNoWiderThanAPage) {
  const std::string file =
      scenario("llama-3.1-70b", R"({ "node": "dgx-h100-80gb", "nodes": 8 })",
               R"({ "global_batch": 256, "sequence_length": 8192 })", R"({ "micro_batch": 1 })");
  const Ran ran = run_trainyard("plan --pareto step-time,memory " + file);
  ASSERT_EQ(ran.status, 0) << ran.err;
  expect_a_page(ran.out);
  const std::vector<std::string> lines = lines_of(ran.out);
  const auto of_second_plan = std::count_if(lines.begin(), lines.end(), [](const auto& line) {
    return line.starts_with(" 2  ");  // right-aligned: stages of the best one have fewer digits
  });
  EXPECT_EQ(of_second_plan, 2) << ran.out;
  EXPECT_NE(ran.out.find("\nthe degrees and choices of each\n"), std::string::npos) << ran.out;
}

// Columns for keys that the section fixes are left out, because no two plans can differ in them.
// Their values are stated before the table.
TEST(PlanTable, SaysOnceWhatAllPlansHave) {
  const std::string file =
      scenario("llama-3.1-405b", R"({ "node": "dgx-h100-80gb", "nodes": 2048 })",
               R"({ "global_batch": 2048, "sequence_length": 8192 })",
               R"({ "tensor_parallel": 8, "pipeline_parallel": 8, "zero_stage": 1,
                    "recompute": "none", "schedule": "interleaved-1f1b" })");
  const std::vector<std::string> lines = lines_of(run_trainyard("plan " + file).out);
  const auto said = std::ranges::find_if(
      lines, [](const std::string& line) { return line.starts_with("all plans: "); });
  ASSERT_LT(said + 1, lines.end());
  const std::string& columns = *(said + 1);
  for (const auto& [all, column] :
       {std::pair{"tp 8", " tp "}, std::pair{"pp 8", " pp "}, std::pair{"zero 1", " zero "},
        std::pair{"recompute none", " recompute "},
        std::pair{"schedule interleaved-1f1b", " schedule "}}) {
    EXPECT_THAT(*said, testing::HasSubstr(all));
    EXPECT_THAT(columns, testing::Not(testing::HasSubstr(column)));
  }
}

TEST(PlanOfSizes, SaysWhereStatesLieAndWhichScheduleRuns) {
  const std::string file = llama_8b(R"({ "micro_batch": 1, "model": ["llama-3.1-8b",
                                        "llama-3.1-70b"], "nodes": [1, 8], "tensor_parallel": 8 })",
                                    "64");
  const Ran ran = run_trainyard("plan " + file);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson points = answer(file).at("points");
  ASSERT_EQ(points.size(), 4u);
  for (const char* head : {" zero", " schedule", " offload", " recompute"}) {
    EXPECT_NE(ran.out.find(head), std::string::npos) << head << "\n" << ran.out;
  }
  // 70.6 billion parameters fit on one node only with the optimizer on the hosts
  // (PutsOnTheHostsWhatTheStackCan).
  ASSERT_EQ(points[2].at("best").at("plan").at("offload").at("optimizer"), "host");
  EXPECT_NE(ran.out.find(" optimizer "), std::string::npos) << ran.out;
  expect_a_page(ran.out);
}

}  // namespace
}  // namespace trainyard
