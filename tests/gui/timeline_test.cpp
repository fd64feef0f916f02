#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QApplication>
#include <QImage>
#include <QScrollBar>
#include <QTest>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "gui/charts/colours.h"
#include "gui/charts/gantt.h"
#include "gui/presenters/text.h"
#include "gui/presenters/timeline/step_play.h"
#include "gui/presenters/timeline/timeline_scene.h"
#include "scenarios/question.h"
#include "scenarios/scenario_text.h"
#include "scenarios/text/readable.h"
#include "simulator/reading/critical_path.h"
#include "simulator/step.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

// One track of slices of 1 to 50 ps with gaps of 0 to 20 ps.
struct RandomTrack {
  std::vector<TaskTimes> times;
  std::unique_ptr<TimelineScene> scene;

  explicit RandomTrack(int slices) {
    std::mt19937 random(7);
    std::int64_t at = 0;
    TimelineTrack track{.name = QStringLiteral("a")};
    for (int i = 0; i < slices; ++i) {
      at += random() % 21;
      const std::int64_t end = at + 1 + random() % 50;
      times.push_back({Picoseconds(at), Picoseconds(end)});
      track.slices.push_back(static_cast<std::uint32_t>(i));
      at = end;
    }
    std::vector<SliceKind> kinds(times.size());
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      kinds[i] = i % 2 == 0 ? SliceKind::forward : SliceKind::backward;
    }
    scene = std::make_unique<TimelineScene>(times, std::move(kinds), std::vector{std::move(track)});
  }
  const TimelineTrack& track() const { return scene->tracks().front(); }
};

TEST(TimelineScene, DrawsEverySliceWhereItIsWideEnough) {
  const RandomTrack random(200);
  const TimelineView view{.from = 0, .per_pixel = 0.5, .width = 40000};
  const auto runs = random.scene->runs(random.track(), view);
  ASSERT_EQ(runs.size(), random.times.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_DOUBLE_EQ(runs[i].x, static_cast<double>(random.times[i].start.count()) / 0.5);
    EXPECT_EQ(runs[i].slice, i);
  }
}

// Checks each pixel: one in which a slice starts is drawn, one that no slice touches is not.
TEST(TimelineScene, DrawsExactlyThePixelsThatASliceTouches) {
  const RandomTrack random(5000);
  for (const double per_pixel : {3.0, 30.0, 300.0, 3000.0}) {
    const TimelineView view{.from = 1000, .per_pixel = per_pixel, .width = 60};
    std::vector<bool> drawn(60);
    for (const SliceRun& run : random.scene->runs(random.track(), view)) {
      const int last = static_cast<int>(std::ceil(run.x + run.width - 1e-9));
      for (int x = static_cast<int>(run.x); x < std::min(last, 60); ++x) {
        drawn[static_cast<std::size_t>(x)] = true;
      }
    }
    for (int x = 0; x < 60; ++x) {
      const double left = view.from + x * per_pixel;
      const bool starts = std::ranges::any_of(random.times, [&](const TaskTimes& times) {
        const auto start = static_cast<double>(times.start.count());
        return start >= left && start < left + per_pixel;
      });
      if (starts) {
        EXPECT_TRUE(drawn[static_cast<std::size_t>(x)]) << per_pixel << " " << x;
      }
      const bool touches = std::ranges::any_of(random.times, [&](const TaskTimes& times) {
        const auto start = static_cast<double>(times.start.count());
        const auto end = static_cast<double>(times.end.count());
        return start < left + per_pixel && end > left;
      });
      if (!touches) {
        EXPECT_FALSE(drawn[static_cast<std::size_t>(x)]) << per_pixel << " " << x;
      }
    }
  }
}

// Each operation of 600 ps follows a launch of 1 ps, at 10 ps per pixel. Every pixel of an
// operation is drawn, though a launch may share its first one.
TEST(TimelineScene, DrawsWhatStartsInThePixelOfSomethingNarrow) {
  std::vector<TaskTimes> times;
  TimelineTrack track{.name = QStringLiteral("a")};
  for (int i = 0; i < 100; ++i) {
    const std::int64_t at = i * 700;
    times.push_back({Picoseconds(at), Picoseconds(at + 1)});
    times.push_back({Picoseconds(at + 1), Picoseconds(at + 601)});
    track.slices.push_back(static_cast<std::uint32_t>(2 * i));
    track.slices.push_back(static_cast<std::uint32_t>(2 * i + 1));
  }
  std::vector<SliceKind> kinds(times.size(), SliceKind::forward);
  const TimelineScene scene(times, std::move(kinds), std::vector{std::move(track)});
  double drawn = 0;
  for (const SliceRun& run : scene.runs(scene.tracks().front(), {0, 10, 7000})) {
    if (run.slice % 2 == 1) drawn += run.width;
  }
  EXPECT_DOUBLE_EQ(drawn, 100 * 60);
}

TEST(TimelineScene, KnowsTheTrackOfASlice) {
  const RandomTrack random(300);
  EXPECT_EQ(random.scene->track_of(299), 0);
}

TEST(TimelineScene, LooksAtPixelsNotAtSlices) {
  const RandomTrack random(200000);
  const TimelineView view{.from = 0, .per_pixel = random.scene->end() / 500, .width = 500};
  EXPECT_LE(random.scene->runs(random.track(), view).size(), 500u);
}

TEST(TimelineScene, FindsTheSliceAtATime) {
  const RandomTrack random(300);
  for (std::uint32_t i = 0; i < 300; ++i) {
    const auto middle = static_cast<double>(random.times[i].start.count());
    const std::uint32_t* found = random.scene->slice_at(random.track(), middle);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, i);
  }
  EXPECT_EQ(random.scene->slice_at(random.track(), random.scene->end() + 1), nullptr);
}

class PlayedTimeline : public testing::Test {
 protected:
  void SetUp() override {
    auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
      "model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 1},
      "training": {"global_batch": 8, "sequence_length": 2048},
      "plan": {"tensor_parallel": 2, "pipeline_parallel": 4}})",
                                                            "a.json"));
    const Plan plan = *requested_plan(question->scenario, question->job);
    play_.start(question, plan, {});
    ASSERT_TRUE(wait_until([this] { return play_.step() != nullptr; }))
        << play_.problem().toStdString();
    gantt_.resize(900, 500);
    gantt_.set_scene(play_.step()->scene);
  }
  StepPlay play_;
  Gantt gantt_;
};

TEST_F(PlayedTimeline, HasEveryOperationThatTakesTimeOnce) {
  const Timeline& timeline = play_.step()->simulation->timeline;
  const auto lasting = std::ranges::count_if(
      timeline.times, [](const TaskTimes& times) { return times.end > times.start; });
  std::ptrdiff_t shown = 0;
  for (const TimelineTrack& track : play_.step()->scene->tracks()) {
    shown += static_cast<std::ptrdiff_t>(track.slices.size());
    EXPECT_TRUE(std::ranges::is_sorted(
        track.slices, {}, [&](std::uint32_t slice) { return timeline.times[slice].start; }));
  }
  EXPECT_EQ(shown, lasting);
  EXPECT_DOUBLE_EQ(play_.step()->scene->end(), static_cast<double>(timeline.makespan.count()));
}

// The touchpad sends eighths of a notch: 16 of them are two notches, and a notch is three tracks.
TEST_F(PlayedTimeline, ATouchpadScrollsInBothDirections) {
  gantt_.resize(900, 220);
  gantt_.grab();  // delivers the resize event
  auto& bar = *gantt_.findChild<QScrollBar*>();
  ASSERT_GE(bar.maximum(), 6);
  const auto scroll = [this](QPoint eighths) {
    QWheelEvent event({450, 100}, {450, 100}, {}, eighths * 15, Qt::NoButton, Qt::NoModifier,
                      Qt::ScrollUpdate, false);
    QApplication::sendEvent(&gantt_, &event);
  };
  for (int i = 0; i < 16; ++i) scroll({0, -1});
  EXPECT_EQ(bar.value(), 6);
  const double from = gantt_.view().from;
  gantt_.zoom(0.1, 450);
  scroll({-8, 0});
  EXPECT_GT(gantt_.view().from, from);
  EXPECT_EQ(bar.value(), 6);
}

// Compares each run with the slices that start in its pixels: a single slice is called by its own
// name, several by that of their kind.
TEST_F(PlayedTimeline, NamesSeveralSlicesByTheirKind) {
  const TimelineScene& scene = *play_.step()->scene;
  const TimelineView view = gantt_.view();
  const std::map<SliceKind, QString> kinds = {
      {SliceKind::forward, QStringLiteral("forward")},
      {SliceKind::backward, QStringLiteral("backward")},
      {SliceKind::weight_gradient, QStringLiteral("weight gradients")},
      {SliceKind::recompute, QStringLiteral("recomputation")},
      {SliceKind::pipeline, QStringLiteral("pipeline communication")}};
  int of_several = 0;
  for (const TimelineTrack& track : scene.tracks()) {
    for (const SliceRun& run : scene.runs(track, view)) {
      const double from = view.from + run.x * view.per_pixel;
      const double to = from + run.width * view.per_pixel;
      const auto inside = std::ranges::count_if(track.slices, [&](std::uint32_t slice) {
        const auto start = static_cast<double>(scene.times_of(slice).start.count());
        return start >= from - 0.5 && start < to - 0.5;
      });
      if (inside == 1) {
        EXPECT_EQ(scene.name_of(run), scene.name_of(run.slice));
      }
      if (run.is_one || !kinds.contains(run.kind)) continue;
      EXPECT_GT(inside, 1);
      EXPECT_EQ(scene.name_of(run), kinds.at(run.kind));
      ++of_several;
    }
  }
  EXPECT_GT(of_several, 10);
}

// Zoomed out, several operations share a pixel. A run keeps its colour if any of them is on the
// path, not only the first.
TEST_F(PlayedTimeline, ShowsThePathWhereSeveralOperationsShareAPixel) {
  const TimelineScene& scene = *play_.step()->scene;
  gantt_.resize(320, 1500);
  const QImage plain = gantt_.grab().toImage();
  gantt_.highlight_critical(true);
  const QImage lit = gantt_.grab().toImage();
  const GanttDrawing drawn = gantt_.drawing();
  const TimelineView& view = drawn.view;
  int of_path = 0;
  for (std::size_t at = 0; at < scene.tracks().size(); ++at) {
    const int y = drawn.row_height * static_cast<int>(at + 1) + drawn.row_height / 2;
    for (const SliceRun& run : scene.runs(scene.tracks()[at], view)) {
      if (run.is_one) continue;
      const double from = view.from + run.x * view.per_pixel;
      const auto is_on_path = [&](std::uint32_t slice) {
        const auto start = static_cast<double>(scene.times_of(slice).start.count());
        return scene.is_critical(slice) && start >= from &&
               start < from + run.width * view.per_pixel;
      };
      if (std::ranges::none_of(scene.tracks()[at].slices, is_on_path)) continue;
      const int x = drawn.label_width + static_cast<int>(run.x);
      // What begins within the pixel is painted over it, which may change its shade a little.
      EXPECT_NEAR(plain.pixelColor(x, y).lightness(), lit.pixelColor(x, y).lightness(), 8)
          << at << ", " << run.x;
      ++of_path;
    }
  }
  EXPECT_GT(of_path, 10);
}

TEST_F(PlayedTimeline, ZoomsAtTheCursor) {
  const double x = 600;
  const auto time_at = [&] {
    const TimelineView view = gantt_.view();
    return view.from + (x - (gantt_.width() - view.width)) * view.per_pixel;
  };
  const double before = time_at();
  const double wide = gantt_.view().per_pixel;
  gantt_.zoom(0.5, x);
  EXPECT_NEAR(gantt_.view().per_pixel, wide / 2, wide * 1e-9);
  EXPECT_NEAR(time_at(), before, 20 * wide);  // the scroll bar's width is beyond the plot
}

TEST_F(PlayedTimeline, IsMovedByTheKeysOfTraceViewers) {
  const TimelineView all = gantt_.view();
  QTest::keyClick(&gantt_, Qt::Key_W);
  QTest::keyClick(&gantt_, Qt::Key_W);
  EXPECT_LT(gantt_.view().per_pixel, all.per_pixel);
  const double from = gantt_.view().from;
  QTest::keyClick(&gantt_, Qt::Key_D);
  EXPECT_GT(gantt_.view().from, from);
  QTest::keyClick(&gantt_, Qt::Key_F);
  EXPECT_DOUBLE_EQ(gantt_.view().per_pixel, all.per_pixel);
}

TEST_F(PlayedTimeline, ShowsAllInAnySizeUntilItIsMoved) {
  const auto shown = [&] { return gantt_.view().per_pixel * gantt_.view().width; };
  const double all = shown();
  gantt_.show();
  gantt_.resize(1800, 500);
  EXPECT_NEAR(shown(), all, 0.01 * all);
  QTest::keyClick(&gantt_, Qt::Key_W);
  const double per_pixel = gantt_.view().per_pixel;
  gantt_.resize(900, 500);
  EXPECT_DOUBLE_EQ(gantt_.view().per_pixel, per_pixel);
}

TEST_F(PlayedTimeline, FindsAnOperationByItsName) {
  const TimelineScene& scene = *play_.step()->scene;
  const std::uint32_t* found = scene.find_after(QStringLiteral("attention"), -1);
  ASSERT_NE(found, nullptr);
  gantt_.show_slice(*found);
  EXPECT_EQ(gantt_.selected(), *found);
  EXPECT_TRUE(scene.details_of(*found).contains(QStringLiteral("attention")));
  EXPECT_EQ(scene.find_after(QStringLiteral("no such operation"), -1), nullptr);
}

// Counted by hand. On each of two tensor-parallel ranks and for a micro-batch of 2,048 tokens, the
// up projection reads 4,096 numbers of two bytes per token and half of the 4,096 × 14,336 weights,
// twice for gate and up.
TEST_F(PlayedTimeline, SaysOfAnOperationItsShapeBytesAndDependencies) {
  const TimelineScene& scene = *play_.step()->scene;
  const std::uint32_t* found = scene.find_after(QStringLiteral("mlp up), forward"), -1);
  ASSERT_NE(found, nullptr);
  const std::string text = scene.details_of(*found).toStdString();
  EXPECT_THAT(text, testing::HasSubstr("GEMM 2048 × 14336 × 4096"));
  EXPECT_THAT(text, testing::HasSubstr("reads 128.0 MiB, writes 56.00 MiB: 2,048 × 14,336"));
  // An exchange on another stream names the kernel that it waits for, which made its message.
  const auto& tracks = scene.tracks();
  const auto exchanges = std::ranges::find_if(tracks, [](const TimelineTrack& track) {
    return track.name.contains(QStringLiteral("tensor"));
  });
  ASSERT_NE(exchanges, tracks.end());
  const bool names_one = std::ranges::any_of(exchanges->slices, [&](std::uint32_t slice) {
    return scene.details_of(slice).contains(QStringLiteral("\nafter "));
  });
  EXPECT_TRUE(names_one) << scene.details_of(exchanges->slices.front()).toStdString();
}

TEST_F(PlayedTimeline, HasMemoryAndLinkLoadOfEveryRank) {
  const StepSimulation& simulation = *play_.step()->simulation;
  for (int rank = 0; rank < 4; ++rank) {
    const auto curves = play_.step()->scene->curves_of(rank);
    ASSERT_EQ(curves.size(), 2u);
    const auto stage = static_cast<std::size_t>(rank);  // folded: one rank plays each stage
    EXPECT_EQ(curves[0].points.size(), simulation.stages[stage].memory.points.size());
    EXPECT_TRUE(curves[0].title.contains(QStringLiteral("buffers, rank %1").arg(rank)));
    EXPECT_TRUE(curves[1].title.endsWith(QStringLiteral("GB/s")));
    EXPECT_TRUE(std::ranges::is_sorted(curves[1].points, {}, &CurvePoint::time));
  }
}

// Each line is one of the command's table: time, share and tasks. A line holds the rest, so that
// the shares sum to the whole path, and a last one the fixed times, by which the step is longer.
TEST_F(PlayedTimeline, TheCriticalPathIsAllThere) {
  const StepSimulation& simulation = *play_.step()->simulation;
  const auto all =
      path_shares(simulation.step, critical_path(simulation.step, simulation.timeline));
  ASSERT_GT(all.size(), 12u);
  Seconds whole, rest;
  for (std::size_t i = 0; i < all.size(); ++i) (i < 12 ? whole : rest) += all[i].time;
  const auto& lines = play_.step()->shares;
  ASSERT_EQ(lines.size(), 14u);
  const Seconds fixed = simulation.step_time - (whole + rest);
  ASSERT_GT(fixed, Seconds(0));
  EXPECT_EQ(lines[13], qt(with_unit(fixed)) + QStringLiteral(" beside the path: fixed times of the "
                                                             "step"));
  const auto share = [&](Seconds time) {
    return QStringLiteral(", %1 %: ").arg(100 * (time / (whole + rest)), 0, 'f', 1);
  };
  EXPECT_TRUE(lines[0].contains(share(all[0].time))) << lines[0].toStdString();
  EXPECT_TRUE(lines[12].contains(share(rest) + QStringLiteral("everything else")))
      << lines[12].toStdString();
}

// 8 B parameters under gpipe: all 32 micro-batches are held at once. `trainyard simulate` says
// "stage 3 needs 183.1 GiB ..., the device has 80.00 GiB".
TEST(StepPlay, SaysWhatPlanItIsOfAndThatItDoesNotFit) {
  const auto question = std::make_shared<Question>(*question_of(R"({"trainyard": "scenario/1",
    "model": "llama-3.1-8b", "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 8192, "stack": "ideal"},
    "plan": {"tensor_parallel": 2, "pipeline_parallel": 4, "schedule": "gpipe"}})",
                                                                "a.json"));
  StepPlay play;
  play.start(question, *requested_plan(question->scenario, question->job), {});
  ASSERT_TRUE(wait_until([&] { return play.step() != nullptr; })) << play.problem().toStdString();
  const std::string summary = play.step()->summary.toStdString();
  EXPECT_THAT(summary, testing::StartsWith("TP 2 · PP 4 · DP 2"));
  EXPECT_THAT(summary, testing::HasSubstr("does not fit: stage 3 needs 183.1 GiB of 80.00 GiB"));
  const TimelineCurve buffers = play.step()->scene->curves_of(3).front();
  EXPECT_DOUBLE_EQ(buffers.limit, 80 * kGiB);
  EXPECT_GT(buffers.most, buffers.limit);
}

TEST_F(PlayedTimeline, DrawsTheDevicesMemoryInTheColourOfAlarm) {
  const TimelineCurve buffers = play_.step()->scene->curves_of(0).front();
  EXPECT_DOUBLE_EQ(buffers.limit, 80 * kGiB);
  EXPECT_DOUBLE_EQ(buffers.most, buffers.limit);  // the plan fits: there is room above the curve
  const QImage image = gantt_.grab().toImage();
  const QRgb alarm = alarm_colour(gantt_.palette()).rgb();
  int of_alarm = 0;
  for (int y = image.height() / 2; y < image.height(); ++y) {
    if (image.pixelColor(image.width() - 40, y).rgb() == alarm) ++of_alarm;
  }
  EXPECT_GE(of_alarm, 1);
}

// The earlier timeline stays.
TEST_F(PlayedTimeline, IsKeptWhereTheNextOneIsCancelled) {
  const auto before = play_.step();
  auto question =
      std::make_shared<Question>(*read_question(example("llama-3.1-405b-16384-h100.json")));
  const Plan plan = *requested_plan(question->scenario, question->job);
  play_.start(question, plan, {});
  play_.cancel();
  ASSERT_TRUE(wait_until([this] { return !play_.busy(); }));
  EXPECT_EQ(play_.step(), before);
  EXPECT_EQ(play_.problem(), QStringLiteral("Cancelled."));
}

constexpr int kLowOfMemory = 70;  // pixels from the bottom, just above the curve of the link load

// No curve is drawn after the end of the step, where nothing is known. A label that the edge would
// cut is left out.
TEST_F(PlayedTimeline, DrawsNoCurveAfterTheStepAndNoHalfLabel) {
  for (int wide = 700; wide < 900; wide += 7) {
    gantt_.resize(wide, 500);
    gantt_.show_all();
    const QImage image = gantt_.grab().toImage();
    const auto* bar = gantt_.findChild<QScrollBar*>();
    const int right = bar->geometry().left() - 1;  // of the plot, which has 1 % after the step
    const QColor base = gantt_.palette().color(QPalette::Base);
    EXPECT_EQ(image.pixelColor(right - 1, gantt_.height() - kLowOfMemory), base) << wide;
    EXPECT_NE(image.pixelColor(right - wide / 20, gantt_.height() - kLowOfMemory), base) << wide;
    const QColor grid = grid_colour(gantt_.palette());
    for (int y = 1; y < gantt_.fontMetrics().height() - 2; ++y) {
      const QColor ink = image.pixelColor(right, y);
      EXPECT_TRUE(ink == base || ink == grid)
          << wide << ", " << y << ": " << ink.name().toStdString();
    }
  }
}

TEST_F(PlayedTimeline, DrawsAsVectorsWhatItPaints) {
  const QString svg = gantt_.drawing().svg();
  EXPECT_TRUE(svg.startsWith(QStringLiteral("<svg")));
  EXPECT_TRUE(svg.contains(QStringLiteral("stage 3")));
  EXPECT_TRUE(svg.contains(QStringLiteral(">weight gradients</text>")));
}

// The model is dense and has no context parallelism, so the legend leaves out experts and context.
TEST_F(PlayedTimeline, SaysWhatItsColoursMean) {
  QStringList words;
  for (const LegendEntry& entry : gantt_.legend()) words.append(entry.text);
  for (const char* there : {"forward", "backward", "optimizer", "pipeline communication"}) {
    EXPECT_TRUE(words.contains(QLatin1String(there))) << there;
  }
  EXPECT_FALSE(words.contains(QStringLiteral("expert-parallel communication")));
  EXPECT_EQ(words.last(), QStringLiteral("waiting"));
}

}  // namespace
}  // namespace trainyard
