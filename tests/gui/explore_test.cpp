#include "gui/presenters/plan/explore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/presenters/answer.h"
#include "gui/presenters/plan/plan_knobs.h"
#include "gui/presenters/text.h"
#include "model/schedule/schedule.h"
#include "planner/passes/auto_schedule.h"
#include "planner/request.h"
#include "scenarios/question.h"
#include "scenarios/scenario_text.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

class Explored : public testing::Test {
 protected:
  void SetUp() override {
    question_ =
        std::make_shared<Question>(*read_question(example("llama-3.1-405b-16384-h100.json")));
    explore_.set_question(question_);
  }
  const ExploreControl& control(const QString& key) const {
    const auto& all = explore_.controls();
    return *std::ranges::find(all, key, &ExploreControl::key);
  }
  void choose(const QString& key, int value) {
    const std::vector<int>& values = control(key).values;
    const auto at = std::ranges::find(values, value);
    ASSERT_NE(at, values.end()) << key.toStdString() << " " << value;
    explore_.choose(key, static_cast<int>(at - values.begin()));
  }

  std::shared_ptr<const Question> question_;
  Explore explore_;
};

TEST_F(Explored, StartsAtThePlanOfTheScenario) {
  ASSERT_TRUE(explore_.candidate().has_value());
  EXPECT_EQ(explore_.candidate()->plan.pipeline_parallel, 16);
  const Plan plan = *requested_plan(question_->scenario, question_->job);
  EXPECT_EQ(explore_.candidate()->estimate.step_time, estimate(question_->job, plan).step_time);
}

TEST_F(Explored, ControlsHaveTheLegalValuesAndNoOthers) {
  const Job& job = question_->job.job;
  for (const PlanKnob& knob : plan_knobs()) {
    const ExploreControl& shown = control(QLatin1String(knob.key));
    for (const int value : shown.values) {
      PlanRequest request = turned(request_of(explore_.candidate()->plan), knob, value);
      EXPECT_TRUE(make_plan(request, job.model, job.cluster, job.training).has_value())
          << knob.key << " " << value;
    }
  }
  // 3 does not divide 128 heads; 126 layers in 16 stages of 8 chunks are legal.
  EXPECT_EQ(std::ranges::count(control("tensor_parallel").values, 3), 0);
  EXPECT_EQ(std::ranges::count(control("tensor_parallel").values, 8), 1);
}

TEST_F(Explored, AChangeIsAnsweredAtOnceAndFillsTheCluster) {
  choose("tensor_parallel", 16);
  ASSERT_TRUE(explore_.candidate().has_value());
  EXPECT_EQ(explore_.candidate()->plan.tensor_parallel, 16);
  EXPECT_EQ(explore_.candidate()->plan.data_parallel, 64);
  EXPECT_EQ(explore_.candidate()->plan.devices(), 16384);
  EXPECT_EQ(explore_.candidate()->estimate.step_time,
            estimate(question_->job, explore_.candidate()->plan).step_time);
}

// Goes from each schedule that a pipeline of this many stages can have to each other one and back.
TEST_F(Explored, ASchedulesNumberOfChunksHidesNoOtherSchedule) {
  explore_.set_question(std::make_shared<Question>(
      *question_of(R"({"trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 4096, "stack": "ideal"},
    "plan": {"tensor_parallel": 2, "pipeline_parallel": 4}})",
                   "a.json")));
  const auto name_now = [&] {
    const ExploreControl& schedule = control("schedule");
    return schedule.names.value(schedule.at).toStdString();
  };
  const auto take = [&](const char* name) {
    const auto at = control("schedule").names.indexOf(QLatin1String(name));
    ASSERT_GE(at, 0) << name << " from " << name_now();
    explore_.choose("schedule", static_cast<int>(at));
    ASSERT_TRUE(explore_.candidate().has_value());
    EXPECT_EQ(explore_.candidate()->plan.schedule->name, name);
  };
  for (const char* from : {"1f1b", "zb-v", "interleaved-1f1b", "gpipe", "zb-h1"}) {
    for (const char* to : {"1f1b", "zb-v", "interleaved-1f1b", "gpipe", "zb-h1"}) {
      take(from);
      take(to);
    }
  }
}

// `trainyard estimate`: "No single change makes it fit; recompute full comes closest (156.4 GiB)."
TEST(Explore, NamesWhatComesClosestWhereNothingFits) {
  Explore explore;
  explore.set_question(std::make_shared<Question>(
      *question_of(R"({"trainyard": "scenario/1", "model": "llama-3.1-405b",
    "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 8192},
    "plan": {"tensor_parallel": 8, "pipeline_parallel": 2}})",
                   "a.json")));
  ASSERT_TRUE(wait_until([&] { return explore.remedies().closest.has_value(); }));
  EXPECT_TRUE(explore.remedies().plans.empty());
  const Remedy& closest = *explore.remedies().closest;
  EXPECT_GT(closest.peak_memory, Bytes(80 * kGiB));
  EXPECT_LT(closest.peak_memory, explore.candidate()->estimate.peak_memory);
  EXPECT_TRUE(closest_text(closest).startsWith(
      QStringLiteral("No single change makes it fit; %1 comes closest (").arg(qt(closest.change))))
      << closest_text(closest).toStdString();
}

TEST_F(Explored, WhatWouldHelpIsFoundBesideAndCanBeTaken) {
  choose("virtual_stages", 1);  // a long bubble
  ASSERT_TRUE(wait_until([this] { return !explore_.remedies().plans.empty(); }));
  const Remedy remedy = explore_.remedies().plans.front();
  const Seconds before = explore_.candidate()->estimate.step_time;
  explore_.set_request(*remedy.request);
  EXPECT_DOUBLE_EQ(explore_.candidate()->estimate.step_time.value(),
                   (before - remedy.saved).value());
}

// With half a sequence on each rank less has to be recomputed: with what the plan before
// recomputes, context parallelism would not be faster.
TEST_F(Explored, RecomputationAutoIsChosenAgainForEveryNeighbour) {
  question_ = std::make_shared<Question>(
      *question_of(R"({"trainyard": "scenario/1", "model": "llama-3.1-405b",
    "cluster": {"node": "dgx-h100-80gb", "nodes": 1024},
    "training": {"global_batch": 2048, "sequence_length": 8192},
    "plan": {"tensor_parallel": 8, "pipeline_parallel": 16, "virtual_stages": 8,
             "recompute": "auto"}})",
                   "a.json"));
  explore_.set_question(question_);
  const Seconds before = explore_.candidate()->estimate.step_time;
  ASSERT_TRUE(wait_until([this] { return !explore_.remedies().hardware.empty(); }));
  const auto& found = explore_.remedies().plans;
  const auto remedy = std::ranges::find(found, "context_parallel 2", &Remedy::change);
  ASSERT_NE(remedy, found.end());
  EXPECT_EQ(remedy->request->recompute.mode, RecomputeMode::automatic);
  PlanRequest request = *question_->scenario.plan;
  request.context_parallel = 2;
  const Plan plan = *complete_plan(question_->job, request);
  EXPECT_DOUBLE_EQ((before - remedy->saved).value(),
                   estimate(question_->job, plan).step_time.value());
}

TEST_F(Explored, PartsOfTheBarSumToTheStep) {
  double sum = 0;
  for (const BarPart& part : breakdown_bar(explore_.candidate()->estimate)) sum += part.value;
  EXPECT_NEAR(sum, explore_.candidate()->estimate.step_time.value(), 1e-9);
}

TEST(Explore, SaysThatAPlanIsARuleOfThumbs) {
  const auto question = [](const char* plan) {
    return std::make_shared<Question>(
        *question_of(std::string(R"({"trainyard": "scenario/1", "model": "llama-3.1-8b",
      "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
      "training": {"global_batch": 64, "sequence_length": 4096})") +
                         plan + "}",
                     "a.json"));
  };
  Explore explore;
  explore.set_question(question(""));
  EXPECT_TRUE(explore.origin().contains(QStringLiteral("rule of thumb")));
  EXPECT_TRUE(explore.origin().contains(QStringLiteral("Plan page")));
  explore.set_request(request_of(explore.candidate()->plan));
  EXPECT_TRUE(explore.origin().isEmpty());
  explore.set_question(question(R"(, "plan": {"tensor_parallel": 2})"));
  EXPECT_TRUE(explore.origin().isEmpty());
}

// 20 nodes are two racks of 18 that are not full.
TEST(Explore, SaysWhatTheAnswerStandsOn) {
  Explore explore;
  explore.set_question(std::make_shared<Question>(
      *question_of(R"({"trainyard": "scenario/1", "model": "llama-3.1-8b",
      "cluster": {"node": "gb200-nvl72", "nodes": 20}, "plan": {"tensor_parallel": 4},
      "training": {"global_batch": 80, "sequence_length": 4096}})",
                   "a.json")));
  EXPECT_THAT(explore.assumed().toStdString(), ::testing::StartsWith("Assumed: NVLink domains"));
  explore.set_question(nullptr);
  EXPECT_TRUE(explore.assumed().isEmpty());
}

TEST(Answer, SaysThatTheHostsAreFullAndNotTheDevice) {
  Job job;
  job.cluster.device.memory = Bytes(80 * kGiB);
  job.cluster.host_memory = Bytes(500 * kGiB);
  Candidate candidate;
  candidate.estimate.feasible = false;
  candidate.estimate.peak_memory = Bytes(64 * kGiB);
  candidate.estimate.host_memory = Bytes(640 * kGiB);
  candidate.estimate.stages.resize(1);
  const QString detail = answer_lines(candidate, job).back().detail;
  EXPECT_EQ(detail,
            "of 80.00 GiB, stage 0 is the fullest; does not fit: the hosts of a node need "
            "640.0 GiB of 500.0 GiB");
}

TEST(Answer, SaysHowMuchMoreMemoryItMayTake) {
  Job job;
  job.cluster.device.memory = Bytes(80 * kGiB);
  Candidate candidate;
  candidate.estimate.feasible = true;
  candidate.estimate.peak_memory = Bytes(64 * kGiB);
  candidate.estimate.peak_memory_low = Bytes(62 * kGiB);
  candidate.estimate.peak_memory_high = Bytes(70 * kGiB);
  candidate.estimate.stages.resize(1);
  EXPECT_EQ(
      answer_lines(candidate, job).back().detail,
      "62.00 GiB to 70.00 GiB (10\u2060–\u206090\u00a0%), of 80.00 GiB, stage 0 is the fullest");
}

// As `trainyard estimate` has them: "(a bound: the stack states no interval)", "interval widened:
// no published run of megatron-core had more than 11616 devices", "price unknown · ... a step".
TEST(Answer, SaysOfTheStepWhatTheCommandSays) {
  const auto lines_of = [](const std::string& stack) {
    const auto question =
        question_of(R"({"trainyard": "scenario/1", "model": "llama-3.1-405b", "cluster":
      {"node": "dgx-h100-80gb", "nodes": 2048},
      "training": {"global_batch": 2048, "sequence_length": 8192, "stack": ")" +
                        stack + R"("},
      "plan": {"tensor_parallel": 8, "pipeline_parallel": 16}})",
                    "a.json");
    const Plan plan = *requested_plan(question->scenario, question->job);
    return answer_lines({plan, estimate(question->job, plan), {}}, question->job.job);
  };
  const auto lines = lines_of("megatron-core");
  const std::string interval = lines[0].detail.toStdString();
  EXPECT_THAT(
      interval,
      testing::HasSubstr("widened: no published run of megatron-core had more than 11616 devices"));
  EXPECT_EQ(interval.find("10–90"), std::string::npos);  // a line may break after a bare dash
  EXPECT_THAT(lines[3].detail.toStdString(), testing::StartsWith("the device has no price; "));
  EXPECT_THAT(lines[3].detail.toStdString(), testing::HasSubstr("kWh a step"));
  EXPECT_EQ(lines_of("ideal")[0].detail, QStringLiteral("a bound: the stack states no interval"));
}

TEST(Answer, CallsAShareOfTheStepWhatIsSaved) {
  const Estimate before{.step_time = Seconds(10)};
  EXPECT_EQ(remedy_text({.change = "zero_stage 1", .saved = Seconds(0.72), .fits = true}, before),
            QStringLiteral("ZeRO stage 1: would save 7.2 %"));
}

TEST(Answer, NamesTheKeysOfAChangeAsTheControlsDo) {
  const Estimate before{.step_time = Seconds(10)};
  const auto text = [&](const char* change) {
    return remedy_text({.change = change, .saved = Seconds(1), .fits = true}, before);
  };
  EXPECT_EQ(text("tensor_parallel 8 with pipeline_parallel 2"),
            QStringLiteral("Tensor parallel 8 with Pipeline stages 2: would save 10.0 %"));
  EXPECT_EQ(text("expert_tensor_parallel 2"),
            QStringLiteral("Expert tensor parallel 2: would save 10.0 %"));
  EXPECT_EQ(text("10 % more FLOP/s"), QStringLiteral("10 % more FLOP/s: would save 10.0 %"));
}

TEST(Answer, CountsTheLayersOfAnOffload) {
  Offload offload{.activations = OffloadTarget::host, .activation_layers = 1};
  EXPECT_EQ(offload_text(offload), QStringLiteral("activations of 1 layer on host"));
  offload.activation_layers = 2;
  EXPECT_EQ(offload_text(offload), QStringLiteral("activations of 2 layers on host"));
}

TEST(Explore, HasNothingToTurnWithoutAQuestion) {
  Explore explore;
  explore.set_question(nullptr);
  EXPECT_TRUE(explore.controls().empty());
  EXPECT_FALSE(explore.problem().isEmpty());
}

}  // namespace
}  // namespace trainyard
