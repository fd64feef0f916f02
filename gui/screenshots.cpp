// gui_screenshots FOLDER WIDTH HEIGHT: pictures of every page on a real scenario, for docs/images
// and to be looked at (scripts/screenshots). No display is needed.
#include <QApplication>
#include <QElapsedTimer>
#include <QLocale>
#include <QPixmap>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QTabWidget>
#include <QTableView>
#include <cstdio>
#include <functional>

#include "gui/charts/gantt.h"
#include "gui/main_window.h"
#include "gui/pages/explore_page.h"
#include "gui/pages/timeline_page.h"
#include "gui/presenters/explore.h"
#include "gui/theme.h"

namespace trainyard {
namespace {

constexpr qint64 kPatience = 300000;  // ms

bool wait_until(const std::function<bool()>& holds) {
  QElapsedTimer timer;
  timer.start();
  while (!holds() && timer.elapsed() < kPatience) {
    QApplication::processEvents(QEventLoop::AllEvents, 50);
  }
  return holds();
}

void press(QWidget& page, const char* button) {
  if (auto* found = page.findChild<QPushButton*>(QLatin1String(button))) found->click();
}

bool fill(MainWindow& window, QTabWidget& pages) {
  press(*pages.widget(1), "pin");
  window.explore().choose(QStringLiteral("tensor_parallel"), 2);
  press(*pages.widget(1), "pin");
  window.explore().choose(QStringLiteral("virtual_stages"), 1);
  if (!wait_until([&] { return !window.explore().remedies().hardware.empty(); })) return false;
  press(*pages.widget(2), "search");
  auto* plans = pages.widget(2)->findChild<QTableView*>();
  if (!wait_until([&] { return plans->model()->rowCount() > 4; })) return false;
  plans->selectRow(3);
  press(*pages.widget(2), "simulate");
  if (!wait_until([&] { return window.timeline().gantt().scene() != nullptr; })) return false;
  Gantt& gantt = window.timeline().gantt();
  gantt.zoom(0.2, gantt.width() / 3.0);
  return true;
}

int take(const QString& folder, QSize size) {
  MainWindow window;
  window.open_example();
  window.resize(size);
  window.show();
  auto* pages = window.findChild<QTabWidget*>();
  if (!fill(window, *pages)) return 1;
  for (const Theme theme : {Theme::light, Theme::dark}) {
    set_theme(theme);
    for (int page = 0; page < pages->count(); ++page) {
      pages->setCurrentIndex(page);
      QApplication::processEvents();
      const QString name = QStringLiteral("%1/gui-%2%3.png")
                               .arg(folder, pages->tabText(page).toLower(),
                                    theme == Theme::dark ? QStringLiteral("-dark") : QString());
      if (!window.grab().toImage().convertToFormat(QImage::Format_Indexed8).save(name, "PNG")) {
        std::fprintf(stderr, "%s: cannot be written\n", qPrintable(name));
        return 3;
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QStandardPaths::setTestModeEnabled(true);
  QApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("trainyard"));
  QApplication::setApplicationName(QStringLiteral("trainyard-gui-screenshots"));
  QLocale::setDefault(QLocale::c());
  const QStringList words = QApplication::arguments();
  if (words.size() != 4) {
    std::fprintf(stderr, "usage: gui_screenshots FOLDER WIDTH HEIGHT\n");
    return 2;
  }
  trainyard::set_theme(trainyard::Theme::light);
  return trainyard::take(words[1], {words[2].toInt(), words[3].toInt()});
}
