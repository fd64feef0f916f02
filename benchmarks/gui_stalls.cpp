// How long the window does not respond: the longest time between two ticks of a timer of a
// millisecond on its thread, during typical actions. `longest_ms` is wall-clock time and includes
// what other programs take of the processor; `longest_cpu_ms` is what the thread itself computed.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <QDragEnterEvent>
#include <QDropEvent>
#include <QElapsedTimer>
#include <QMimeData>
#include <QPushButton>
#include <QSpinBox>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTimer>
#include <QUrl>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>

#include "benchmarks/gui_application.h"
#include "gui/charts/gantt.h"
#include "gui/main_window.h"
#include "gui/pages/timeline_page.h"
#include "gui/presenters/accuracy_check.h"
#include "gui/presenters/document/scenario_document.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/text.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

const fs::path kScenarios = fs::path(TRAINYARD_SOURCE) / "scenarios";
constexpr int kSettle = 300;  // ms

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

class Watchdog {
 public:
  Watchdog() {
    timer_.setTimerType(Qt::PreciseTimer);
    QObject::connect(&timer_, &QTimer::timeout, [this] { tick(); });
    since_.start();
    processor_ = processor_ms();
    timer_.start(1);
  }
  void wait(const std::function<bool()>& holds) {
    while (!holds()) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
  }
  // Waits until the result of the last action is painted.
  void settle() {
    QElapsedTimer timer;
    timer.start();
    wait([&] { return timer.hasExpired(kSettle); });
  }
  void report(benchmark::State& state) const {
    state.counters["longest_ms"] = longest_;
    state.counters["longest_cpu_ms"] = longest_processor_;
  }

 private:
  void tick() {
    longest_ = std::max(longest_, static_cast<double>(since_.nsecsElapsed()) * 1e-6);
    since_.start();
    const double processor = processor_ms();
    longest_processor_ = std::max(longest_processor_, processor - processor_);
    processor_ = processor;
  }

  QTimer timer_;
  QElapsedTimer since_;
  double processor_ = 0, longest_ = 0, longest_processor_ = 0;
};

class ShownWindow {
 public:
  explicit ShownWindow(const char* scenario = "examples/llama-3.1-405b-16384-h100.json") {
    window.open_file(kScenarios / scenario);
    window.resize(1280, 800);
    window.show();
    pages = window.findChild<QTabWidget*>();
    watchdog.settle();
  }
  QPushButton& button(int page, const char* name) {
    return *pages->widget(page)->findChild<QPushButton*>(QLatin1String(name));
  }

  QApplication& toolkit = application();  // before any window
  MainWindow window;
  QTabWidget* pages = nullptr;
  Watchdog watchdog;
};

constexpr int kPlanPage = 2;
constexpr int kGoodputPage = 7;

void stall_of_documents_and_pages(benchmark::State& state) {
  ShownWindow shown;
  for (auto _ : state) {
    Watchdog watchdog;
    for (const char* file : {"tiny-llama-8-ranks.json", "llama-3.1-405b-2048-h100.json",
                             "llama-3.1-405b-16384-h100.json"}) {
      shown.window.open_file(kScenarios / "examples" / file);
      watchdog.settle();
      for (int page = 0; page < shown.pages->count(); ++page) {
        shown.pages->setCurrentIndex(page);
        watchdog.settle();
      }
    }
    watchdog.report(state);
  }
}
BENCHMARK(stall_of_documents_and_pages)->Iterations(1)->Unit(benchmark::kMillisecond);

// A search that keeps a thousand plans; then the simulation of the best, and the step as it
// arrives.
void stall_of_search_and_simulation(benchmark::State& state) {
  ShownWindow shown;
  shown.pages->setCurrentIndex(kPlanPage);
  shown.pages->widget(kPlanPage)->findChild<QSpinBox*>()->setValue(1000);
  for (auto _ : state) {
    Watchdog watchdog;
    QPushButton& search = shown.button(kPlanPage, "search");
    search.click();
    watchdog.wait([&] { return search.isEnabled(); });
    watchdog.settle();
    shown.button(kPlanPage, "simulate").click();
    watchdog.wait([&] { return shown.window.timeline().gantt().scene() != nullptr; });
    watchdog.settle();
    watchdog.report(state);
  }
}
BENCHMARK(stall_of_search_and_simulation)->Iterations(1)->Unit(benchmark::kMillisecond);

void stall_of_accuracy_and_lives(benchmark::State& state) {
  ShownWindow shown("cases/llama-3.1-405b-54-days.json");
  for (auto _ : state) {
    Watchdog watchdog;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(kScenarios / "cases")) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    bool is_done = false;
    QObject::connect(&shown.window.accuracy(), &AccuracyCheck::finished, [&] { is_done = true; });
    shown.window.accuracy().start(files);
    watchdog.wait([&] { return is_done; });
    shown.pages->setCurrentIndex(kGoodputPage);
    QPushButton& simulate = shown.button(kGoodputPage, "simulate");
    simulate.click();
    watchdog.wait([&] { return simulate.isEnabled(); });
    watchdog.settle();
    watchdog.report(state);
  }
}
BENCHMARK(stall_of_accuracy_and_lives)->Iterations(1)->Unit(benchmark::kMillisecond);

void drop(MainWindow& window, const fs::path& file) {
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(path_text(file))});
  QDragEnterEvent enter(QPoint(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &enter);
  QDropEvent drop(QPointF(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &drop);
}

// Drops foreign files of this many KiB of JSON; the larger ones are refused by their size.
void stall_of_dropped_file(benchmark::State& state) {
  ShownWindow shown;
  const QTemporaryDir folder;
  const fs::path file = path_of(folder.filePath(QStringLiteral("dropped.json")));
  {
    std::ofstream text(file);
    text << "{ \"trainyard\": \"scenario/1\",\n";
    const auto bytes = static_cast<std::streamoff>(state.range(0)) << 10;
    for (int i = 0; text.tellp() < bytes; ++i) {
      text << "  \"key" << i << "\": [1, 2, { \"a\": \"some text\" }],\n";
    }
    text << "  \"last\": 0 }\n";
  }
  for (auto _ : state) {
    Watchdog watchdog;
    drop(shown.window, file);
    watchdog.settle();
    watchdog.report(state);
  }
}
BENCHMARK(stall_of_dropped_file)
    ->Arg(50)
    ->Arg(120)
    ->Arg(1000)
    ->Arg(100'000)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// All ranks of a plan on 512 devices: ten million operations, as they arrive and are viewed.
void stall_of_large_simulation(benchmark::State& state) {
  ShownWindow shown("examples/llama-3.1-405b-2048-h100.json");
  Gantt& gantt = shown.window.timeline().gantt();
  shown.window.timeline().play_every_rank();
  for (auto _ : state) {
    Watchdog watchdog;
    shown.window.document().set_value("/cluster/nodes", "64");
    shown.window.document().set_value("/training/global_batch", "128");
    shown.window.simulate_explored();
    watchdog.wait([&] { return gantt.scene() != nullptr; });
    watchdog.settle();
    gantt.zoom(0.01, 640);
    watchdog.settle();
    gantt.show_slice(gantt.scene()->tracks().back().slices.back());
    watchdog.settle();
    watchdog.report(state);
    std::size_t operations = 0;
    for (const TimelineTrack& track : gantt.scene()->tracks()) operations += track.slices.size();
    state.counters["operations"] = static_cast<double>(operations);
  }
}
BENCHMARK(stall_of_large_simulation)->Iterations(1)->Unit(benchmark::kMillisecond);

// A saved trace of ten million operations on 64 ranks (1.1 GB of text) is opened, zoomed and
// viewed. The memory is that of the process, so run it alone.
void stall_of_saved_trace(benchmark::State& state) {
  constexpr int kRanks = 64;
  constexpr int kOperations = 10'000'000;
  const QTemporaryDir folder;
  const fs::path file = path_of(folder.filePath(QStringLiteral("trace.json")));
  {
    std::ofstream text(file);
    text << R"({"traceEvents":[)";
    for (int i = 0; i < kOperations; ++i) {
      const int at = i / kRanks;
      text << (i > 0 ? ",\n" : "\n") << R"({"ph":"X","pid":)" << i % kRanks << R"(,"tid":0,"ts":)"
           << at << R"(.25,"dur":0.)" << 5 + at % 5 << R"(,"name":"linear )" << at % 100
           << R"(, forward","args":{"layer":)" << at % 100 << "}}";
      if (at % 10 != 0) continue;
      text << R"(,{"ph":"C","pid":)" << i % kRanks << R"(,"ts":)" << at
           << R"(,"name":"memory","args":{"GiB":)" << at % 71 << "}}";
    }
    text << "]}";
  }
  ShownWindow shown;
  shown.window.show_page(&shown.window.timeline());
  Gantt& gantt = shown.window.timeline().gantt();
  for (auto _ : state) {
    Watchdog watchdog;
    shown.window.timeline().open(file);
    watchdog.wait([&] { return gantt.scene() != nullptr; });
    watchdog.settle();
    gantt.zoom(0.01, 640);
    watchdog.settle();
    gantt.show_slice(gantt.scene()->tracks().back().slices.back());
    watchdog.settle();
    watchdog.report(state);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}
BENCHMARK(stall_of_saved_trace)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace trainyard
