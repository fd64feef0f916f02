// Real runs of `trainyard` on ranks of this machine, started as the window starts them.
#include "gui/presenters/execution/execution.h"

#include <gtest/gtest.h>

#include <QLabel>
#include <QPlainTextEdit>
#include <QProcess>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableView>
#include <QTest>
#include <algorithm>
#include <fstream>

#include "gui/charts/gantt.h"
#include "gui/main_window.h"
#include "gui/pages/execute_page.h"
#include "gui/pages/timeline_page.h"
#include "gui/presenters/accuracy_check.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/text.h"
#include "scenarios/json/file.h"
#include "scenarios/validation.h"
#include "scenarios/write/profile.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

// The `trainyard` that was built is on PATH, like an installed one.
class Executed : public testing::Test {
 protected:
  void SetUp() override {
    before_ = qgetenv("PATH");
    const auto folder = std::filesystem::path(TRAINYARD_PROGRAM).parent_path();
    qputenv("PATH", QByteArray::fromStdString(folder.string()) + ":" + before_);
  }
  void TearDown() override { qputenv("PATH", before_); }

  static std::string tiny() { return *read_file(example("tiny-llama-8-ranks.json")); }
  static RunOrder order(int steps) {
    return {.name = QStringLiteral("tiny"), .ranks = 2, .steps = steps};
  }

 private:
  QByteArray before_;
};

class ExecutedInAWindow : public Executed {
 protected:
  void SetUp() override {
    Executed::SetUp();
    window_ = std::make_unique<MainWindow>();
    ASSERT_TRUE(window_->open_file(example("tiny-llama-8-ranks.json")));
    window_->show();
    page_ = window_->findChild<ExecutePage*>();
    ASSERT_NE(page_, nullptr);
    window_->show_page(page_);
  }
  template <typename W>
  W& child(const char* name) {
    return *page_->findChild<W*>(QLatin1String(name));
  }
  QString summary() { return child<QLabel>("execution").text(); }
  void press(const char* name) {
    auto& button = child<QPushButton>(name);
    ASSERT_TRUE(button.isEnabled()) << name;
    QTest::mouseClick(&button, Qt::LeftButton);
  }

  std::unique_ptr<MainWindow> window_;
  ExecutePage* page_ = nullptr;
};

TEST_F(ExecutedInAWindow, ARunIsWatchedAndGoesOnToTimelineAndAccuracy) {
  auto& table = child<QTableView>("ranks_table");
  EXPECT_FALSE(child<QPushButton>("show_timeline").isEnabled());
  press("run");
  EXPECT_FALSE(child<QPushButton>("run").isEnabled());
  ASSERT_TRUE(wait_until([&] { return child<QPushButton>("run").isEnabled(); }));
  EXPECT_TRUE(summary().startsWith(QStringLiteral("Done in"))) << summary().toStdString();
  EXPECT_TRUE(window_->execution().is_complete());
  ASSERT_EQ(table.model()->rowCount(), 2);
  EXPECT_EQ(table.model()->index(1, 2).data().toString(), QStringLiteral("done"));
  EXPECT_EQ(table.model()->index(1, 3).data().toString(), QStringLiteral("4 of 4"));
  const QString log = child<QPlainTextEdit>("log").toPlainText();
  for (const char* line : {"trainyard run tiny llama on 8 ranks", "scaled down: ", "step 4: ",
                           "By what contributes most to the difference"}) {
    EXPECT_TRUE(log.contains(QLatin1String(line))) << line << "\n" << log.toStdString();
  }

  press("show_timeline");
  Gantt& gantt = window_->timeline().gantt();
  ASSERT_TRUE(wait_until([&] { return gantt.scene() != nullptr; }));
  EXPECT_TRUE(gantt.isVisible());
  EXPECT_TRUE(gantt.scene()->compares());

  window_->show_page(page_);
  press("show_accuracy");
  ASSERT_TRUE(wait_until([&] { return window_->accuracy().report() != nullptr; }));
  const ValidationReport& report = *window_->accuracy().report();
  const auto profile = read_profile(window_->execution().profile());
  ASSERT_TRUE(profile);
  ASSERT_GT(report.rows.size(), 10u);
  EXPECT_EQ(report.rows.front().measured, mean_step_time(*profile));
  EXPECT_EQ(report.rows.front().predicted, profile->predicted_step_time);
}

TEST_F(ExecutedInAWindow, ARunIsCancelledAndKeepsWhatItMeasured) {
  child<QSpinBox>("steps").setValue(100000);
  press("run");
  ASSERT_TRUE(wait_until([&] { return window_->execution().progress() > 0; }));
  press("cancel_run");
  ASSERT_TRUE(wait_until([&] { return child<QPushButton>("run").isEnabled(); }));
  EXPECT_TRUE(summary().startsWith(QStringLiteral("Cancelled after"))) << summary().toStdString();
  const auto profile = read_profile(window_->execution().profile());
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->failure, "interrupted");
  EXPECT_FALSE(profile->steps.empty());
  EXPECT_FALSE(window_->execution().is_complete());

  // A save replaces the file by a complete new one: a hard link to the former file keeps its text.
  const auto former = written("saved-profile.json", "the former");
  const auto held = gui_home() / "held-profile.json";
  std::filesystem::create_hard_link(former, held);
  ASSERT_TRUE(window_->execution().save(former));
  EXPECT_EQ(*read_file(former), *read_file(window_->execution().profile()));
  EXPECT_EQ(*read_file(held), "the former");
  const auto nowhere = window_->execution().save("/nowhere/profile.json");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().where, "/nowhere/profile.json");
}

// The page shows the progress of a calibration, from a few percent to the end.
TEST_F(ExecutedInAWindow, ACalibrationSaysHowFarItIs) {
  child<QSpinBox>("limit").setValue(2);
  auto& bar = child<QProgressBar>("progress");
  std::vector<double> shown;
  QObject::connect(&window_->execution(), &Execution::looked, [&] {
    EXPECT_GT(bar.maximum(), 0);  // the progress is known
    shown.push_back(double(bar.value()) / std::max(1, bar.maximum()));
  });
  press("calibrate");
  ASSERT_TRUE(wait_until([&] { return child<QPushButton>("run").isEnabled(); }));
  EXPECT_TRUE(window_->execution().is_complete()) << summary().toStdString();
  ASSERT_GT(shown.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(shown));
  EXPECT_LT(shown.front(), 0.2);  // while collectives are measured
  EXPECT_GT(shown.back(), 0.5);
  EXPECT_FALSE(window_->execution().device().empty());
  EXPECT_FALSE(child<QPlainTextEdit>("log").toPlainText().contains(QLatin1String("\"progress\"")));
}

TEST_F(ExecutedInAWindow, ABrokenScenarioSaysItsLineAndStartsNothing) {
  QSignalSpy started(&window_->execution(), &Execution::started);
  window_->document().set_text("{ \"trainyard\": \"scenario/1\",\n  \"model\": }");
  press("run");
  EXPECT_TRUE(summary().startsWith(QStringLiteral("Line 2: "))) << summary().toStdString();
  EXPECT_TRUE(started.isEmpty());
}

// The child cannot read the scenario. Its message is the answer, with the user's name for the file.
TEST_F(Executed, WhatTheProgramSaysOfAScenarioIsTheAnswer) {
  Execution execution;
  execution.run("{ \"trainyard\": \"scenario/1\",\n \"model\": }", order(1));
  ASSERT_TRUE(wait_until([&] { return !execution.busy(); }));
  EXPECT_TRUE(execution.failed());
  EXPECT_TRUE(execution.summary().contains(QStringLiteral("tiny: line 2")))
      << execution.summary().toStdString();
  EXPECT_TRUE(execution.profile().empty());
}

int processes_of(const std::filesystem::path& scenario) {
  QProcess list;
  list.start(QStringLiteral("pgrep"),
             {QStringLiteral("-c"), QStringLiteral("-f"), path_text(scenario)});
  EXPECT_TRUE(list.waitForFinished());
  return list.readAllStandardOutput().trimmed().toInt();
}

TEST_F(Executed, NothingIsLeftWhenTheWindowGoes) {
  std::filesystem::path scenario;
  {
    Execution execution;
    execution.run(tiny(), order(100000));
    ASSERT_TRUE(wait_until([&] { return execution.progress() > 0; }));
    scenario = execution.scenario_file();
    EXPECT_GE(processes_of(scenario), 3);  // the supervisor and two ranks
  }
  EXPECT_EQ(processes_of(scenario), 0);
}

TEST(Execution, SaysInALineWhatTheMachineLacks) {
  const QByteArray before = qgetenv("PATH");
  qputenv("PATH", "/nowhere");
  const Execution nothing;
  EXPECT_FALSE(nothing.can_start());
  EXPECT_TRUE(nothing.lacking().startsWith(QStringLiteral("The program trainyard")));
  const auto folder = std::filesystem::path(TRAINYARD_PROGRAM).parent_path().string();
  qputenv("PATH", folder.c_str());
  const Execution alone;
  EXPECT_TRUE(alone.can_start());
  EXPECT_TRUE(alone.lacking().contains(QStringLiteral("no MPI")));
  qputenv("PATH", before);
}

}  // namespace
}  // namespace trainyard
