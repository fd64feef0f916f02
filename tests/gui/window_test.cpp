// The real window without a display, used as people use it.
#include "tests/gui/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>
#include <QPointer>
#include <QProcess>
#include <QPushButton>
#include <QSettings>
#include <QSlider>
#include <QStandardPaths>
#include <QStatusBar>
#include <QTableView>
#include <QTest>
#include <QTimer>
#include <QTreeView>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "gui/charts/gantt.h"
#include "gui/main_window.h"
#include "gui/pages/accuracy_page.h"
#include "gui/pages/execute_page.h"
#include "gui/pages/explore_page.h"
#include "gui/pages/goodput_page.h"
#include "gui/pages/json_editor.h"
#include "gui/pages/plan_page.h"
#include "gui/pages/timeline_page.h"
#include "gui/presenters/accuracy_check.h"
#include "gui/presenters/document/form_model.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/run_lives.h"
#include "gui/presenters/text.h"
#include "scenarios/json/file.h"
#include "scenarios/question.h"
#include "scenarios/text/readable.h"
#include "scenarios/validation.h"
#include "scenarios/write/spans.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

TEST_F(Window, ABrokenLineIsMarkedAndMendedInTheText) {
  editor().go_to_line(5);
  editor().selectAll();
  QTest::keyClicks(&editor(), R"({ "trainyard": "scenario/1", "model": "llama-9" )");
  EXPECT_EQ(window_.document().question(), nullptr);
  EXPECT_EQ(editor().marked_line(), 1);
  editor().show_text(kSmall);
  window_.document().set_text(kSmall);
  EXPECT_NE(window_.document().question(), nullptr);
  EXPECT_EQ(editor().marked_line(), 0);
}

// The document is not called wrong, no page keeps the answer for another cluster, and the message
// names the commands that can answer it.
TEST_F(Window, GroupsOfUnlikeNodesAreRightAndSentToTheCommand) {
  ASSERT_TRUE(window_.open_file(std::filesystem::path(TRAINYARD_SOURCE) / "scenarios" / "cases" /
                                "llama-3.1-70b-64-a100-and-64-h100.json"));
  const auto is_honest = [](const QString& text) {
    return text.startsWith(QStringLiteral("The document is right")) &&
           text.contains(QStringLiteral("groups of unlike nodes")) &&
           text.contains(QStringLiteral("commands plan,"));
  };
  EXPECT_EQ(editor().marked_line(), 0);
  EXPECT_TRUE(is_honest(child<QLabel>("problem").text()));
  go_to_page(2);
  EXPECT_TRUE(is_honest(child<QLabel>("explored_plan").text()));
  EXPECT_FALSE(child<QSlider>("tensor_parallel").isVisible());
  go_to_page(3);
  QTest::mouseClick(&child<QPushButton>("search"), Qt::LeftButton);
  EXPECT_TRUE(is_honest(child_of<QLabel>(*window_.findChild<PlanPage*>(), "status").text()));
  go_to_page(5);
  EXPECT_TRUE(is_honest(child<QLabel>("loads").text()));
  ASSERT_TRUE(window_.open_file(gui_home() / "case.json"));
  go_to_page(2);
  EXPECT_TRUE(child<QSlider>("tensor_parallel").isVisible());
}

TEST_F(Window, AValueTypedIntoTheFormStandsInTheText) {
  auto& form = child<QTreeView>("form");
  auto& model = *qobject_cast<FormModel*>(form.model());
  const QModelIndex nodes =
      model.index_of("/cluster/nodes").siblingAtColumn(FormModel::value_column);
  form.scrollTo(nodes);
  form.setCurrentIndex(nodes);
  form.edit(nodes);
  auto* line = qobject_cast<QLineEdit*>(QApplication::focusWidget());
  if (line == nullptr) line = form.findChild<QLineEdit*>();
  ASSERT_NE(line, nullptr);
  line->selectAll();
  QTest::keyClicks(line, QStringLiteral("4"));
  QTest::keyClick(line, Qt::Key_Return);
  ASSERT_TRUE(wait_until([this] { return window_.document().modified(); }));
  EXPECT_EQ(window_.document().question()->job.job.cluster.nodes, 4);
  EXPECT_TRUE(editor().toPlainText().contains(QStringLiteral(R"("nodes": 4)")));
  QTest::keyClick(&editor(), Qt::Key_Z, Qt::ControlModifier);
  EXPECT_FALSE(window_.document().modified());
}

TEST_F(Window, WhatIsBeingTypedIsSaved) {
  go_to_page(1);
  auto& form = child<QTreeView>("form");
  auto& model = *qobject_cast<FormModel*>(form.model());
  const QModelIndex nodes =
      model.index_of("/cluster/nodes").siblingAtColumn(FormModel::value_column);
  form.setCurrentIndex(nodes);
  form.edit(nodes);
  auto* line = form.viewport()->findChild<QLineEdit*>();
  ASSERT_NE(line, nullptr);
  line->selectAll();
  QTest::keyClicks(line, QStringLiteral("4"));
  QTest::keyClick(&window_, Qt::Key_S, Qt::ControlModifier);
  EXPECT_EQ(window_.document().question()->job.job.cluster.nodes, 4);
  EXPECT_FALSE(window_.document().modified());
  // A user who types into the text can go on there.
  editor().setFocus();
  QTest::keyClick(&window_, Qt::Key_S, Qt::ControlModifier);
  EXPECT_TRUE(editor().hasFocus());
}

TEST_F(Window, WhatAnotherProgramWroteIsNotReplacedUnasked) {
  window_.document().set_text(std::string(kSmall) + "\n");
  const auto file = written("case.json", "{}");
  QString asked;
  when_asked<QMessageBox>([&](QMessageBox& box) {
    asked = box.text();
    box.button(QMessageBox::Cancel)->click();
  });
  QTest::keyClick(&window_, Qt::Key_S, Qt::ControlModifier);
  EXPECT_TRUE(asked.contains(QStringLiteral("another program"))) << asked.toStdString();
  EXPECT_EQ(*read_file(file), "{}");
  EXPECT_TRUE(window_.document().modified());
}

TEST_F(Window, PlansOfTheScenarioBeforeAChangeAreMarkedAndStayOutOfIt) {
  go_to_page(3);
  QTest::mouseClick(&child<QPushButton>("search"), Qt::LeftButton);
  auto& page = *window_.findChild<PlanPage*>();
  ASSERT_TRUE(wait_until([&] { return page.selected() != nullptr; }));
  auto& use = child_of<QPushButton>(page, "use");
  auto& status = child_of<QLabel>(page, "status");
  QTest::mouseClick(&use, Qt::LeftButton);
  EXPECT_TRUE(use.isEnabled());  // the next plan can be used too
  window_.document().set_text(kSmall);
  ASSERT_TRUE(window_.document().set_value("/cluster/nodes", "4").has_value());
  EXPECT_TRUE(status.text().startsWith(QStringLiteral("Of the scenario before the last change")));
  EXPECT_FALSE(use.isEnabled());
  for (const char* other : {"export", "simulate", "run"}) {
    EXPECT_FALSE(child_of<QPushButton>(page, other).isEnabled()) << other;
  }
  EXPECT_TRUE(child_of<QPushButton>(page, "explore").isEnabled());
  window_.document().undo();
  EXPECT_FALSE(status.text().startsWith(QStringLiteral("Of the scenario")));
  EXPECT_TRUE(use.isEnabled());
}

TEST_F(Window, AFilterSaysHowManyPlansItLeaves) {
  go_to_page(3);
  QTest::mouseClick(&child<QPushButton>("search"), Qt::LeftButton);
  auto& page = *window_.findChild<PlanPage*>();
  ASSERT_TRUE(wait_until([&] { return page.selected() != nullptr; }));
  auto& matches = child_of<QLabel>(page, "matches");
  EXPECT_FALSE(matches.isVisible());
  const QAbstractItemModel& shown = *child_of<QTableView>(page, "plans").model();
  const int all = shown.rowCount();
  const auto lines = page.findChildren<QLineEdit*>();
  const auto filter =
      std::ranges::find(lines, QStringLiteral("Filter of the plans"),
                        [](const QLineEdit* line) { return line->accessibleName(); });
  ASSERT_NE(filter, lines.end());
  (*filter)->setText(QStringLiteral("tp=2"));
  ASSERT_LT(shown.rowCount(), all);
  EXPECT_TRUE(matches.isVisible());
  EXPECT_EQ(matches.text(), QStringLiteral("%1 of %2").arg(shown.rowCount()).arg(all));
}

TEST_F(Window, NothingIsCalledTheBestWhereNothingFits) {
  const std::string large = R"({"trainyard": "scenario/1", "model": "llama-3.1-405b",
    "cluster": {"node": "dgx-h100-80gb", "nodes": 1},
    "training": {"global_batch": 64, "sequence_length": 4096}})";
  window_.document().set_text(large);
  go_to_page(3);
  QTest::mouseClick(&child<QPushButton>("search"), Qt::LeftButton);
  auto& page = *window_.findChild<PlanPage*>();
  ASSERT_TRUE(wait_until([&] { return page.selected() != nullptr; }));
  const QString status = child_of<QLabel>(page, "status").text();
  EXPECT_TRUE(status.contains(QStringLiteral("None fits"))) << status.toStdString();
  EXPECT_FALSE(status.contains(QStringLiteral("best"))) << status.toStdString();
  // The plans closest to fitting are priced, though the search itself priced none.
  EXPECT_FALSE(status.contains(QStringLiteral("0 plans priced"))) << status.toStdString();
  EXPECT_FALSE(child_of<QLabel>(page, "why").text().contains(QStringLiteral("best")));
}

// One search does not answer "how many nodes", and the page says so.
TEST_F(Window, SaysThatTheSizesOfADocumentAreNotCompared) {
  const std::string sizes = std::string(kSmall).insert(
      std::string(kSmall).rfind('}'), R"(, "planner": { "nodes": { "from": 1, "to": 2 } } )");
  window_.document().set_text(sizes);
  go_to_page(3);
  QTest::mouseClick(&child<QPushButton>("search"), Qt::LeftButton);
  auto& page = *window_.findChild<PlanPage*>();
  ASSERT_TRUE(wait_until([&] { return page.selected() != nullptr; }));
  const QString status = child_of<QLabel>(page, "status").text();
  EXPECT_TRUE(status.contains(QStringLiteral("asks for sizes"))) << status.toStdString();
  EXPECT_TRUE(status.contains(QStringLiteral("one search, on the 16 devices")));
  EXPECT_TRUE(status.contains(QStringLiteral("trainyard plan")));
}

TEST_F(Window, TheMenuOfRecentFilesIsThereOnceThereIsOne) {
  QSettings().remove(QStringLiteral("recent"));
  QMenu* file = window_.menuBar()->actions().first()->menu();
  QMenu* recent = nullptr;
  for (QAction* action : file->actions()) {
    if (action->menu() != nullptr) recent = action->menu();
  }
  ASSERT_NE(recent, nullptr);
  Q_EMIT file->aboutToShow();
  EXPECT_FALSE(recent->isEnabled());
  ASSERT_TRUE(window_.open_file(gui_home() / "case.json"));
  Q_EMIT file->aboutToShow();
  EXPECT_TRUE(recent->isEnabled());
  EXPECT_EQ(recent->actions().size(), 1);
}

TEST_F(Window, ASliderAnswersAtOnce) {
  go_to_page(2);
  auto& slider = child<QSlider>("tensor_parallel");
  const auto before = window_.explore().candidate();
  ASSERT_TRUE(before.has_value());
  const int was = slider.value();
  QTest::keyClick(&slider, was > 0 ? Qt::Key_Left : Qt::Key_Right);
  ASSERT_TRUE(window_.explore().candidate().has_value());
  EXPECT_NE(window_.explore().candidate()->plan.tensor_parallel, before->plan.tensor_parallel);
}

TEST_F(Window, AClickTakesWhatWouldHelp) {
  go_to_page(2);
  auto& slider = child<QSlider>("tensor_parallel");
  slider.setValue(slider.maximum());
  auto& list = child<QListWidget>("remedies");
  ASSERT_TRUE(wait_until([&] { return !window_.explore().remedies().plans.empty(); }));
  const Seconds before = window_.explore().candidate()->estimate.step_time;
  QApplication::processEvents();
  QTest::mouseClick(list.viewport(), Qt::LeftButton, {},
                    list.visualItemRect(list.item(0)).center());
  EXPECT_LT(window_.explore().candidate()->estimate.step_time, before);
  slider.setValue(slider.maximum());
  ASSERT_TRUE(wait_until([&] { return !window_.explore().remedies().plans.empty(); }));
  list.setFocus();
  list.setCurrentRow(0);
  QTest::keyClick(&list, Qt::Key_Return);
  EXPECT_LT(window_.explore().candidate()->estimate.step_time, before);
}

// From a model's own config to a plan in a file, step by step as a user would go.
TEST_F(Window, AConfigBecomesAPlanThatIsUnderstoodPlayedAndExported) {
  drop(written("config.json", R"({"model_type": "llama", "hidden_size": 4096,
    "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 24,
    "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16"})"));
  ASSERT_NE(window_.document().question(), nullptr);
  EXPECT_EQ(window_.document().question()->job.job.model.layers, 24);

  go_to_page(3);
  QTest::mouseClick(&child<QPushButton>("search"), Qt::LeftButton);
  auto& table = child<QTableView>("plans");
  ASSERT_TRUE(wait_until([&] { return table.model()->rowCount() > 1; }));
  auto& page = *window_.findChild<PlanPage*>();
  const Candidate winner = *page.selected();
  table.setFocus();
  QTest::keyClick(&table, Qt::Key_Down);
  const Candidate runner_up = *page.selected();
  EXPECT_GE(runner_up.estimate.step_time, winner.estimate.step_time);
  // The loss in the label is the difference of the two step times.
  const QString lost = qt(with_unit(runner_up.estimate.step_time - winner.estimate.step_time));
  EXPECT_TRUE(child<QLabel>("why").text().contains(unbroken(lost) + QStringLiteral(" slower")))
      << child<QLabel>("why").text().toStdString();

  QTest::mouseClick(&child_of<QPushButton>(page, "simulate"), Qt::LeftButton);
  Gantt& gantt = window_.timeline().gantt();
  ASSERT_TRUE(wait_until([&] { return gantt.scene() != nullptr; }));
  EXPECT_TRUE(gantt.isVisible());
  const double wide = gantt.view().per_pixel;
  gantt.setFocus();
  QTest::keyClick(&gantt, Qt::Key_W);
  EXPECT_LT(gantt.view().per_pixel, wide);
  for (const char* name : {"timeline.png", "timeline.svg", "timeline.json"}) {
    const auto file = gui_home() / name;
    window_.timeline().export_to(file);
    ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(file); })) << name;
    EXPECT_GT(std::filesystem::file_size(file), 1000u) << name;
    ASSERT_TRUE(wait_until([&] { return child<QPushButton>("export_timeline").isEnabled(); }));
  }

  go_to_page(3);
  const auto file = gui_home() / "exported" / "plan.json";
  std::filesystem::create_directories(file.parent_path());
  answer_file_dialog(file);
  QTest::mouseClick(&child_of<QPushButton>(page, "export"), Qt::LeftButton);
  const auto exported = read_question(file);
  ASSERT_TRUE(exported.has_value()) << exported.error().message;
  const Plan plan = *requested_plan(exported->scenario, exported->job);
  EXPECT_EQ(estimate(exported->job, plan).step_time, runner_up.estimate.step_time);

  QTest::mouseClick(&child_of<QPushButton>(page, "run"), Qt::LeftButton);
  auto& execute = *window_.findChild<ExecutePage*>();
  EXPECT_TRUE(execute.isVisible());
  EXPECT_EQ(window_.explore().candidate()->estimate.step_time, runner_up.estimate.step_time);
}

TEST_F(Window, AnOldTimelineSaysOfWhatItIs) {
  go_to_page(4);
  auto& summary = child<QLabel>("summary");
  QTest::mouseClick(&child_of<QPushButton>(window_.timeline(), "simulate"), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return window_.timeline().gantt().scene() != nullptr; }));
  EXPECT_TRUE(summary.text().startsWith(QStringLiteral("TP "))) << summary.text().toStdString();
  ASSERT_TRUE(window_.document().set_value("/plan", R"({"tensor_parallel": 4})").has_value());
  EXPECT_TRUE(summary.text().startsWith(QStringLiteral("Of another plan")))
      << summary.text().toStdString();
  window_.document().undo();
  EXPECT_TRUE(summary.text().startsWith(QStringLiteral("TP ")));
  auto& grain = *window_.timeline().findChild<QComboBox*>();
  grain.setCurrentIndex(1);
  EXPECT_TRUE(summary.text().startsWith(QStringLiteral("Played otherwise than is chosen now: TP ")))
      << summary.text().toStdString();
  grain.setCurrentIndex(0);
  EXPECT_TRUE(summary.text().startsWith(QStringLiteral("TP ")));
  QTest::mouseClick(&child_of<QPushButton>(window_.timeline(), "simulate"), Qt::LeftButton);
  QTest::mouseClick(&child<QPushButton>("cancel_simulation"), Qt::LeftButton);
  ASSERT_TRUE(wait_until(
      [&] { return child_of<QPushButton>(window_.timeline(), "simulate").isEnabled(); }));
  if (!summary.text().startsWith(QStringLiteral("TP "))) {  // else it ended first
    EXPECT_TRUE(summary.text().startsWith(QStringLiteral("Cancelled. Below is the one before. TP")))
        << summary.text().toStdString();
  }
}

TEST_F(Window, OldLivesOfTheRunSayOfWhatTheyAre) {
  ASSERT_TRUE(window_.document().set_value("/run", R"({"work": "2 days", "runs": 2})").has_value());
  go_to_page(8);
  auto& page = *window_.findChild<GoodputPage*>();
  auto& summary = child_of<QLabel>(page, "goodput");
  QTest::mouseClick(&child_of<QPushButton>(page, "simulate"), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return summary.text().startsWith(QStringLiteral("Goodput")); }));
  window_.explore().choose(QStringLiteral("zero_stage"), 0);
  EXPECT_TRUE(summary.text().startsWith(QStringLiteral("Of another plan")))
      << summary.text().toStdString();
}

// The interval is much too short; the best one that simulation finds replaces it.
TEST_F(Window, TheBestIntervalBetweenCheckpointsGoesIntoTheScenario) {
  auto& document = window_.document();
  ASSERT_TRUE(document.set_value("/run", R"({"work": "9 days", "runs": 4})").has_value());
  ASSERT_TRUE(document.set_value("/reliability", R"({"device_mtbf": "100 days"})").has_value());
  ASSERT_TRUE(document.set_value("/checkpoint", R"({"interval": "1 min"})").has_value());
  go_to_page(8);
  auto& page = *window_.findChild<GoodputPage*>();
  auto& interval = child_of<QLabel>(page, "interval");
  auto& use = child_of<QPushButton>(page, "use_interval");
  EXPECT_FALSE(use.isEnabled());
  QTest::mouseClick(&child_of<QPushButton>(page, "simulate"), Qt::LeftButton);
  const auto& lives = *window_.findChild<RunLives*>();
  ASSERT_TRUE(wait_until([&] { return !lives.busy() && !lives.is_tuning(); }));
  ASSERT_TRUE(use.isEnabled()) << interval.text().toStdString();
  EXPECT_TRUE(interval.text().startsWith(QStringLiteral("A checkpoint every 1.000 min; Young's")))
      << interval.text().toStdString();
  EXPECT_TRUE(interval.text().contains(QStringLiteral("the best by simulation ")));
  const auto best = lives.best_interval();
  ASSERT_TRUE(best.has_value());
  EXPECT_GT(best->interval, Seconds(60));
  QTest::mouseClick(&use, Qt::LeftButton);
  ASSERT_NE(document.question(), nullptr);
  const auto taken = document.question()->scenario.checkpoint.interval;
  ASSERT_TRUE(taken.has_value());
  EXPECT_NEAR(*taken / best->interval, 1, 0.01);
  EXPECT_FALSE(use.isEnabled());  // the answer is of the scenario before
}

TEST_F(Window, ALongSearchIsCancelledAndShowsWhatItHas) {
  ASSERT_TRUE(window_.open_file(example("llama-3.1-405b-16384-h100.json")));
  go_to_page(3);
  QTest::mouseClick(&child<QPushButton>("search"), Qt::LeftButton);
  auto& cancel = child<QPushButton>("cancel");
  EXPECT_TRUE(cancel.isEnabled());
  QTest::mouseClick(&cancel, Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return child<QPushButton>("search").isEnabled(); }));
  EXPECT_FALSE(cancel.isEnabled());
  EXPECT_TRUE(child<QLabel>("status").text().startsWith(QStringLiteral("Cancelled")));
}

TEST_F(Window, ADroppedScenarioIsOpened) {
  drop(example("llama-3.1-405b-2048-h100.json"));
  ASSERT_NE(window_.document().question(), nullptr);
  EXPECT_EQ(window_.document().question()->job.job.cluster.devices(), 2048);
  EXPECT_FALSE(window_.document().modified());
}

// Each is shown on its page, and the scenario stays.
TEST_F(Window, ADroppedTraceOrMeasuredRunIsShownOnItsPage) {
  drop(written("dropped-trace.json",
               span_trace({{"rank 0", "compute", "linear, forward", Seconds(0), Seconds(1)}})));
  ASSERT_TRUE(wait_until([&] { return window_.timeline().gantt().scene() != nullptr; }));
  EXPECT_TRUE(window_.timeline().isVisible());
  const std::string run = std::string(kSmall).insert(std::string(kSmall).rfind('}'),
                                                     R"(, "plan": { "tensor_parallel": 8 },
    "measured": { "step_time": "2 s", "source": "made up" } )");
  drop(written("dropped-runs.json", "[" + run + "," + run + "]"));
  ASSERT_TRUE(wait_until([&] { return window_.accuracy().report() != nullptr; }));
  EXPECT_TRUE(window_.findChild<AccuracyPage*>()->isVisible());
  EXPECT_EQ(window_.accuracy().report()->rows.size(), 2u);
  EXPECT_FALSE(window_.document().modified());
}

TEST_F(Window, UnsavedWorkIsAskedForBeforeItCloses) {
  window_.document().set_text(std::string(kSmall) + "\n");
  QString asked;
  when_asked<QMessageBox>([&](QMessageBox& box) {
    asked = box.text();
    box.button(QMessageBox::Cancel)->click();
  });
  EXPECT_FALSE(window_.close());
  EXPECT_TRUE(asked.contains(QStringLiteral("case.json")));
  ASSERT_TRUE(window_.save_to(gui_home() / "case.json"));
  EXPECT_TRUE(window_.close());
}

// Another page is in front, which shows nothing of the scenario itself.
TEST_F(Window, AFileThatIsOpenedIsNamed) {
  go_to_page(6);
  ASSERT_TRUE(window_.open_file(written("named.json", kSmall)));
  EXPECT_TRUE(window_.statusBar()->currentMessage().contains(QStringLiteral("named.json")));
}

TEST_F(Window, AFileThatIsOpenedIsAmongTheRecentOnes) {
  const QStringList recent = QSettings().value(QStringLiteral("recent")).toStringList();
  ASSERT_FALSE(recent.isEmpty());
  EXPECT_TRUE(recent.first().endsWith(QStringLiteral("case.json")));
}

// The expected lines are those of the corpus, which the test of the reader checks.
TEST_F(Window, ShowsTheLineOfEveryDocumentOfAStrangerAndGoesOn) {
  const auto bad = std::filesystem::path(TRAINYARD_SOURCE) / "tests" / "scenarios" / "bad";
  std::ifstream expected(bad / "expected.txt");
  int shown = 0;
  for (std::string line; std::getline(expected, line);) {
    const auto name = std::string_view(line).substr(0, line.find(": "));
    // A file that cannot be shown at all (too large, not UTF-8) is named in the status line.
    if (!window_.open_file(bad / name)) continue;
    const DocumentProblem& problem = window_.document().problem();
    EXPECT_FALSE(problem.message.isEmpty()) << line;
    const std::size_t at = line.find(": line ");
    if (at == std::string::npos) continue;
    EXPECT_EQ(problem.line, std::atoi(line.c_str() + at + 7)) << line;
    EXPECT_EQ(editor().marked_line(), problem.line) << line;
    ++shown;
  }
  EXPECT_GT(shown, 20);
  EXPECT_TRUE(window_.open_file(gui_home() / "case.json"));
  EXPECT_NE(window_.document().question(), nullptr);
}

// The child is this same test; it edits and kills itself.
TEST(Crash, UnsavedWorkIsOfferedByTheNextWindow) {
  constexpr const char* kChild = "TRAINYARD_GUI_CHILD";
  if (qEnvironmentVariableIsSet(kChild)) {
    MainWindow window;
    window.open_file(gui_home() / "crash.json");
    window.document().set_text("{ \"half\": true }");
    const auto is_kept = [] {  // the window saves by itself after a moment
      const QString data = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
      return !QDir(data + QStringLiteral("/recovery"))
                  .entryList({QStringLiteral("*.autosave")})
                  .isEmpty();
    };
    if (!wait_until(is_kept)) std::exit(1);
    std::raise(SIGKILL);
  }
  written("crash.json", kSmall);
  QProcess child;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert(QLatin1String(kChild), QStringLiteral("1"));
  child.setProcessEnvironment(environment);
  child.start(QApplication::applicationFilePath(), {QStringLiteral("--gtest_filter=Crash.*")});
  ASSERT_TRUE(child.waitForFinished(120000));
  ASSERT_EQ(child.exitStatus(), QProcess::CrashExit);
  written("crash.json", "{}");  // by another program, before the next window opens
  MainWindow window;
  window.open_file(gui_home() / "crash.json");
  EXPECT_FALSE(window.document().modified());
  ASSERT_TRUE(window.offer_recovery());
  QPointer<QMessageBox> box = window.findChild<QMessageBox*>(QStringLiteral("recovery"));
  ASSERT_NE(box, nullptr);
  QTest::keyClick(box, Qt::Key_Escape);  // decides nothing
  ASSERT_TRUE(wait_until([&] { return !box; }, std::chrono::seconds(10)));
  EXPECT_FALSE(window.document().modified());
  ASSERT_TRUE(window.offer_recovery());
  box = window.findChild<QMessageBox*>(QStringLiteral("recovery"));
  ASSERT_NE(box, nullptr);
  box->buttons().first()->click();
  EXPECT_EQ(window.document().text(), "{ \"half\": true }");
  EXPECT_TRUE(window.document().modified());
  EXPECT_TRUE(window.document().changed_on_disk());
  EXPECT_FALSE(window.offer_recovery());
}

}  // namespace
}  // namespace trainyard
