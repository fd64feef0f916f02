// The Explore page of the real window.
#include <QComboBox>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QSlider>
#include <QTableView>

#include "gui/pages/explore_page.h"
#include "gui/presenters/answer.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/plan/explore.h"
#include "tests/gui/window.h"

namespace trainyard {
namespace {

class ExploreWindow : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    go_to_page(2);
  }
};

constexpr const char* kAutoRecompute = R"({
  "trainyard": "scenario/1",
  "model": "llama-3.1-70b",
  "cluster": { "node": "dgx-h100-80gb", "nodes": 4 },
  "training": { "global_batch": 64, "sequence_length": 8192 },
  "plan": { "tensor_parallel": 8, "pipeline_parallel": 4, "recompute": "auto" }
}
)";

// Neither the way back to a pinned plan nor a change that helps fixes what the plan left open.
TEST_F(ExploreWindow, RecomputationAutoStaysAuto) {
  open(kAutoRecompute);
  const auto shown = [this] { return child<QComboBox>("recompute").currentText(); };
  ASSERT_EQ(shown(), "auto");
  QTest::mouseClick(&child<QPushButton>("pin"), Qt::LeftButton);
  auto& recompute = child<QComboBox>("recompute");
  recompute.setCurrentText(QStringLiteral("full"));
  ASSERT_EQ(shown(), "full");
  auto& table = child<QTableView>("variants");
  table.setCurrentIndex(table.model()->index(0, 0));
  QTest::mouseClick(&child<QPushButton>("back"), Qt::LeftButton);
  EXPECT_EQ(shown(), "auto");

  const auto& found = window_.explore().remedies().plans;
  ASSERT_TRUE(wait_until([&] { return !found.empty(); }));
  const auto at = std::ranges::find_if(
      found, [](const Remedy& remedy) { return !remedy.change.starts_with("recompute"); });
  ASSERT_NE(at, found.end());
  auto& list = child<QListWidget>("remedies");
  list.setFocus();
  list.setCurrentRow(static_cast<int>(at - found.begin()));
  QTest::keyClick(&list, Qt::Key_Return);
  EXPECT_EQ(shown(), "auto");
}

// The plan before is named, also where the text was wrong in between. A plan that was written into
// the scenario is not lost, and another document has none to lose.
TEST_F(ExploreWindow, AnEditThatReplacesTheChosenPlanSaysSo) {
  const auto says = [this](const char* what) {
    return child<QLabel>("explored_plan").text().contains(QString::fromUtf8(what));
  };
  const auto choose = [this] {
    auto& slider = child<QSlider>("tensor_parallel");
    slider.setValue(slider.value() > 0 ? 0 : 1);
  };
  ScenarioDocument& document = window_.document();
  ASSERT_TRUE(document.set_value("/cluster/nodes", "4").has_value());
  EXPECT_FALSE(says("was edited"));
  choose();
  const std::string chosen = plan_text(window_.explore().candidate()->plan).toStdString();
  document.set_text("{");
  ASSERT_TRUE((document.undo(), document.set_value("/cluster/nodes", "8").has_value()));
  EXPECT_TRUE(says("The scenario was edited"));
  EXPECT_TRUE(says(chosen.c_str()));
  choose();
  EXPECT_FALSE(says("was edited"));
  QTest::mouseClick(&child_of<QPushButton>(*window_.findChild<ExplorePage*>(), "use"),
                    Qt::LeftButton);
  EXPECT_FALSE(says("was edited"));
  choose();
  ASSERT_TRUE(window_.open_file(written("other.json", kAutoRecompute)));
  EXPECT_FALSE(says("was edited"));
}

}  // namespace
}  // namespace trainyard
