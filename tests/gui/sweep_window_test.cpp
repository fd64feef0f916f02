// The Sweep page of the real window, used as a user would.
#include <gmock/gmock.h>

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <algorithm>
#include <cmath>

#include "gui/charts/heat_map.h"
#include "gui/charts/line_chart.h"
#include "gui/pages/sweep_form.h"
#include "gui/pages/sweep_page.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/sweep/sweep_run.h"
#include "scenarios/sweep/results/result_file.h"
#include "scenarios/sweep/run_sweep.h"
#include "tests/gui/window.h"

namespace trainyard {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class SweepWindow : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    go_to_page(7);
    ASSERT_TRUE(page().isVisible());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  SweepPage& page() { return *window_.findChild<SweepPage*>(); }
  SweepRun& run() { return *window_.findChild<SweepRun*>(); }
  HeatMap& heat_map() { return *page().findChild<HeatMap*>(); }
  std::string status() { return child_of<QLabel>(page(), "sweep_status").text().toStdString(); }
  // Waits until the verdict is that of the present form; the one before may read the same.
  std::string verdict() {
    EXPECT_TRUE(wait_until([this] { return !run().is_checking(); }));
    return child_of<QLabel>(page(), "verdict").text().toStdString();
  }
  void press(const char* button) {
    QTest::mouseClick(&child_of<QPushButton>(page(), button), Qt::LeftButton);
  }
  // Types into a cell of the table of axes.
  void type(int row, int column, const QString& text) {
    auto& table = child_of<QTableView>(page(), "axes");
    const QModelIndex cell = table.model()->index(row, column);
    table.setCurrentIndex(cell);
    table.edit(cell);
    // Finds the editor of this cell. The focus may be in another line, and the editor of the
    // previous cell lives on for a moment, hidden.
    const auto lines = table.viewport()->findChildren<QLineEdit*>();
    const auto line =
        std::ranges::find_if(lines, [](const QLineEdit* one) { return one->isVisible(); });
    ASSERT_NE(line, lines.end());
    const QPointer<QLineEdit> typing = *line;
    typing->selectAll();
    QTest::keyClicks(typing, text);
    QTest::keyClick(typing, Qt::Key_Return);
    ASSERT_TRUE(wait_until([&] { return !typing || !typing->isVisible(); }));
    ASSERT_EQ(cell.data(Qt::EditRole).toString(), text);
  }
  void run_into(const std::string& name) {
    answer_file_dialog(folder_ / name);
    press("sweep_run");
  }
  void wait_for_the_end() {
    ASSERT_TRUE(wait_until([this] { return !run().busy(); }));
  }

  const std::filesystem::path folder_ = gui_home() / "sweeps";
};

// A saved sweep document answered as `trainyard sweep` answers it.
std::vector<PointRow> rows_of_document(const std::filesystem::path& document,
                                       const std::filesystem::path& results) {
  const auto sweep = read_sweep(document);
  EXPECT_TRUE(sweep.has_value()) << sweep.error().where << sweep.error().message;
  {
    auto store = SweepStore::open(results, *sweep, {.version = "1", .host = "h", .workers = 1});
    EXPECT_TRUE(run_sweep(*sweep, *store, {})->complete());
  }
  std::vector<PointRow> rows;
  auto file = ResultFile::open(results);
  EXPECT_TRUE(file->each({},
                         [&](const PointRow& row) {
                           rows.push_back(row);
                           return true;
                         })
                  .has_value());
  return rows;
}

// If the scenario gives `data_parallel`, other degrees have no legal plan, so none are proposed.
TEST_F(SweepWindow, WhatIsOfferedFirstIsLegal) {
  ASSERT_TRUE(window_.open_file(example("llama-3.1-405b-16384-h100.json")));
  ASSERT_EQ(verdict(), "9 points");
  type(0, SweepAxes::values_column, QStringLiteral("4096, 8192"));
  ASSERT_EQ(verdict(), "6 points");
  // Axes that the user typed stay.
  ASSERT_TRUE(window_.open_file(written("case.json", kSmall)));
  ASSERT_EQ(verdict(), "6 points");
}

// The planner finds the plan of groups of unlike nodes, so no key of a plan is proposed.
TEST_F(SweepWindow, WhatIsOfferedForUnlikeNodesIsAnswered) {
  ASSERT_TRUE(window_.open_file(std::filesystem::path(TRAINYARD_SOURCE) / "scenarios" / "cases" /
                                "llama-3.1-70b-64-a100-and-64-h100.json"));
  ASSERT_EQ(verdict(), "3 points");
}

TEST_F(SweepWindow, TwoKeysAreVariedAndTheMapIsWhatTheCommandAnswers) {
  type(0, SweepAxes::key_column, QStringLiteral("plan.tensor_parallel"));
  type(0, SweepAxes::values_column, QStringLiteral("2, 4, 8"));
  type(1, SweepAxes::key_column, QStringLiteral("cluster.node.nic_bandwidth"));
  type(1, SweepAxes::values_column, QStringLiteral("100 Gbit/s, 400 Gbit/s"));
  ASSERT_EQ(verdict(), "6 points");
  answer_file_dialog(folder_ / "sweep.json");
  press("sweep_save");
  ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(folder_ / "sweep.json"); }));
  run_into("results.sqlite");
  EXPECT_TRUE(child_of<QPushButton>(page(), "sweep_cancel").isEnabled());
  wait_for_the_end();
  EXPECT_THAT(status(), HasSubstr("6 of 6 points"));

  const auto rows = rows_of_document(folder_ / "sweep.json", folder_ / "other.sqlite");
  ASSERT_EQ(rows.size(), 6u);
  const ChartCells& cells = heat_map().cells();
  EXPECT_EQ(cells.x, (QStringList{"2", "4", "8"}));
  EXPECT_EQ(cells.y, (QStringList{"100 Gbit/s", "400 Gbit/s"}));
  int compared = 0;
  for (std::size_t x = 0; x < 3; ++x) {
    for (std::size_t y = 0; y < 2; ++y) {
      const PointRow& row = rows[2 * x + y];
      if (row.status != PointStatus::done) {
        EXPECT_TRUE(std::isnan(cells.values[y][x])) << x << ", " << y;
        continue;
      }
      EXPECT_EQ(cells.values[y][x], row.figure("step_time_s")) << x << ", " << y;
      ++compared;
    }
  }
  EXPECT_GE(compared, 4);
}

TEST_F(SweepWindow, AnyFigureOverAnyKeysIsShownChosenAndCopied) {
  run_into("results.sqlite");
  wait_for_the_end();
  auto& figure = child_of<QComboBox>(page(), "figure");
  const int mfu = figure.findText(QStringLiteral("MFU"));
  ASSERT_GE(mfu, 0) << status();
  figure.setCurrentIndex(mfu);
  child_of<QComboBox>(page(), "key_x").setCurrentIndex(1);
  child_of<QComboBox>(page(), "key_y").setCurrentIndex(0);
  EXPECT_EQ(heat_map().cells().x_name, "plan.pipeline_parallel");
  EXPECT_EQ(heat_map().cells().y_name, "plan.tensor_parallel");
  EXPECT_EQ(heat_map().cells().value.name, "MFU");
  // A click on a cell chooses its point in the table.
  QTest::mouseClick(&heat_map(), Qt::LeftButton, {},
                    heat_map().centre_of({.column = 0, .row = 2}).toPoint());
  const QModelIndex row = child_of<QTableView>(page(), "points").currentIndex();
  EXPECT_EQ(row.siblingAtColumn(0).data().toString(), "4");
  EXPECT_EQ(row.siblingAtColumn(1).data().toString(), "1");
  QTest::keyClick(&heat_map(), Qt::Key_Up);
  EXPECT_EQ(child_of<QTableView>(page(), "points").currentIndex().siblingAtColumn(0).data(), "2");
  QTest::keyClick(&heat_map(), Qt::Key_C, Qt::ControlModifier);
  EXPECT_TRUE(QApplication::clipboard()->text().startsWith(
      QStringLiteral("plan.tensor_parallel\\plan.pipeline_parallel\t1\t2")));
  child_of<QComboBox>(page(), "picture").setCurrentIndex(1);
  auto& lines = *page().findChild<LineChart*>();
  EXPECT_TRUE(lines.isVisible());
  EXPECT_EQ(lines.data_text(), heat_map().data_text());
  EXPECT_FALSE(lines.grab().isNull());
  child_of<QComboBox>(page(), "key_y").setCurrentIndex(2);  // the entry "nothing else"
  EXPECT_EQ(lines.cells().values.size(), 1u);
}

TEST_F(SweepWindow, ALongSweepFillsIsCancelledAndGoesOn) {
  type(0, SweepAxes::key_column, QStringLiteral("training.global_batch"));
  type(0, SweepAxes::values_column, QStringLiteral("64 .. 64000"));
  child_of<QTableView>(page(), "axes")
      .model()
      ->setData(child_of<QTableView>(page(), "axes").model()->index(0, SweepAxes::steps_column),
                40);
  type(1, SweepAxes::values_column, QStringLiteral("1, 2"));
  auto& evaluate = child_of<QComboBox>(page(), "evaluate");
  evaluate.setCurrentIndex(evaluate.findText(QStringLiteral("the best plan")));
  run_into("long.sqlite");
  // Every value has its place before its point is answered.
  ASSERT_TRUE(wait_until([&] { return run().points() != nullptr; }));
  EXPECT_EQ(run().points()->keys[0].values.size(), 40);
  press("sweep_cancel");
  wait_for_the_end();
  EXPECT_TRUE(child_of<QPushButton>(page(), "sweep_run").isEnabled());
  EXPECT_FALSE(child_of<QPushButton>(page(), "sweep_cancel").isEnabled());
  const std::int64_t kept = run().points()->answered;
  if (kept < 80) {
    EXPECT_THAT(status(), HasSubstr("Cancelled"));
  }
  run_into("long.sqlite");
  press("sweep_cancel");
  wait_for_the_end();
  EXPECT_GE(run().points()->answered, kept);
}

TEST_F(SweepWindow, ResultsAreDroppedAndABrokenFileIsALine) {
  run_into("results.sqlite");
  wait_for_the_end();
  const auto before = run().points();
  go_to_page(1);
  drop(written("broken.sqlite", "SQLite format 3 and then nothing"));
  EXPECT_TRUE(page().isVisible());
  ASSERT_TRUE(wait_until([&] { return status().find("broken.sqlite: ") != std::string::npos; }));
  EXPECT_EQ(run().points(), before);
  answer_file_dialog(folder_ / "results.sqlite");
  press("sweep_open");
  ASSERT_TRUE(wait_until([&] { return run().points() != before; }));
  EXPECT_EQ(run().points()->points.size(), before->points.size());
}

TEST_F(SweepWindow, ResultsOfAScenarioBeforeAChangeAreMarked) {
  run_into("results.sqlite");
  wait_for_the_end();
  const std::string result = status();
  ASSERT_TRUE(window_.document().set_value("/cluster/nodes", "4").has_value());
  EXPECT_EQ(status(), "Of the scenario before the last change: " + result);
  window_.document().undo();
  EXPECT_EQ(status(), result);
  ASSERT_TRUE(window_.open_file(example("llama-3.1-405b-2048-h100.json")));
  EXPECT_EQ(status(), "Of another scenario than the one that is open: " + result);
  answer_file_dialog(folder_ / "results.sqlite");  // its points belong to no open scenario
  press("sweep_open");
  ASSERT_TRUE(wait_until([&] { return status() == result; })) << status();
}

// The message is about the file, not about the points, which stay and keep their mark.
TEST_F(SweepWindow, AFileThatCannotBeOpenedIsNotOfTheScenarioBefore) {
  run_into("results.sqlite");
  wait_for_the_end();
  const std::string result = status();
  ASSERT_TRUE(window_.document().set_value("/cluster/nodes", "4").has_value());
  drop(written("broken.sqlite", "SQLite format 3 and then nothing"));
  ASSERT_TRUE(wait_until([&] { return status().find("broken.sqlite: ") != std::string::npos; }));
  EXPECT_THAT(status(), Not(StartsWith("Of the scenario")));
  EXPECT_THAT(status(), EndsWith("\nBelow: Of the scenario before the last change: " + result));
}

TEST_F(SweepWindow, SaysWhyThereIsNoPictureWhereEveryPointIsRefused) {
  type(0, SweepAxes::values_column, QStringLiteral("3, 5"));  // neither divides 32 heads
  type(1, SweepAxes::values_column, QStringLiteral("1"));
  ASSERT_THAT(verdict(), StartsWith("2 points, 2 refused"));
  run_into("refused.sqlite");
  wait_for_the_end();
  EXPECT_THAT(heat_map().cells().why_none.toStdString(),
              HasSubstr(run().points()->points[0].row.note));
}

// 8 B parameters under plain data parallelism with sequences that no device can hold.
TEST_F(SweepWindow, SaysWhatToDoWhereTheMapIsMadeOfDashes) {
  type(0, SweepAxes::key_column, QStringLiteral("training.sequence_length"));
  type(0, SweepAxes::values_column, QStringLiteral("262144, 524288"));
  type(1, SweepAxes::values_column, QStringLiteral("1"));
  run_into("dashes.sqlite");
  wait_for_the_end();
  ASSERT_THAT(status(), HasSubstr("2 do not fit"));
  EXPECT_FALSE(heat_map().cells().range().has_value());
  EXPECT_THAT(heat_map().cells().why_none.toStdString(), HasSubstr("Untick “of what fits”"));
  page().findChild<QCheckBox*>()->click();
  EXPECT_TRUE(heat_map().cells().range().has_value());
}

TEST_F(SweepWindow, SaysWhatIsWrongWhileItIsTyped) {
  type(0, SweepAxes::values_column, QStringLiteral("2, two"));
  ASSERT_THAT(verdict(), HasSubstr("two"));
  press("add_key");
  EXPECT_EQ(child_of<QTableView>(page(), "axes").model()->rowCount(), 3);
  press("remove_key");
  EXPECT_EQ(child_of<QTableView>(page(), "axes").model()->rowCount(), 2);
  run_into("none.sqlite");
  wait_for_the_end();
  EXPECT_THAT(status(), HasSubstr("two"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none.sqlite"));
}

}  // namespace
}  // namespace trainyard
