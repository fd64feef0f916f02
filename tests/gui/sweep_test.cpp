// A sweep from its form to its points and cells, without a window.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <cmath>

#include "gui/presenters/sweep/sweep_figures.h"
#include "gui/presenters/sweep/sweep_run.h"
#include "gui/presenters/sweep/sweep_table.h"
#include "scenarios/question.h"
#include "scenarios/scenario_text.h"
#include "scenarios/sweep/run_sweep.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

using ::testing::ElementsAre;

using Mode = QAbstractItemModelTester::FailureReportingMode;

std::string swept_scenario(const std::string& batch, const std::string& tensor_parallel) {
  return R"({"trainyard": "scenario/1", "model": "llama-3.1-8b",
  "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
  "training": {"global_batch": )" +
         batch + R"(, "sequence_length": 4096}, "plan": {"tensor_parallel": )" + tensor_parallel +
         "}}";
}

const std::size_t kStepTime = figure_at("step_time_s");

class Swept : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(file_); }
  SweepQuestion question(const SweepDraft& draft) const {
    return {swept_scenario("64", "2"), gui_home() / "a.json", draft};
  }
  void answer(const SweepDraft& draft) {
    const QSignalSpy finished(&run_, &SweepRun::finished);
    run_.start(question(draft), file_);
    ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
    ASSERT_NE(run_.points(), nullptr) << run_.status().toStdString();
  }
  std::vector<double> row(const CellChoice& choice) const {
    return cells_of(*run_.points(), choice).values.front();
  }

  const std::filesystem::path file_ = gui_home() / "sweep.sqlite";
  SweepRun run_;
};

TEST_F(Swept, EveryCellIsTheEstimateOfItsScenario) {
  answer({.axes = {{.key = "plan.tensor_parallel", .values = "1, 2, 4"},
                   {.key = "training.global_batch", .values = "64, 128"}}});
  const SweepCells cells =
      cells_of(*run_.points(), {.x = 0, .y = 1, .figure = kStepTime, .only_fitting = false});
  EXPECT_EQ(cells.x, (QStringList{"1", "2", "4"}));
  EXPECT_EQ(cells.y, (QStringList{"64", "128"}));
  for (std::size_t y = 0; y < 2; ++y) {
    for (std::size_t x = 0; x < 3; ++x) {
      const auto alone = question_of(
          swept_scenario(y == 0 ? "64" : "128", x == 0 ? "1" : (x == 1 ? "2" : "4")), "a.json");
      ASSERT_TRUE(alone.has_value());
      const Plan plan = *requested_plan(alone->scenario, alone->job);
      EXPECT_DOUBLE_EQ(cells.values[y][x], estimate(alone->job, plan).step_time.value());
    }
  }
}

TEST_F(Swept, PointsOfOneCellAreFolded) {
  answer({.axes = {{.key = "plan.tensor_parallel", .values = "1, 2"},
                   {.key = "training.global_batch", .values = "64, 128"}}});
  const CellChoice both{.x = 0, .y = 1, .figure = kStepTime, .only_fitting = false};
  const SweepCells each = cells_of(*run_.points(), both);
  CellChoice one{.x = 0, .y = -1, .figure = kStepTime, .only_fitting = false};
  for (std::size_t x = 0; x < 2; ++x) {
    const double a = each.values[0][x];
    const double b = each.values[1][x];
    one.value = CellValue::least;
    EXPECT_DOUBLE_EQ(row(one)[x], std::min(a, b));
    one.value = CellValue::most;
    EXPECT_DOUBLE_EQ(row(one)[x], std::max(a, b));
    const auto at = static_cast<std::size_t>(cells_of(*run_.points(), one).points[0][x]);
    EXPECT_DOUBLE_EQ(run_.points()->points[at].row.figures[kStepTime], std::max(a, b));
    one.value = CellValue::mean;
    EXPECT_DOUBLE_EQ(row(one)[x], (a + b) / 2);
  }
}

// An 8B model with its optimizer does not fit one GPU without sharding. Points that do not fit
// count only if `only_fitting` is off.
TEST_F(Swept, WhatDoesNotFitIsLeftOutWhereThatIsAsked) {
  answer({.axes = {{.key = "plan.zero_stage", .values = "0, 3"},
                   {.key = "plan.tensor_parallel", .values = "1"}}});
  ASSERT_EQ(run_.points()->counts[1], 1) << run_.status().toStdString();
  EXPECT_TRUE(std::isnan(row({.figure = kStepTime})[0]));
  EXPECT_FALSE(std::isnan(row({.figure = kStepTime, .only_fitting = false})[0]));
  EXPECT_FALSE(std::isnan(row({.figure = kStepTime})[1]));
}

TEST_F(Swept, AnAxisOfManyValuesHasThemInGroups) {
  answer({.axes = {{.key = "training.global_batch", .values = "16 .. 100000"}},
          .combine = Combination::random,
          .samples = 300,
          .seed = 1});
  const PointsKey& key = run_.points()->keys.at(0);
  ASSERT_GT(key.values.size(), 200);
  EXPECT_LT(key.groups.size(), 60);
  // Values grow along the axis, also from group to group.
  for (int a = 0; a + 1 < key.values.size(); ++a) {
    const bool grows = key.values[a].toInt() < key.values[a + 1].toInt();
    const auto at = static_cast<std::size_t>(a);
    EXPECT_EQ(grows, key.rank[at] < key.rank[at + 1]) << a;
    if (grows) {
      EXPECT_LE(key.group_of(a), key.group_of(a + 1)) << a;
    }
  }
  EXPECT_EQ(row({.figure = kStepTime}).size(), static_cast<std::size_t>(key.groups.size()));
}

// Sorting goes by size, not by digits: 1 TB/s is more than 400 GB/s.
TEST_F(Swept, ValuesOfATableAreInTheOrderOfTheirSizeInAnyUnit) {
  written("bandwidths.csv", "cluster.node.nic_bandwidth\n1 Tbit/s\n400 Gbit/s\n50 GB/s\n");
  const auto document = written("of-a-table.json", R"({"trainyard": "sweep/1", "scenario": )" +
                                                       swept_scenario("64", "2") +
                                                       R"(, "overrides": "./bandwidths.csv"})");
  const auto sweep = read_sweep(document);
  ASSERT_TRUE(sweep.has_value()) << sweep.error().where << sweep.error().message;
  {
    auto store = SweepStore::open(file_, *sweep, {.version = "1", .host = "h", .workers = 1});
    ASSERT_TRUE(run_sweep(*sweep, *store, {})->complete());
  }
  const std::atomic<bool> stop = false;
  const auto points = read_points(file_, stop);
  ASSERT_TRUE(points.has_value()) << points.error().message;
  EXPECT_EQ(points->keys.at(0).values, (QStringList{"1 Tbit/s", "400 Gbit/s", "50 GB/s"}));
  // 1000, 400 and 400 Gbit/s.
  EXPECT_EQ(points->keys.at(0).rank, (std::vector<int>{2, 0, 1}));
}

TEST(SweepPoints, SaysHowManyOfAFileWereNotRead) {
  SweepPoints points;
  points.points.resize(3);
  points.counts = {4, 2, 1};
  EXPECT_EQ(points.unread(), 4);
  EXPECT_TRUE(points.summary().contains(QStringLiteral("the first 3 are shown")));
  points.points.resize(7);
  EXPECT_EQ(points.unread(), 0);
}

TEST_F(Swept, ATableSortsByValueAndSaysWhyAPointWasRefused) {
  answer({.axes = {{.key = "plan.tensor_parallel", .values = "2, 3, 4, 1"}}});
  SweepTable table;
  const QAbstractItemModelTester tester(&table, Mode::Fatal);
  table.set_points(run_.points());
  ASSERT_EQ(table.rowCount(), 4);
  const auto key_at = [&](int row) { return table.index(row, 0).data().toString(); };
  EXPECT_EQ(key_at(1), "3");
  EXPECT_EQ(table.index(1, 1).data().toString(), "refused");
  EXPECT_FALSE(table.index(1, table.columnCount() - 1).data().toString().isEmpty());
  int step = 0;
  while (table.headerData(step, Qt::Horizontal).toString() != sweep_figure_name(kStepTime)) ++step;
  const QPersistentModelIndex refused = table.index(1, 0);
  table.sort(step, Qt::DescendingOrder);
  EXPECT_EQ(refused.row(), 3);  // it has no step time
  const auto time_at = [&](int row) {
    const auto point = static_cast<std::size_t>(table.point_at(row));
    return run_.points()->points[point].row.figures[kStepTime];
  };
  EXPECT_GE(time_at(0), time_at(1));
  EXPECT_GE(time_at(1), time_at(2));
  table.sort(0);
  EXPECT_EQ(key_at(0), "2");  // in the order of the list
  table.sort(-1);
  EXPECT_EQ(table.row_of(table.point_at(2)), 2);
}

TEST_F(Swept, FiguresAreReadWithTheirUnits) {
  EXPECT_EQ(sweep_figure_text(kStepTime, 1.5), "1.500 s");
  EXPECT_EQ(sweep_figure_text(figure_at("peak_memory_bytes"), 1073741824), "1.000 GiB");
  EXPECT_EQ(sweep_figure_text(figure_at("mfu"), 0.4), "40.0 %");
  EXPECT_EQ(sweep_figure_text(figure_at("wall_time_s"), 172800), "2.000 d");
  EXPECT_EQ(sweep_figure_text(kStepTime, std::nan("")), QString::fromUtf8("–"));
}

TEST_F(Swept, AFileThatIsNoResultIsALine) {
  answer({.axes = {{.key = "plan.tensor_parallel", .values = "1, 2"}}});
  const auto before = run_.points();
  const auto opened = [&](const std::filesystem::path& file) {
    const QSignalSpy said(&run_, &SweepRun::said);
    run_.open(file);
    EXPECT_TRUE(wait_until([&] { return said.count() == 1; }));
    return run_.status().toStdString();
  };
  EXPECT_THAT(opened(written("no.sqlite", "no database")), testing::HasSubstr("no.sqlite: is no"));
  EXPECT_THAT(opened(gui_home() / "gone.sqlite"), testing::HasSubstr("gone.sqlite: does not"));
  EXPECT_EQ(run_.points(), before);
  EXPECT_THAT(opened(file_), testing::HasSubstr("2 of 2 points"));
  EXPECT_NE(run_.points(), before);
}

TEST_F(Swept, AFileOfAnotherSweepIsLeftAlone) {
  answer({.axes = {{.key = "plan.tensor_parallel", .values = "1, 2"}}});
  const QSignalSpy finished(&run_, &SweepRun::finished);
  run_.start(question({.axes = {{.key = "cluster.nodes", .values = "1, 2"}}}), file_);
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
  EXPECT_TRUE(run_.status().contains("sweep.sqlite")) << run_.status().toStdString();
  EXPECT_EQ(run_.points()->keys[0].name, "plan.tensor_parallel");
}

TEST_F(Swept, IsCheckedWhileItIsTyped) {
  const QSignalSpy checked(&run_, &SweepRun::checked);
  run_.check(question({.axes = {{.key = "plan.tensor_parallel", .values = "1, 2"}}}));
  run_.check(question({.axes = {{.key = "plan.tensor_parallel", .values = "1, 2, 4"}}}));
  ASSERT_TRUE(wait_until([&] { return checked.count() == 1; }));
  EXPECT_EQ(run_.verdict(), "3 points");
  run_.check(question({.axes = {{.key = "plan.tensors", .values = "1"}}}));
  ASSERT_TRUE(wait_until([&] { return checked.count() == 2; }));
  EXPECT_TRUE(run_.verdict().contains("tensors")) << run_.verdict().toStdString();
}

// A tensor-parallel degree of 3 does not divide 32 heads, and 32 exceeds the 16 devices. Points
// that the verdict calls refused are refused for the same reason when they are answered.
TEST_F(Swept, SaysBeforeItRunsHowManyPointsAreRefused) {
  const SweepDraft draft{.axes = {{.key = "plan.tensor_parallel", .values = "1, 3, 4, 32"}}};
  const QSignalSpy checked(&run_, &SweepRun::checked);
  run_.check(question(draft));
  ASSERT_TRUE(wait_until([&] { return checked.count() == 1; }));
  answer(draft);
  ASSERT_EQ(run_.points()->counts[2], 2);
  const std::string& note = run_.points()->points[1].row.note;
  EXPECT_TRUE(run_.verdict().startsWith(QStringLiteral("4 points, 2 refused; the first one: ")))
      << run_.verdict().toStdString();
  // In the row the reason begins with the name of the document.
  const std::string why = run_.verdict().section(QStringLiteral("one: "), 1).toStdString();
  EXPECT_TRUE(note.ends_with(why)) << note << "\n" << why;
  SweepTable table;
  table.set_points(run_.points());
  EXPECT_EQ(table.index(1, 1).data().toString(), QStringLiteral("refused"));
  EXPECT_EQ(table.index(1, 1).data(Qt::ToolTipRole).toString().toStdString(), note);
}

TEST(SweepAxes, AreEditedAsATable) {
  SweepAxes axes;
  const QAbstractItemModelTester tester(&axes, Mode::Fatal);
  axes.add_axis();
  axes.add_axis();
  const auto at = [&](int row, int column) { return axes.index(row, column); };
  EXPECT_TRUE(axes.setData(at(0, SweepAxes::key_column), "cluster.nodes"));
  EXPECT_TRUE(axes.setData(at(0, SweepAxes::values_column), " 1 .. 64 "));
  EXPECT_TRUE(axes.setData(at(0, SweepAxes::steps_column), 7));
  EXPECT_TRUE(axes.setData(at(0, SweepAxes::scale_column), Qt::Checked, Qt::CheckStateRole));
  EXPECT_TRUE(axes.setData(at(1, SweepAxes::together_column), Qt::Checked, Qt::CheckStateRole));
  EXPECT_EQ(axes.axes()[0].values, "1 .. 64");
  EXPECT_EQ(axes.axes()[0].steps, 7);
  EXPECT_EQ(axes.axes()[0].scale, Scale::geometric);
  EXPECT_TRUE(axes.axes()[1].with_previous);
  // A list has no steps, and the first key has no key above it.
  EXPECT_FALSE(axes.flags(at(1, SweepAxes::steps_column)) & Qt::ItemIsEditable);
  EXPECT_FALSE(axes.flags(at(0, SweepAxes::together_column)) & Qt::ItemIsUserCheckable);
  EXPECT_TRUE(at(1, SweepAxes::key_column)
                  .data(SweepAxes::choices_role)
                  .toStringList()
                  .contains("cluster.node.nic_bandwidth"));
  axes.remove_axis(0);
  EXPECT_EQ(axes.rowCount(), 1);
  axes.remove_axis(-1);
  EXPECT_EQ(axes.rowCount(), 1);
}

}  // namespace
}  // namespace trainyard
