// What is read from result files: the report, the best point, and the difference of two files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/sweep/report/report.h"
#include "scenarios/sweep/results/database.h"
#include "scenarios/sweep/results/difference.h"
#include "scenarios/sweep/results/summary.h"
#include "tests/scenarios/sweep/sweeps.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kTwoSizes = R"("vary": [ { "key": "cluster.nodes", "values": [2, 4] } ])";

// What `report` prints after the second of two points was given another number.
std::string said_of_a_renumbered_point(const std::string& keys, std::int64_t number) {
  const auto sweep = sweep_from(keys);
  const fs::path file = sweep_folder() / fmt::format("{}-{}.sqlite", keys.size(), number);
  run(*sweep, file);
  EXPECT_TRUE(Database::open(file, Database::Access::write)
                  ->run(fmt::format("UPDATE points SET point = {} WHERE point = 1", number))
                  .has_value());
  const auto report = SweepReport::open(file);
  return report ? "opened" : report.error().where + ": " + report.error().message;
}

TEST(SweepReport, RefusesAPointThatTheSweepDoesNotHave) {
  write_sweep_file("points.csv", "cluster.nodes\n2\n4\n");
  for (const std::string& keys : {kTwoSizes, std::string(R"("overrides": "points.csv")")}) {
    EXPECT_EQ(said_of_a_renumbered_point(keys, 1), "opened");
    for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{2}, std::int64_t{987654321}}) {
      EXPECT_THAT(said_of_a_renumbered_point(keys, number),
                  HasSubstr(fmt::format(".sqlite: found point {}; allowed: from 0 to 1", number)));
    }
  }
}

// An unknown figure does not count as smaller than a known one.
TEST(SweepSummary, TakesNoPointForTheBestThatHasNoSuchFigure) {
  for (const auto& [objective, figure] :
       {std::pair{"cost", "cost_per_step_usd"}, {"energy", "energy_per_step_joule"}}) {
    const auto sweep = sweep_from(fmt::format(R"("objective": "{}", )", objective) + kTwoSizes);
    ASSERT_TRUE(sweep.has_value()) << sweep.error().message;
    PointRow unknown{.point = 0, .overrides = "{}"};
    unknown.figure("tokens_per_second") = unknown.figure("step_time_s") = 1;
    PointRow known = unknown;
    known.point = 1;
    known.figures[figure_at(figure)] = 5;
    const fs::path file = sweep_folder() / fmt::format("{}.sqlite", objective);
    {
      auto store = SweepStore::open(file, *sweep, kSession);
      ASSERT_TRUE(store.has_value());
      ASSERT_TRUE(store->add({{0, 2}, {unknown, known}}).has_value());
      ASSERT_TRUE(store->commit().has_value());
    }
    const auto summary = summary_of(file, *sweep, {.points = 2, .answered = 2});
    ASSERT_TRUE(summary.has_value() && !summary->best.empty());
    EXPECT_EQ(summary->best.front().point, 1) << objective;
  }
}

// Forty draws from three sizes, so most points repeat. Point i depends only on the seed and i, so
// the first thirty are those of a sweep of thirty.
TEST(ResultDifference, PairsPointsThatRepeatOnce) {
  const auto drawn = [](int samples) {
    const auto sweep = sweep_from(fmt::format(R"("combine": "random", "samples": {}, "vary": [
        {{ "key": "cluster.nodes", "values": [1, 2, 4] }} ])",
                                              samples));
    fs::path file = sweep_folder() / fmt::format("{}.sqlite", samples);
    run(*sweep, file);
    return file;
  };
  const fs::path forty = drawn(40);
  const auto itself = difference_of(forty, forty);
  ASSERT_TRUE(itself.has_value()) << itself.error().message;
  EXPECT_EQ(itself->same, 40);
  EXPECT_EQ(itself->moved, 0);
  EXPECT_EQ(itself->only_before, 0);
  EXPECT_EQ(itself->only_after, 0);
  const auto fewer = difference_of(forty, drawn(30));
  ASSERT_TRUE(fewer.has_value()) << fewer.error().message;
  EXPECT_EQ(fewer->same, 30);
  EXPECT_EQ(fewer->moved, 0);
  EXPECT_EQ(fewer->only_before, 10);
  EXPECT_EQ(fewer->only_after, 0);
}

// A file with two points, and a copy in which some figures differ.
class ChangedResults : public ::testing::Test {
 protected:
  void SetUp() override { run(*sweep_from(kTwoSizes), before_); }

  // `changes` are the changes of an SQL UPDATE.
  ResultDifference difference_after(const std::vector<std::string>& changes) {
    const fs::path after = sweep_folder() / "after.sqlite";
    fs::copy_file(before_, after, fs::copy_options::overwrite_existing);
    for (const std::string& change : changes) {
      EXPECT_TRUE(Database::open(after, Database::Access::write)
                      ->run("UPDATE points SET " + change)
                      .has_value())
          << change;
    }
    return difference_of(before_, after).value();
  }

 private:
  fs::path before_ = sweep_folder() / "before.sqlite";
};

TEST_F(ChangedResults, AreNoneOfThoseThatAreTheSame) {
  const ResultDifference none = difference_after({});
  EXPECT_EQ(none.same, 2);
  EXPECT_EQ(none.moved, 0);
  EXPECT_TRUE(none.largest.empty());
}

// This includes figures that were unknown before.
TEST_F(ChangedResults, AreOthersByEveryFigure) {
  for (std::size_t i = 0; i < kFigures; ++i) {
    const std::string_view name = kFigureNames[i];
    const ResultDifference changed =
        difference_after({fmt::format("{0} = coalesce({0}, 0) * 1.5 + 1 WHERE point = 1", name)});
    EXPECT_EQ(changed.same, 1) << name;
    EXPECT_EQ(changed.moved, 1) << name;
    ASSERT_EQ(changed.largest.size(), 1u) << name;
    EXPECT_EQ(changed.largest[0].before.point, 1);
  }
}

// A step that is 1 % longer comes before costs that double. Among points with the same step, the
// one with the larger change of a figure comes first.
TEST_F(ChangedResults, AreOrderedByTheStepAndThenByTheFigureThatMovedMost) {
  const auto costs =
      difference_after({"mfu = mfu * 1.1, peak_memory_bytes = peak_memory_bytes / 2 "
                        "WHERE point = 0",
                        "cost_per_step_usd = cost_per_step_usd * 2 WHERE point = 1"});
  ASSERT_EQ(costs.largest.size(), 2u);
  EXPECT_EQ(costs.largest[0].before.point, 1);
  EXPECT_EQ(costs.largest[0].largest_figure(), figure_at("cost_per_step_usd"));
  EXPECT_EQ(costs.largest[0].largest_part(), kFigures);
  EXPECT_EQ(costs.largest[1].largest_figure(), figure_at("peak_memory_bytes"));
  const auto step = difference_after({"step_time_s = step_time_s * 1.01 WHERE point = 0",
                                      "cost_per_step_usd = cost_per_step_usd * 2 WHERE point = 1"});
  ASSERT_EQ(step.largest.size(), 2u);
  EXPECT_EQ(step.largest[0].before.point, 0);
  EXPECT_NEAR(step.largest[0].step_time_change(), 0.01, 1e-9);
}

}  // namespace
}  // namespace trainyard
