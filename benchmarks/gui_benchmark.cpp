// What a user of the window waits for: the first answer after a document is opened, the answer
// while a slider moves, and a frame of a timeline of ten million operations. No display is needed.
// The timeline's memory is that of the process (peak_MiB).
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <QImage>
#include <memory>

#include "benchmarks/gui_application.h"
#include "gui/charts/gantt.h"
#include "gui/main_window.h"
#include "gui/presenters/plan/explore.h"
#include "gui/presenters/timeline/timeline_scene.h"

namespace trainyard {
namespace {

void show_answer(MainWindow& window) {
  window.open_file(TRAINYARD_EXAMPLE);
  window.resize(1280, 800);
  window.show();
  window.show_page_at(1);
  QApplication::processEvents();
}

void start_to_first_answer(benchmark::State& state) {
  application();
  for (auto _ : state) {
    MainWindow window;
    show_answer(window);
    benchmark::DoNotOptimize(window.explore().candidate());
  }
}
BENCHMARK(start_to_first_answer)->Unit(benchmark::kMillisecond);

// A change of a control for 16,384 devices, until the page is painted again.
void slider_to_new_answer(benchmark::State& state) {
  application();
  MainWindow window;
  show_answer(window);
  int turn = 0;
  for (auto _ : state) {
    window.explore().choose(QStringLiteral("tensor_parallel"), ++turn % 4);
    window.repaint();
    QApplication::processEvents(QEventLoop::ExcludeUserInputEvents, 0);
  }
}
BENCHMARK(slider_to_new_answer)->Unit(benchmark::kMillisecond);

struct LargeTimeline {
  std::vector<TaskTimes> times;
  std::shared_ptr<const TimelineScene> scene;

  explicit LargeTimeline(std::size_t operations) {
    constexpr std::size_t kTracks = 64;
    std::vector<TimelineTrack> tracks(kTracks);
    std::vector<SliceKind> kinds(operations);
    times.resize(operations);
    const std::size_t of_track = operations / kTracks;
    for (std::size_t i = 0; i < operations; ++i) {
      const auto at = static_cast<std::int64_t>(i % of_track) * 1'000'000;
      const auto length = static_cast<std::int64_t>(500'000 + (i * 7919) % 480'000);
      times[i] = {Picoseconds(at), Picoseconds(at + length)};
      kinds[i] = static_cast<SliceKind>(i % kSliceKinds);
      tracks[std::min(i / of_track, kTracks - 1)].slices.push_back(static_cast<std::uint32_t>(i));
    }
    for (std::size_t track = 0; track < kTracks; ++track) {
      tracks[track].slices.shrink_to_fit();
      tracks[track].name = QStringLiteral("rank %1 · compute").arg(track);
    }
    scene = std::make_shared<TimelineScene>(times, std::move(kinds), std::move(tracks));
  }
};

// Frames while panning through ten million operations, with all of them in view or a thousandth.
void timeline_frame(benchmark::State& state) {
  application();
  const LargeTimeline timeline(10'000'000);
  Gantt gantt;
  gantt.resize(1280, 800);
  gantt.set_scene(timeline.scene);
  gantt.zoom(1.0 / static_cast<double>(state.range(0)), 640);
  QImage frame(1280, 800, QImage::Format_RGB32);
  double way = 3;
  for (auto _ : state) {
    gantt.pan(way);
    way = -way;
    gantt.render(&frame);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.counters["frames"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(timeline_frame)->Arg(1)->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainyard
