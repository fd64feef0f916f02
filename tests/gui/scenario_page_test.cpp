// The Scenario page of the real window: form, text, help and search.
#include "gui/pages/scenario_page.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QLabel>
#include <QLineEdit>
#include <QTreeView>

#include "gui/presenters/document/form_model.h"
#include "gui/presenters/document/scenario_document.h"
#include "scenarios/question.h"
#include "tests/gui/window.h"

namespace trainyard {
namespace {

class OnScenarioPage : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    go_to_page(1);
  }
  QTreeView& form() { return child<QTreeView>("form"); }
  QModelIndex row(const char* pointer) {
    return qobject_cast<FormModel*>(form().model())->index_of(pointer);
  }
  QLineEdit& search() { return *window_.findChild<ScenarioPage*>()->findChild<QLineEdit*>(); }
  bool is_hidden(const char* pointer) {
    return form().isRowHidden(row(pointer).row(), row(pointer).parent());
  }
};

TEST_F(OnScenarioPage, AFileThatIsNoScenarioShowsNothingOfTheOneBefore) {
  for (const char* text : {"", "{}", "{\"trainyard\": \"scenario/1\", \"mod", "[1, 2]"}) {
    ASSERT_TRUE(window_.open_file(written("no-scenario.json", text))) << text;
    EXPECT_EQ(form().model()->rowCount(), 0) << text;
    EXPECT_FALSE(form().isEnabled()) << text;
    EXPECT_EQ(child<QLabel>("help").text(), "") << text;
    ASSERT_TRUE(window_.open_file(gui_home() / "case.json"));
    EXPECT_TRUE(form().isEnabled()) << text;
    EXPECT_TRUE(row("/cluster/nodes").isValid()) << text;
  }
}

TEST_F(OnScenarioPage, TheFormStaysWhileTheTextIsTyped) {
  window_.document().set_text("{ \"trainyard\": ", ScenarioDocument::Edit::keystroke);
  EXPECT_TRUE(row("/cluster/nodes").isValid());
  EXPECT_TRUE(form().isEnabled());
}

TEST_F(OnScenarioPage, BelowTheFormStandsHowAKeyIsExplained) {
  EXPECT_EQ(child<QLabel>("help").text().section(QLatin1Char(' '), 0, 2), "Choose a key");
}

TEST_F(OnScenarioPage, TheHelpForgetsAnErrorThatIsMended) {
  ASSERT_TRUE(window_.document().set_value("/training/sequence_length", "-5").has_value());
  form().setCurrentIndex(row("/training/sequence_length"));
  const auto& help = child<QLabel>("help");
  const QString problem = window_.document().problem().message;
  ASSERT_FALSE(problem.isEmpty());
  EXPECT_TRUE(help.text().contains(problem)) << help.text().toStdString();
  ASSERT_TRUE(window_.document().set_value("/training/sequence_length", "4096").has_value());
  EXPECT_FALSE(help.text().contains(problem)) << help.text().toStdString();
  EXPECT_TRUE(help.text().startsWith(QStringLiteral("sequence_length: ")));
}

TEST_F(OnScenarioPage, ASectionThatIsFoundKeepsItsKeys) {
  ASSERT_TRUE(window_.document().set_value("/plan/tensor_parallel", "8").has_value());
  search().setText(QStringLiteral("offload"));
  EXPECT_FALSE(is_hidden("/plan/offload"));
  ASSERT_GT(form().model()->rowCount(row("/plan/offload")), 0);
  for (int at = 0; at < form().model()->rowCount(row("/plan/offload")); ++at) {
    EXPECT_FALSE(form().isRowHidden(at, row("/plan/offload"))) << at;
  }
  EXPECT_TRUE(is_hidden("/cluster/nodes"));
}

TEST_F(OnScenarioPage, UndoAndRedoAreTheDocumentsWhereNothingIsSearchedFor) {
  search().setFocus();
  ASSERT_TRUE(window_.document().set_value("/cluster/nodes", "4").has_value());
  QTest::keyClick(&search(), Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(window_.document().text(), kSmall);
  QTest::keyClick(&search(), Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(window_.document().question()->job.job.cluster.nodes, 4);
  // Undo takes back what was typed into the search line.
  QTest::keyClick(&search(), Qt::Key_X);
  QTest::keyClick(&search(), Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(search().text(), QString());
  EXPECT_EQ(window_.document().question()->job.job.cluster.nodes, 4);
}

TEST_F(OnScenarioPage, TypingChangesWhatIsTypedAndNothingElse) {
  std::string text = kSmall;
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "\r\n");
  }
  const std::string space = "\u00a0";
  text.insert(text.rfind('}'), ", \"name\": \"two" + space + "words\" ");
  ASSERT_TRUE(window_.open_file(written("windows.json", text)));
  // Typed before "nodes", on the fourth line; the text before and after it stays.
  const std::size_t place = text.find("\"nodes\"");
  QTextCursor cursor(editor().document());
  cursor.setPosition(static_cast<int>(editor().toPlainText().indexOf(QStringLiteral("\"nodes\""))));
  editor().setTextCursor(cursor);
  QTest::keyClicks(&editor(), QStringLiteral(" "));
  EXPECT_EQ(window_.document().text(), std::string(text).insert(place, " "));
  QTest::keyClick(&editor(), Qt::Key_Backspace);
  EXPECT_EQ(window_.document().text(), text);
  QTest::keyClick(&editor(), Qt::Key_Return);
  EXPECT_EQ(window_.document().text(), std::string(text).insert(place, "\r\n"));
  QTest::keyClick(&editor(), Qt::Key_Backspace);
  EXPECT_EQ(window_.document().text(), text);
  // Neither is JSON as Qt has it: a line separator, and no-break spaces of a page on the web.
  QTest::keyClick(&editor(), Qt::Key_Return, Qt::ShiftModifier);
  editor().insertPlainText(QStringLiteral("\u00a0"));
  EXPECT_EQ(window_.document().text(), std::string(text).insert(place, "\r\n "));
  QTest::keyClick(&editor(), Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(&editor(), QStringLiteral("{"));
  EXPECT_EQ(window_.document().text(), "{");
}

}  // namespace
}  // namespace trainyard
