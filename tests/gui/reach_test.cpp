// The whole window without a mouse and for a screen reader: Tab reaches every control, every
// control has a name, every chart can be copied, and the layout is restored at the next start.
#include <gtest/gtest.h>

#include <QAbstractScrollArea>
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QClipboard>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QFrame>
#include <QHeaderView>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSlider>
#include <QSplitter>
#include <QTabBar>
#include <QTabWidget>
#include <QTableView>
#include <set>

#include "gui/charts/chart.h"
#include "gui/charts/gantt.h"
#include "gui/pages/plan_page.h"
#include "gui/pages/timeline_page.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/text.h"
#include "gui/theme.h"
#include "tests/gui/window.h"

namespace trainyard {
namespace {

constexpr std::size_t kCharts = 10;
constexpr int kMostTabs = 120;

// False for a part of another control, such as the text line of a box or the header of a table.
bool is_control(const QWidget& widget) {
  const QWidget* parent = widget.parentWidget();
  const bool is_part = qobject_cast<const QComboBox*>(parent) != nullptr ||
                       qobject_cast<const QAbstractSpinBox*>(parent) != nullptr ||
                       qobject_cast<const QScrollBar*>(&widget) != nullptr ||
                       qobject_cast<const QHeaderView*>(&widget) != nullptr ||
                       qobject_cast<const QScrollArea*>(&widget) != nullptr;
  return !is_part && widget.isVisible() && widget.isEnabled() &&
         (widget.focusPolicy() & Qt::TabFocus) != 0;
}

QString described(const QWidget& widget) {
  return QStringLiteral("%1 %2").arg(QLatin1String(widget.metaObject()->className()),
                                     widget.objectName());
}

class Reach : public Window {
 protected:
  QTabWidget& pages() { return *window_.findChild<QTabWidget*>(); }

  // Every widget that gets the focus while Tab is pressed again and again, starting at the tabs.
  std::set<const QWidget*> reached_by_tab() {
    pages().tabBar()->setFocus();
    std::set<const QWidget*> reached;
    for (int i = 0; i < kMostTabs; ++i) {
      QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
      const QWidget* now = QApplication::focusWidget();
      if (now == pages().tabBar()) break;
      for (; now != nullptr; now = now->parentWidget()) reached.insert(now);
    }
    return reached;
  }
};

TEST_F(Reach, EveryControlHasANameAndIsReachedByTab) {
  for (int page = 0; page < pages().count(); ++page) {
    pages().setCurrentIndex(page);
    QApplication::processEvents();
    const std::set<const QWidget*> reached = reached_by_tab();
    int controls = 0;
    for (const QWidget* widget : pages().widget(page)->findChildren<QWidget*>()) {
      if (!is_control(*widget)) continue;
      ++controls;
      const std::string of =
          (pages().tabText(page) + QStringLiteral(": ") + described(*widget)).toStdString();
      auto* face = QAccessible::queryAccessibleInterface(const_cast<QWidget*>(widget));
      ASSERT_NE(face, nullptr) << of;
      EXPECT_FALSE(face->text(QAccessible::Name).isEmpty()) << of << " has no accessible name";
      EXPECT_TRUE(reached.contains(widget)) << of << " is not reached by Tab";
    }
    EXPECT_GE(controls, 2) << page;
  }
}

// Tab follows the order of the page: first the choices, then the actions.
TEST_F(Reach, TabGoesThroughThePlanBeforeItGoesOn) {
  go_to_page(2);
  pages().tabBar()->setFocus();
  QStringList order;
  for (int i = 0; i < kMostTabs && !order.contains(QStringLiteral("use")); ++i) {
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
    const QString name = QApplication::focusWidget()->objectName();
    if (!name.isEmpty()) order.append(name);
  }
  ASSERT_TRUE(order.contains(QStringLiteral("tensor_parallel"))) << order.join(' ').toStdString();
  EXPECT_EQ(order.front(), QStringLiteral("tensor_parallel")) << order.join(' ').toStdString();
  EXPECT_GT(order.size(), 5);
}

TEST_F(Reach, TheFocusOfAChartIsSeenButNotCopied) {
  for (int page = 0; page < pages().count(); ++page) {
    pages().setCurrentIndex(page);
    QApplication::processEvents();
    for (Chart* chart : pages().widget(page)->findChildren<Chart*>()) {
      if (!chart->isVisible()) continue;
      const std::string of = described(*chart).toStdString();
      const QColor frame = chart->palette().color(QPalette::Highlight);
      const QPoint edge(0, chart->height() / 2);
      chart->setFocus();
      EXPECT_EQ(chart->grab().toImage().pixelColor(edge), frame) << of;
      EXPECT_NE(chart->picture().toImage().pixelColor(edge), frame) << of;
      pages().tabBar()->setFocus();
      EXPECT_NE(chart->grab().toImage().pixelColor(edge), frame) << of;
    }
  }
}

// Keys typed after a search or a simulation must not go into a filter.
TEST_F(Reach, TheFocusStaysWhereTheWorkIs) {
  go_to_page(4);
  auto& simulate = child_of<QPushButton>(window_.timeline(), "simulate");
  simulate.setFocus();
  QTest::keyClick(&simulate, Qt::Key_Space);
  EXPECT_EQ(QApplication::focusWidget(),
            &child_of<QPushButton>(window_.timeline(), "cancel_simulation"));
  Gantt& gantt = window_.timeline().gantt();
  ASSERT_TRUE(wait_until([&] { return gantt.scene() != nullptr; }));
  EXPECT_EQ(QApplication::focusWidget(), &gantt);
  go_to_page(3);
  auto& search = child<QPushButton>("search");
  search.setFocus();
  QTest::keyClick(&search, Qt::Key_Space);
  EXPECT_EQ(QApplication::focusWidget(), &child<QPushButton>("cancel"));
  ASSERT_TRUE(wait_until([&] { return search.isEnabled(); }));
  EXPECT_EQ(QApplication::focusWidget(), &child<QTableView>("plans"));
  // The same when it is started from another page.
  auto& plan = *window_.findChild<PlanPage*>();
  auto& of_plan = child_of<QPushButton>(plan, "simulate");
  of_plan.setFocus();
  QTest::keyClick(&of_plan, Qt::Key_Space);
  ASSERT_TRUE(wait_until([&] { return simulate.isEnabled(); }));
  EXPECT_EQ(QApplication::focusWidget(), &gantt);
}

TEST_F(Reach, TheColoursThatAreChosenHaveATick) {
  const auto ticked = [&] {
    QStringList names;
    for (const QAction* action : window_.findChildren<QAction*>()) {
      if (action->isCheckable() && action->isChecked()) names.append(action->text());
    }
    return names;
  };
  EXPECT_EQ(ticked(), QStringList(QStringLiteral("As the desktop")));
  for (QAction* action : window_.findChildren<QAction*>()) {
    if (action->text() == QStringLiteral("Dark")) action->trigger();
  }
  EXPECT_EQ(ticked(), QStringList(QStringLiteral("Dark")));
  EXPECT_EQ(chosen_theme(), Theme::dark);
  set_theme(Theme::desktop);
}

// Those of the style Fusion are darker than the window.
TEST_F(Reach, FramesAndTicksAreSeenInTheDark) {
  set_theme(Theme::dark);
  QFrame frame;
  frame.setFrameShape(QFrame::StyledPanel);
  frame.resize(60, 40);
  const int window = QApplication::palette().color(QPalette::Window).lightness();
  EXPECT_GT(frame.grab().toImage().pixelColor(0, 20).lightness(), window + 40);
  QSlider slider(Qt::Horizontal);
  slider.setTickPosition(QSlider::TicksBelow);
  slider.setRange(0, 3);
  slider.setTickInterval(1);
  slider.resize(200, 40);
  const QImage image = slider.grab().toImage();
  int ticks = 0;
  for (int x = 0; x < image.width(); ++x) {
    ticks += image.pixelColor(x, image.height() - 3).lightness() > window + 40 ? 1 : 0;
  }
  set_theme(Theme::desktop);
  EXPECT_EQ(ticks, 4);
}

TEST_F(Reach, ATableIsCopiedByRowsWithItsHeads) {
  go_to_page(2);
  auto& table = child<QTableView>("variants");
  const auto keys = [&table] {
    table.setFocus();
    QTest::keyClick(&table, Qt::Key_C, Qt::ControlModifier);
    return QApplication::clipboard()->text().split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  };
  table.clearSelection();
  const QStringList all = keys();
  ASSERT_EQ(all.size(), table.model()->rowCount() + 1);
  EXPECT_EQ(all[0], QStringLiteral("\tnow"));
  const QString step = table.model()->index(0, 0).data().toString();
  EXPECT_EQ(all[1], QStringLiteral("Step time\t") + step);
  table.selectionModel()->select(table.model()->index(1, 0), QItemSelectionModel::Select);
  EXPECT_EQ(keys(), (QStringList{all[0], all[2]}));
  table.actions().constLast()->trigger();
  EXPECT_EQ(QApplication::clipboard()->text(), all.join(QLatin1Char('\n')) + QLatin1Char('\n'));
}

TEST_F(Reach, EveryTableOffersToBeCopied) {
  for (const QTableView* table : window_.findChildren<QTableView*>()) {
    EXPECT_EQ(table->actions().size(), 2) << table->objectName().toStdString();
  }
}

TEST_F(Reach, WhatWouldHelpIsReadInANarrowWindow) {
  window_.resize(1024, 700);
  go_to_page(2);
  auto& remedies = child<QListWidget>("remedies");
  ASSERT_TRUE(wait_until([&] { return remedies.count() > 1; }));
  for (int row = 0; row < remedies.count(); ++row) {
    EXPECT_LE(remedies.visualItemRect(remedies.item(row)).right(), remedies.viewport()->width())
        << remedies.item(row)->text().toStdString();
  }
}

TEST_F(Reach, WithoutAPlanThereIsNoneToPin) {
  go_to_page(2);
  EXPECT_TRUE(child<QPushButton>("pin").isEnabled());
  window_.document().set_text("{}");
  EXPECT_FALSE(child<QPushButton>("pin").isEnabled());
}

TEST_F(Reach, OnlyWhatIsPinnedIsUnpinned) {
  go_to_page(2);
  auto& back = child<QPushButton>("back");
  auto& unpin = child<QPushButton>("unpin");
  EXPECT_FALSE(back.isEnabled());
  EXPECT_FALSE(unpin.isEnabled());
  QTest::mouseClick(&child<QPushButton>("pin"), Qt::LeftButton);
  auto& table = child<QTableView>("variants");
  table.setCurrentIndex(table.model()->index(0, 0));
  EXPECT_TRUE(back.isEnabled());
  QTest::mouseClick(&unpin, Qt::LeftButton);
  EXPECT_FALSE(unpin.isEnabled());
}

TEST_F(Reach, EveryChartIsCopiedAsPictureAndAsData) {
  const QList<Chart*> charts = window_.findChildren<Chart*>();
  EXPECT_EQ(static_cast<std::size_t>(charts.size()), kCharts);
  for (Chart* chart : charts) {
    const std::string of = described(*chart).toStdString();
    chart->resize(chart->size().expandedTo({200, 120}));
    QStringList entries;
    for (int entry = 0; entry < 2; ++entry) {
      QApplication::clipboard()->clear();
      QTimer::singleShot(0, qApp, [&] {
        auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
        if (menu == nullptr || menu->actions().size() <= entry) return;
        entries.append(menu->actions()[entry]->text());
        menu->setActiveAction(menu->actions()[entry]);
        QTest::keyClick(menu, Qt::Key_Return);
      });
      QContextMenuEvent event(QContextMenuEvent::Keyboard, {5, 5},
                              chart->mapToGlobal(QPoint(5, 5)));
      QApplication::sendEvent(chart, &event);
      if (entry == 0) {
        EXPECT_EQ(QApplication::clipboard()->pixmap().size(), chart->size()) << of;
      } else {
        EXPECT_EQ(QApplication::clipboard()->text(), chart->data_text()) << of;
      }
    }
    EXPECT_EQ(entries,
              (QStringList{QStringLiteral("Copy as picture"), QStringLiteral("Copy as data")}))
        << of;
  }
}

TEST_F(Reach, SizesAndSplittersAreThereAgain) {
  std::set<QString> names;
  const QList<QSplitter*> splitters = window_.findChildren<QSplitter*>();
  for (QSplitter* splitter : splitters) {
    EXPECT_FALSE(splitter->objectName().isEmpty());
    EXPECT_TRUE(names.insert(splitter->objectName()).second)
        << splitter->objectName().toStdString();
  }
  EXPECT_GE(names.size(), 8u);
  auto& plan = child<QSplitter>("plan");
  window_.resize(1111, 777);
  go_to_page(3);
  QApplication::processEvents();
  QList<int> sizes = plan.sizes();
  sizes[0] -= 60;
  sizes[1] += 60;
  plan.setSizes(sizes);
  const QList<int> arranged = plan.sizes();
  ASSERT_TRUE(window_.close());
  MainWindow next;
  next.show();
  EXPECT_EQ(next.size(), QSize(1111, 777));
  auto& pages_of_next = *next.findChild<QTabWidget*>();
  EXPECT_EQ(pages_of_next.tabText(pages_of_next.currentIndex()), QStringLiteral("Plan"));
  EXPECT_EQ(next.findChild<QSplitter*>(QStringLiteral("plan"))->sizes(), arranged);
}

}  // namespace
}  // namespace trainyard
