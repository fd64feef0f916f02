// A point that is read in parts has the figures of the same scenario read as a whole.
#include "scenarios/sweep/point_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/cost/breakdown.h"
#include "model/cost/estimate.h"
#include "scenarios/fields/documents.h"
#include "scenarios/sweep/answer.h"
#include "tests/scenarios/sweep/sweeps.h"

namespace trainyard {
namespace {

// Second computation: the point's scenario is written to a file, read and estimated.
Expected<Estimate> estimated_whole(const Sweep& sweep, const std::vector<SweepValue>& values) {
  Json scenario = {{"trainyard", "scenario/1"}};
  scenario.update(*scenario_of_point(sweep, values));
  const auto question = read_question(write_sweep_file("point.json", text_of(scenario)));
  if (!question) return tl::unexpected(question.error());
  return requested_plan(question->scenario, question->job).map([&](const Plan& plan) {
    return estimate(question->job, plan);
  });
}

void expect_same(const PointRow& row, const Estimate& whole) {
  EXPECT_EQ(row.figure("step_time_s"), whole.step_time.value()) << row.overrides;
  EXPECT_EQ(row.figure("peak_memory_bytes"), whole.peak_memory.value()) << row.overrides;
  EXPECT_EQ(row.figure("cost_per_step_usd"),
            whole.cost_per_step ? whole.cost_per_step->value() : -1)
      << row.overrides;
  EXPECT_EQ(row.figure("energy_per_step_joule"),
            whole.energy_per_step ? whole.energy_per_step->value() : -1)
      << row.overrides;
}

// The keys of every section that affects an estimate, also through names, and back again: what one
// point changed must not stay for the next.
TEST(PointReader, GivesTheFiguresOfTheWholeScenario) {
  const auto sweep = sweep_from(R"("combine": "one-at-a-time", "vary": [
    { "key": "model", "values": ["llama-3.1-8b", "llama-2-7b"] },
    { "key": "model.layers", "values": [16, 32] },
    { "key": "cluster.nodes", "values": [1, 2, 8] },
    { "key": "cluster.node", "values": ["dgx-a100-80gb", "dgx-h100-80gb"] },
    { "key": "cluster.node.nic_bandwidth", "values": ["100 Gbit/s"] },
    { "key": "cluster.node.device.memory", "values": ["40 GiB"] },
    { "key": "price", "values": ["4 USD/h"] },
    { "key": "power.pue", "values": [1.5] },
    { "key": "training.global_batch", "values": [128] },
    { "key": "training.stack", "values": ["fsdp"] },
    { "key": "training.stack.memory_traffic", "values": [2] },
    { "key": "training.precision", "values": ["fp8"] },
    { "key": "plan.tensor_parallel", "values": [1, 4, 3] },
    { "key": "plan.recompute", "values": ["full", { "full": 3 }] },
    { "key": "plan.zero_stage", "values": [0, 3] } ])");
  ASSERT_TRUE(sweep.has_value()) << sweep.error().where << ": " << sweep.error().message;
  PointAnswerer answerer(*sweep);
  std::vector<SweepValue> values;
  PointRow row;
  int refused = 0;
  for (std::int64_t point = 0; point < sweep->points; ++point) {
    ASSERT_TRUE(answerer.answer(point, row));
    values_at(*sweep, point, values);
    const auto whole = estimated_whole(*sweep, values);
    if (whole) {
      expect_same(row, *whole);
    } else {
      ++refused;
      EXPECT_EQ(row.status, PointStatus::refused) << row.overrides;
      EXPECT_THAT(row.note, ::testing::HasSubstr(whole.error().message));
    }
  }
  EXPECT_EQ(refused, 1);  // three devices do not share 32 heads
}

// What 25.07 changes concerns latent attention on Blackwell. So the network and the node of a point
// decide, not those of the sweep's own scenario, and a release that a point names is its own.
TEST(PointReader, ResolvesAReleaseForTheNetworkAndTheNodeOfThePoint) {
  const auto sweep = sweep_from(R"("vary": [
    { "key": "training.release", "values": ["25.07", "25.09"] },
    { "key": "model", "values": ["llama-3.1-8b", "deepseek-v2-lite"] },
    { "key": "cluster.node", "values": ["dgx-h100-80gb", "dgx-b200"] } ])");
  ASSERT_TRUE(sweep.has_value()) << sweep.error().where << ": " << sweep.error().message;
  PointAnswerer answerer(*sweep);
  std::vector<SweepValue> values;
  PointRow row;
  for (std::int64_t point = 0; point < sweep->points; ++point) {
    ASSERT_TRUE(answerer.answer(point, row));
    values_at(*sweep, point, values);
    const auto whole = estimated_whole(*sweep, values);
    ASSERT_TRUE(whole.has_value()) << whole.error().where << ": " << whole.error().message;
    expect_same(row, *whole);
  }
}

TEST(PointReader, GivesTheSameInAnyOrder) {
  const auto sweep = sweep_from(R"("vary": [
    { "key": "cluster.nodes", "values": [1, 2, 4] },
    { "key": "price", "values": ["1 USD/h", "2 USD/h"] },
    { "key": "plan.tensor_parallel", "values": [1, 2, 4] } ])");
  ASSERT_TRUE(sweep.has_value());
  PointAnswerer forwards(*sweep);
  PointAnswerer backwards(*sweep);
  std::vector<PointRow> rows(static_cast<std::size_t>(sweep->points));
  for (std::int64_t point = 0; point < sweep->points; ++point) {
    forwards.answer(point, rows[static_cast<std::size_t>(point)]);
  }
  PointRow row;
  for (std::int64_t point = sweep->points; point-- > 0;) {
    backwards.answer(point, row);
    const PointRow& other = rows[static_cast<std::size_t>(point)];
    EXPECT_EQ(row.overrides, other.overrides);
    EXPECT_EQ(row.figure("step_time_s"), other.figure("step_time_s"));
    EXPECT_EQ(row.figure("cost_per_step_usd"), other.figure("cost_per_step_usd"));
  }
}

TEST(PointReader, KnowsEveryKeyOfAScenario) {
  for (const FieldSpec& field : scenario_section().spec().fields) {
    EXPECT_TRUE(is_read_by_point(field.key)) << field.key;
  }
  EXPECT_FALSE(is_read_by_point("no_such_key"));
}

TEST(PointAnswer, NamesThePartsOfTheBreakdownInTheirOrder) {
  std::size_t at = figure_at("compute_s");
  for (const BreakdownPart& part : breakdown_parts()) {
    EXPECT_EQ(kFigureNames[at], fmt::format("{}_s", part.key));
    ++at;
  }
}

TEST(PointAnswer, PartsSumToTheStep) {
  const auto sweep = sweep_from(R"("vary": [ { "key": "cluster.nodes", "values": [2] } ])");
  ASSERT_TRUE(sweep.has_value());
  PointAnswerer answerer(*sweep);
  PointRow row;
  ASSERT_TRUE(answerer.answer(0, row));
  double sum = 0;
  for (std::size_t i = figure_at("compute_s"); i <= figure_at("other_s"); ++i) {
    sum += row.figures[i];
  }
  EXPECT_NEAR(sum, row.figure("step_time_s"), 1e-9);
  EXPECT_EQ(row.figure("devices"), 16);
}

// One row per evaluation. The planner's plan is no slower than the scenario's, and 30 days of a run
// have 30 days.
TEST(PointAnswer, IsThatOfTheCommandOfTheSameName) {
  const std::string axis = R"("vary": [ { "key": "plan.tensor_parallel", "values": [8] } ])";
  const auto answered = [](const std::string& keys) {
    const auto sweep = sweep_from(keys);
    EXPECT_TRUE(sweep.has_value()) << sweep.error().message;
    PointAnswerer answerer(*sweep);
    PointRow row;
    EXPECT_TRUE(answerer.answer(0, row));
    EXPECT_EQ(row.status, PointStatus::done) << row.note;
    return row;
  };
  const PointRow estimated = answered(axis);
  const PointRow simulated = answered(R"("evaluate": "simulate", )" + axis);
  EXPECT_NEAR(simulated.figure("step_time_s") / estimated.figure("step_time_s"), 1, 0.1);
  const PointRow planned = answered(R"("evaluate": "plan", )" + axis);
  EXPECT_LE(planned.figure("step_time_s"), estimated.figure("step_time_s"));
  EXPECT_NE(planned.plan, "");
  const PointRow lived = answered(R"("evaluate": "goodput", "vary": [
      { "key": "run", "values": [{ "duration": "30 days", "runs": 4 }] } ])");
  EXPECT_NEAR(lived.figure("wall_time_s"), 30 * 86400.0, 1);
  EXPECT_GT(lived.figure("goodput"), 0.5);
}

// Restarts take twenty minutes and a device fails every half second, so the run is given up. With a
// fixed duration it costs what its days cost, whatever it achieved.
TEST(PointAnswer, KnowsNoTimeAndNoCostOfARunThatWasGivenUp) {
  const auto sweep = sweep_from(R"("evaluate": "goodput", "vary": [
      { "key": "power.carbon_intensity", "values": ["360 gCO2/kWh"] },
      { "key": "reliability.device_mtbf", "values": ["16 s"] },
      { "key": "run", "values": [{ "work": "2 h", "runs": 2 },
                                 { "duration": "2 h", "work": "2 h", "runs": 2 }] } ])");
  ASSERT_TRUE(sweep.has_value()) << sweep.error().message;
  PointAnswerer answerer(*sweep);
  PointRow given_up, to_its_end;
  ASSERT_TRUE(answerer.answer(0, given_up) && answerer.answer(1, to_its_end)) << given_up.note;
  EXPECT_EQ(given_up.figure("finished"), 0) << given_up.note;
  EXPECT_EQ(to_its_end.figure("finished"), 0) << to_its_end.note;
  for (const double unknown : {given_up.figure("wall_time_s"), given_up.figure("cost_usd"),
                               given_up.figure("energy_joule"), given_up.figure("carbon_g")}) {
    EXPECT_TRUE(std::isnan(unknown));
  }
  EXPECT_EQ(to_its_end.figure("wall_time_s"), 7200);
  // 2 h at 2 USD for 32 devices and a spare node of 8.
  EXPECT_NEAR(to_its_end.figure("cost_usd"), 2 * 2 * (32 + 8), 1e-6);
}

}  // namespace
}  // namespace trainyard
