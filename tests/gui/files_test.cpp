// Files of every kind in the real window: opened, watched and saved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QLabel>
#include <QMessageBox>
#include <QPushButton>
#include <QStatusBar>
#include <QTableView>
#include <fstream>

#include "gui/charts/gantt.h"
#include "gui/pages/accuracy_page.h"
#include "gui/pages/save_dialog.h"
#include "gui/pages/sweep_page.h"
#include "gui/pages/timeline_page.h"
#include "gui/presenters/accuracy_check.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/sweep/sweep_axes.h"
#include "scenarios/json/file.h"
#include "scenarios/question.h"
#include "scenarios/sweep/sweep.h"
#include "scenarios/write/spans.h"
#include "tests/gui/window.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class Files : public Window {
 protected:
  void open_by_dialog(const fs::path& file) {
    answer_file_dialog(file);
    QTest::keyClick(&window_, Qt::Key_O, Qt::ControlModifier);
  }
  QMessageBox* box(const char* name) {
    return window_.findChild<QMessageBox*>(QLatin1String(name));
  }
  void press(QMessageBox& box, const char* text) {
    for (QAbstractButton* button : box.buttons()) {
      if (button->text().remove(QLatin1Char('&')) == QLatin1String(text)) return button->click();
    }
    FAIL() << text;
  }
  std::string message() { return window_.statusBar()->currentMessage().toStdString(); }
};

// The form shows the keys of the sweep document, and saving it again keeps the points.
TEST_F(Files, ASweepDocumentIsOpenedAndSavedAgain) {
  const fs::path file = example("llama-3.1-70b-sweep.json");
  open_by_dialog(file);
  auto& page = *window_.findChild<SweepPage*>();
  EXPECT_TRUE(page.isVisible());
  ASSERT_NE(window_.document().question(), nullptr)
      << window_.document().problem().message.toStdString();
  EXPECT_EQ(window_.document().question()->job.job.cluster.nodes, 8);
  const QAbstractItemModel& axes = *child_of<QTableView>(page, "axes").model();
  ASSERT_EQ(axes.rowCount(), 5);
  EXPECT_EQ(axes.index(0, SweepAxes::key_column).data(), QStringLiteral("cluster.nodes"));
  EXPECT_EQ(axes.index(0, SweepAxes::values_column).data(), QStringLiteral("8, 16, 32, 64"));
  const auto saved = gui_home() / "saved-sweep.json";
  fs::remove(saved);
  answer_file_dialog(saved);
  QTest::mouseClick(&child_of<QPushButton>(page, "sweep_save"), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return fs::exists(saved); }));
  EXPECT_EQ(read_sweep(saved)->points, read_sweep(file)->points);
  // The saved sweep can be opened again, here as if named on the command line.
  window_.open_at_start(saved);
  EXPECT_EQ(box("not_opened"), nullptr);
  EXPECT_EQ(axes.rowCount(), 5);
}

TEST_F(Files, ATraceAndMeasuredRunsAreOpenedOnTheirPages) {
  open_by_dialog(written("opened-trace.json", span_trace({{"rank 0", "compute", "linear, forward",
                                                           Seconds(0), Seconds(1)}})));
  ASSERT_TRUE(wait_until([&] { return window_.timeline().gantt().scene() != nullptr; }));
  EXPECT_TRUE(window_.timeline().isVisible());
  const std::string run = std::string(kSmall).insert(std::string(kSmall).rfind('}'),
                                                     R"(, "plan": { "tensor_parallel": 8 },
    "measured": { "step_time": "2 s", "source": "made up" } )");
  window_.open_at_start(written("opened-runs.json", "[" + run + "]"));
  ASSERT_TRUE(wait_until([&] { return window_.accuracy().report() != nullptr; }));
  EXPECT_TRUE(window_.findChild<AccuracyPage*>()->isVisible());
  EXPECT_EQ(window_.document().file(), gui_home() / "case.json");
}

TEST_F(Files, OneThatCannotBeOpenedAtTheStartIsSaidInADialog) {
  window_.open_at_start(gui_home() / "nowhere.json");
  ASSERT_NE(box("not_opened"), nullptr);
  EXPECT_THAT(box("not_opened")->text().toStdString(), HasSubstr("nowhere.json: does not exist"));
}

TEST_F(Files, WhatMayBeDroppedIsSaidWhereAFileIsNone) {
  drop(written("a0.png", std::string("\x89PNG\0\0", 6)));
  EXPECT_THAT(message(), HasSubstr("a0.png: found a NUL byte"));
  EXPECT_THAT(message(), HasSubstr("may be dropped"));
}

TEST_F(Files, WhatAnotherProgramWritesIsOffered) {
  const std::string other = std::string(kSmall) + " ";
  const fs::path file = written("case.json", other);
  ASSERT_TRUE(wait_until([&] { return box("changed_on_disk") != nullptr; }));
  EXPECT_THAT(box("changed_on_disk")->text().toStdString(), Not(HasSubstr("loses")));
  press(*box("changed_on_disk"), "Reload");
  EXPECT_EQ(window_.document().text(), other);
  EXPECT_FALSE(window_.document().modified());
  ASSERT_TRUE(wait_until([&] { return box("changed_on_disk") == nullptr; }));
  // Editors save by renaming another file over it. The window has unsaved work, which is kept.
  ASSERT_TRUE(window_.document().set_value("/cluster/nodes", "4").has_value());
  fs::rename(written("case.json.new", kSmall), file);
  ASSERT_TRUE(wait_until([&] { return box("changed_on_disk") != nullptr; }));
  EXPECT_THAT(box("changed_on_disk")->text().toStdString(), HasSubstr("loses the changes"));
  press(*box("changed_on_disk"), "Keep what is here");
  EXPECT_EQ(window_.document().question()->job.job.cluster.nodes, 4);
  ASSERT_TRUE(wait_until([&] { return box("changed_on_disk") == nullptr; }));
  // A file that the window itself writes is not reported as changed.
  ASSERT_TRUE(window_.save_to(file));
  QTest::qWait(400);
  EXPECT_EQ(box("changed_on_disk"), nullptr);
}

// The window then holds the only copy of the document.
TEST_F(Files, OneThatIsDeletedIsAskedForBeforeTheWindowCloses) {
  const fs::path file = gui_home() / "case.json";
  fs::remove(file);
  ASSERT_TRUE(wait_until([&] { return message() != "case.json is open."; }));
  EXPECT_THAT(message(), HasSubstr("case.json is gone from the disk; saving writes it anew"));
  std::string asked;
  when_asked<QMessageBox>([&](QMessageBox& box) {
    asked = box.text().toStdString();
    box.button(QMessageBox::Cancel)->click();
  });
  EXPECT_FALSE(window_.close());
  EXPECT_THAT(asked, HasSubstr("case.json is gone from the disk"));
  ASSERT_TRUE(window_.save_to(file));
  EXPECT_TRUE(window_.close());
}

TEST_F(Files, SavingOffersToReload) {
  window_.document().set_text(std::string(kSmall) + "\n");
  written("case.json", "{}");
  when_asked<QMessageBox>([&](QMessageBox& box) { press(box, "Reload"); });
  QTest::keyClick(&window_, Qt::Key_S, Qt::ControlModifier);
  EXPECT_EQ(window_.document().text(), "{}");
  EXPECT_EQ(*read_file(gui_home() / "case.json"), "{}");
}

TEST(SaveDialog, TakesTheEndingFromTheTypeThatWasChosen) {
  const QString types = QStringLiteral("Trace (*.json);;Picture (*.png)");
  const auto named = [&](const char* name, const char* type) {
    return with_ending(QLatin1String(name), QLatin1String(type), types).toStdString();
  };
  EXPECT_EQ(named("step", "Picture (*.png)"), "step.png");
  EXPECT_EQ(named("llama-3.1", "Trace (*.json)"), "llama-3.1.json");
  EXPECT_EQ(named("step.PNG", "Trace (*.json)"), "step.PNG");
}

TEST_F(Files, APictureOfTheTimelineIsNamedByItsType) {
  go_to_page(4);
  QTest::mouseClick(&child_of<QPushButton>(window_.timeline(), "simulate"), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return window_.timeline().gantt().scene() != nullptr; }));
  fs::remove(gui_home() / "picture.png");
  when_asked<QFileDialog>([](QFileDialog& dialog) {
    dialog.selectNameFilter(QStringLiteral("Picture (*.png)"));
    dialog.selectFile(path_text(gui_home() / "picture"));
    static_cast<QDialog&>(dialog).accept();
  });
  QTest::mouseClick(&child<QPushButton>("export_timeline"), Qt::LeftButton);
  ASSERT_TRUE(wait_until([] { return fs::exists(gui_home() / "picture.png"); }));
  EXPECT_EQ(read_file(gui_home() / "picture.png")->substr(1, 3), "PNG");
  // The name with its ending exists now: the user is asked before that file is replaced.
  bool is_asked = false;
  answer_file_dialog(gui_home() / "picture.png");
  when_asked<QMessageBox>([&](QMessageBox& box) {
    is_asked = true;
    when_asked<QFileDialog>([](QFileDialog& dialog) { dialog.reject(); });
    box.button(QMessageBox::Cancel)->click();
  });
  QTest::mouseClick(&child<QPushButton>("export_timeline"), Qt::LeftButton);
  EXPECT_TRUE(is_asked);
}

}  // namespace
}  // namespace trainyard
