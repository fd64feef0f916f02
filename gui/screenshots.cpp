// gui_screenshots FOLDER WIDTH HEIGHT [dark]: takes pictures of every page with a real scenario,
// for docs/images and for review (scripts/screenshots). It needs no display unless QT_QPA_PLATFORM
// asks for one.
#include <QApplication>
#include <QComboBox>
#include <QElapsedTimer>
#include <QImage>
#include <QLocale>
#include <QPixmap>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QStandardPaths>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "gui/charts/cluster_chart.h"
#include "gui/charts/gantt.h"
#include "gui/main_window.h"
#include "gui/pages/execute_page.h"
#include "gui/pages/goodput_page.h"
#include "gui/pages/sweep_form.h"
#include "gui/pages/timeline_page.h"
#include "gui/pages/topology_page.h"
#include "gui/presenters/accuracy_check.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/execution/execution.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/run_lives.h"
#include "gui/presenters/sweep/sweep_run.h"
#include "gui/presenters/text.h"
#include "gui/theme.h"
#include "scenarios/json/file.h"
#include "scenarios/validation.h"

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

// The picture reduced to its 256 most frequent colours, so that the file is small.
QImage with_few_colours(const QImage& picture) {
  const QImage whole = picture.convertToFormat(QImage::Format_RGB32);
  std::map<QRgb, int> counts;
  for (int y = 0; y < whole.height(); ++y) {
    for (int x = 0; x < whole.width(); ++x) ++counts[whole.pixel(x, y)];
  }
  std::vector<std::pair<int, QRgb>> by_count;
  by_count.reserve(counts.size());
  for (const auto& [colour, count] : counts) by_count.emplace_back(-count, colour);
  std::ranges::sort(by_count);
  QList<QRgb> table;
  for (const auto& [count, colour] : by_count) {
    if (table.size() < 256) table.append(colour);
  }
  const auto nearest = [&](QRgb colour) {
    const auto distance = [colour](QRgb other) {
      return std::abs(qRed(colour) - qRed(other)) + std::abs(qGreen(colour) - qGreen(other)) +
             std::abs(qBlue(colour) - qBlue(other));
    };
    return static_cast<uchar>(std::ranges::min_element(table, {}, distance) - table.begin());
  };
  std::map<QRgb, uchar> places;
  for (const auto& [colour, count] : counts) places[colour] = nearest(colour);
  QImage small(whole.size(), QImage::Format_Indexed8);
  small.setColorTable(table);
  for (int y = 0; y < whole.height(); ++y) {
    for (int x = 0; x < whole.width(); ++x) small.scanLine(y)[x] = places[whole.pixel(x, y)];
  }
  return small;
}

void press(QWidget& page, const char* button) {
  if (auto* found = page.findChild<QPushButton*>(QLatin1String(button))) found->click();
}

// The published measurements in scenarios/cases.
std::vector<std::filesystem::path> measured_runs() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios/cases")) {
    if (entry.path().extension() != ".json") continue;
    const auto text = read_file(entry.path());
    if (text && text->find("\"measured\"") != std::string::npos) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

bool fill_explore(MainWindow& window, QWidget& page) {
  press(page, "pin");
  window.explore().choose(QStringLiteral("tensor_parallel"), 2);
  press(page, "pin");
  window.explore().choose(QStringLiteral("virtual_stages"), 1);
  return wait_until([&] { return !window.explore().remedies().hardware.empty(); });
}

bool fill_plan(QWidget& page) {
  press(page, "search");
  auto* plans = page.findChild<QTableView*>();
  if (!wait_until([&] { return plans->model()->rowCount() > 4; })) return false;
  plans->selectRow(3);
  press(page, "simulate");
  return true;
}

// Sweeps variations of the open scenario into a temporary result file.
bool fill_sweep(MainWindow& window) {
  auto& form = *window.findChild<SweepForm*>();
  form.axes().set_axes({{.key = "plan.virtual_stages", .values = "1, 2, 4, 8"},
                        {.key = "cluster.node.nic_bandwidth",
                         .values = "50 Gbit/s .. 800 Gbit/s",
                         .steps = 5,
                         .scale = Scale::geometric},
                        {.key = "plan.zero_stage", .values = "1, 2"}});
  auto& run = *window.findChild<SweepRun*>();
  const QTemporaryDir folder;
  run.start({.scenario = window.document().text(),
             .file = window.document().file(),
             .draft = form.draft()},
            path_of(folder.filePath(QStringLiteral("results.sqlite"))));
  return wait_until([&] { return !run.busy(); }) && run.points() != nullptr;
}

bool fill(MainWindow& window, QTabWidget& pages) {
  if (!fill_explore(window, *pages.widget(1)) || !fill_plan(*pages.widget(2))) return false;
  if (!wait_until([&] { return window.timeline().gantt().scene() != nullptr; })) return false;
  Gantt& gantt = window.timeline().gantt();
  gantt.zoom(0.2, gantt.width() / 3.0);
  auto& topology = *window.findChild<TopologyPage*>();
  window.show_page(&topology);
  if (!wait_until([&] { return topology.chart().load() != nullptr; })) return false;
  topology.findChild<QComboBox*>()->setCurrentIndex(static_cast<int>(MapColour::data));
  topology.chart().choose(0);
  if (!fill_sweep(window)) return false;
  auto& accuracy = *window.findChild<AccuracyCheck*>();
  accuracy.start(measured_runs());
  auto& lives = *window.findChild<RunLives*>();
  press(*window.findChild<GoodputPage*>(), "simulate");
  return wait_until([&] { return accuracy.report() && lives.answer() && !lives.is_tuning(); });
}

bool take(QMainWindow& window, const QString& file) {
  for (int i = 0; i < 3; ++i) QApplication::processEvents();
  if (with_few_colours(window.grab().toImage()).save(file, "PNG", 0)) return true;
  std::fprintf(stderr, "%s: cannot be written\n", qPrintable(file));
  return false;
}

bool take(QTabWidget& pages, QMainWindow& window, const QString& folder, const QString& suffix) {
  for (int page = 0; page < pages.count(); ++page) {
    pages.setCurrentIndex(page);
    const QString name = pages.tabText(page).toLower();
    if (!take(window, folder + QStringLiteral("/gui-") + name + suffix + QStringLiteral(".png"))) {
      return false;
    }
  }
  return true;
}

// Takes pictures of a run on ranks of this machine: while it runs, and then its measured beside its
// predicted timeline.
bool take_run(MainWindow& window, const QString& folder, const QString& suffix) {
  auto& page = *window.findChild<ExecutePage*>();
  page.findChild<QSpinBox*>(QStringLiteral("steps"))->setValue(100000);
  window.show_page(&page);
  press(page, "run");
  const auto steps_done = [&] {
    const auto& ranks = window.execution().watch().ranks();
    return ranks.empty() ? 0 : ranks.front().steps_done;
  };
  if (!wait_until([&] { return steps_done() > 12; })) return false;
  if (!take(window, folder + QStringLiteral("/gui-execute") + suffix + QStringLiteral(".png"))) {
    return false;
  }
  press(page, "cancel_run");
  if (!wait_until([&] { return !window.execution().trace().empty(); })) return false;
  press(page, "show_timeline");
  const auto compares = [&] {
    const TimelineScene* scene = window.timeline().gantt().scene();
    const auto* simulate = window.timeline().findChild<QPushButton*>(QStringLiteral("simulate"));
    return scene != nullptr && scene->compares() && simulate->isEnabled();
  };
  if (!wait_until(compares)) return false;
  return take(window,
              folder + QStringLiteral("/gui-timeline-measured") + suffix + QStringLiteral(".png"));
}

int take(const QString& folder, QSize size, bool also_dark) {
  MainWindow window;
  if (!window.open_file("scenarios/cases/llama-3.1-405b-54-days.json")) return 2;
  window.resize(size);
  window.show();
  auto* pages = window.findChild<QTabWidget*>();
  if (!fill(window, *pages)) return 1;
  if (!take(*pages, window, folder, {})) return 3;
  const QString dark = QStringLiteral("-dark");
  set_theme(also_dark ? Theme::dark : Theme::light);
  if (also_dark && !take(*pages, window, folder, dark)) return 3;
  if (!window.open_file("scenarios/examples/tiny-llama-8-ranks.json")) return 2;
  if (also_dark && !take_run(window, folder, dark)) return 3;
  set_theme(Theme::light);
  return take_run(window, folder, {}) ? 0 : 3;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QStandardPaths::setTestModeEnabled(true);
  QApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("trainyard"));
  QApplication::setApplicationName(QStringLiteral("trainyard-gui-screenshots"));
  QLocale::setDefault(QLocale::c());
  const QStringList words = QApplication::arguments();
  if (words.size() < 4) {
    std::fprintf(stderr, "usage: gui_screenshots FOLDER WIDTH HEIGHT [dark]\n");
    return 2;
  }
  trainyard::set_theme(trainyard::Theme::light);
  return trainyard::take(words[1], {words[2].toInt(), words[3].toInt()}, words.size() > 4);
}
