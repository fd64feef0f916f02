// A user's own pass lists, in a document or inline.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "model/cost/estimate.h"
#include "model/schedule/listed.h"
#include "planner/passes/auto_schedule.h"
#include "scenarios/fields/documents.h"
#include "scenarios/plan_value.h"
#include "scenarios/scenario.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

class PassLists : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / fmt::format("trainyard_passes.{}", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Llama-3.1-8B on 2 stages of 8 devices, 4 micro-batches.
  Scenario with_schedule(const Json& schedule) const {
    const Json scenario = {
        {"trainyard", "scenario/1"},
        {"model", "llama-3.1-8b"},
        {"cluster", {{"node", "dgx-h100-80gb"}, {"nodes", 2}}},
        {"training", {{"global_batch", 4}, {"sequence_length", 8192}, {"stack", "ideal"}}},
        {"plan", {{"tensor_parallel", 8}, {"pipeline_parallel", 2}, {"schedule", schedule}}}};
    std::ofstream(folder_ / "scenario.json") << scenario;
    return read_scenario(folder_ / "scenario.json").value();
  }

  static Plan plan_of(const Scenario& scenario) {
    const Job& job = scenario.job;
    return make_plan(*scenario.plan, job.model, job.cluster, job.training).value();
  }
  static Seconds step_of(const Scenario& scenario) {
    return estimate(prepare(scenario.job), plan_of(scenario)).step_time;
  }

  fs::path folder_;
};

// GPipe's closed form, exact for any stages, and its lists written out and played must agree.
TEST_F(PassLists, OfGpipeTakeTheTimeOfItsClosedForm) {
  const fs::path file = source_folder() / "tests" / "scenarios" / "good" / "passes.json";
  const double written = step_of(with_schedule(file.string())).value();
  const double closed = step_of(with_schedule("gpipe")).value();
  EXPECT_NEAR(written / closed, 1, 1e-9);
}

TEST_F(PassLists, HoldTheActivationsThatTheyPlay) {
  const Json one_f_one_b = {{"stages", 2},
                            {"micro_batches", 4},
                            {"passes",
                             {{"F0", "F1", "B0", "F2", "B1", "F3", "B2", "B3"},
                              {"F0", "B0", "F1", "B1", "F2", "B2", "F3", "B3"}}}};
  const Scenario scenario = with_schedule(one_f_one_b);
  EXPECT_EQ(scenario.plan->passes->chunks_in_flight, (std::vector{2, 1}));
  const Plan plan = plan_of(scenario);
  EXPECT_EQ(plan.schedule->name, "listed");
  EXPECT_EQ(estimate(prepare(scenario.job), plan).peak_memory,
            estimate(prepare(scenario.job), plan_of(with_schedule("1f1b"))).peak_memory);
}

TEST_F(PassLists, AreWrittenAsTheyWereRead) {
  const Json pair = {{"name", "mirror"},
                     {"stages", 2},
                     {"virtual_stages", 1},
                     {"micro_batches", 4},
                     {"route", "both-ways"},
                     {"optimizer_barrier", false},
                     {"passes",
                      {{"F0", "F1", "F2.1", "I2.1", "F3.1+B0", "B3.1", "W2.1", "B1"},
                       {"F2.1", "F3.1", "F0", "F1+B2.1", "I0", "B1", "W0", "B3.1"}}}};
  const Document name{.name = "test"};
  PassTable table;
  ASSERT_TRUE(passes_section().read(pair, table, {&name, ""}));
  const auto schedule = schedule_of(table, {&name, ""});
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_EQ(passes_section().write(pass_table_of(**schedule)), pair);
}

TEST_F(PassLists, FitOnePlanOnly) {
  const Scenario scenario = with_schedule({{"name", "mine"},
                                           {"stages", 1},
                                           {"micro_batches", 1},
                                           {"passes", Json::array({{"F0", "B0"}})}});
  const Job& job = scenario.job;
  const auto plan = make_plan(*scenario.plan, job.model, job.cluster, job.training);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().where, "/plan/pipeline_parallel");
  EXPECT_EQ(plan.error().message, "found 2 with the pass list \"mine\", allowed 1");
}

TEST_F(PassLists, OfAPlanReadBackToTheSamePlan) {
  const fs::path file = source_folder() / "tests" / "scenarios" / "good" / "passes.json";
  const Plan plan = plan_of(with_schedule(file.string()));
  const Json value = plan_value(plan);
  EXPECT_EQ(value["schedule"]["name"], "gpipe by hand");
  EXPECT_EQ(plan_of(with_schedule(value["schedule"])).passes->passes, plan.passes->passes);
}

// The document of a found list plays to the same step, and no named schedule in a document is
// faster.
TEST_F(PassLists, FoundForAPlanAreADocument) {
  const Scenario scenario = with_schedule("auto");
  const PreparedJob job = prepare(scenario.job);
  const Plan found = complete_plan(job, *scenario.plan).value();
  const Seconds step = estimate(job, found).step_time;
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {
    EXPECT_LE(step, step_of(with_schedule(name))) << name;
  }
  ASSERT_TRUE(found.passes);
  const Json value = plan_value(found);
  EXPECT_EQ(value["schedule"]["name"], "auto");
  const Scenario again = with_schedule(value["schedule"]);
  EXPECT_EQ(plan_of(again).passes->passes, found.passes->passes);
}

}  // namespace
}  // namespace trainyard
