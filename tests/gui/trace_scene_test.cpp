#include <gtest/gtest.h>

#include <algorithm>

#include "gui/charts/gantt.h"
#include "gui/presenters/timeline/step_play.h"
#include "gui/presenters/timeline/timeline_scene.h"
#include "scenarios/write/spans.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

// Two ranks as predicted and as measured; the second one's messages were not measured.
std::string trace_of_a_run() {
  std::vector<Span> spans;
  for (const char* rank : {"rank 0", "rank 1"}) {
    for (const char* what : {" predicted", " measured"}) {
      const double slow = std::string(what) == " measured" ? 3 : 1;
      const std::string process = std::string(rank) + what;
      spans.push_back(
          {process, "compute", "linear (mlp up), forward", Seconds(0), Seconds(1e-3 * slow)});
      spans.push_back({process, "compute", "linear weight gradient (mlp up), backward",
                       Seconds(1e-3 * slow), Seconds(3e-3 * slow)});
      if (process == "rank 1 measured") continue;
      spans.push_back({process, "tensor", "all-reduce (tensor), forward", Seconds(3e-3 * slow),
                       Seconds(4e-3 * slow)});
    }
  }
  return span_trace(spans);
}

class OpenedTrace : public testing::Test {
 protected:
  void SetUp() override {
    play_.open(written("run-trace.json", trace_of_a_run()));
    ASSERT_TRUE(wait_until([this] { return !play_.busy(); }));
    ASSERT_NE(play_.step(), nullptr) << play_.problem().toStdString();
  }
  const TimelineScene& scene() { return *play_.step()->scene; }
  const TimelineTrack& track(const char* name) {
    return *std::ranges::find(scene().tracks(), QString::fromUtf8(name), &TimelineTrack::name);
  }
  StepPlay play_;
};

TEST_F(OpenedTrace, PutsWhatWasMeasuredAndPredictedOnOneTrack) {
  QStringList names;
  for (const TimelineTrack& track : scene().tracks()) names.append(track.name);
  EXPECT_EQ(names,
            QStringList({QStringLiteral("rank 0 · compute"), QStringLiteral("rank 0 · tensor"),
                         QStringLiteral("rank 1 · compute"),
                         QStringLiteral("rank 1 predicted · tensor")}));
  EXPECT_TRUE(scene().compares());
  const TimelineTrack& compute = track("rank 1 · compute");
  ASSERT_EQ(compute.slices.size(), 2u);
  ASSERT_EQ(compute.predicted.size(), 2u);
  EXPECT_EQ(scene().times_of(compute.slices[0]).end, Picoseconds(3'000'000'000));
  EXPECT_EQ(scene().times_of(compute.predicted[0]).end, Picoseconds(1'000'000'000));
  EXPECT_TRUE(track("rank 1 predicted · tensor").predicted.empty());
}

TEST_F(OpenedTrace, SaysOfAnOperationWhatWasPredicted) {
  const TimelineTrack& compute = track("rank 0 · compute");
  const QString details = scene().details_of(compute.slices[1]);
  EXPECT_EQ(details, QStringLiteral("linear weight gradient (mlp up), backward\n"
                                    "6.000 ms from 3.000 ms to 9.000 ms\n"
                                    "predicted 2.000 ms from 1.000 ms to 3.000 ms"));
  EXPECT_EQ(scene().kind_of(compute.slices[0]), SliceKind::forward);
  EXPECT_EQ(scene().kind_of(compute.slices[1]), SliceKind::weight_gradient);
  EXPECT_EQ(scene().kind_of(track("rank 0 · tensor").slices[0]), SliceKind::tensor_parallel);
}

// A rank's measured and predicted memory are on one curve; the other rank has no curve.
TEST(TraceCurves, ShowWhatWasMeasuredAndPredictedTogether) {
  const auto counter = [](const char* process, double most) {
    return TraceCounter{process, "memory", "GiB", {{Seconds(0), 1}, {Seconds(1e-3), most}}};
  };
  const std::string of_run =
      span_trace({{"rank 0 predicted", "compute", "linear, forward", Seconds(0), Seconds(1e-3)},
                  {"rank 0 measured", "compute", "linear, forward", Seconds(0), Seconds(3e-3)},
                  {"rank 1 measured", "compute", "linear, forward", Seconds(0), Seconds(3e-3)}},
                 {counter("rank 0 predicted", 2), counter("rank 0 measured", 3)});
  StepPlay play;
  play.open(written("curves-trace.json", of_run));
  ASSERT_TRUE(wait_until([&] { return !play.busy(); }));
  ASSERT_NE(play.step(), nullptr) << play.problem().toStdString();
  const auto curves = play.step()->scene->curves_of(0);
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].title,
            QStringLiteral("memory, rank 0\nat most 3.000 GiB\npredicted 2.000 GiB"));
  ASSERT_EQ(curves[0].points.size(), 2u);
  ASSERT_EQ(curves[0].predicted.size(), 2u);
  EXPECT_DOUBLE_EQ(curves[0].points[1].value, 3.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(curves[0].predicted[1].value, 2.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(curves[0].most, 3.0 * (1 << 30));
  EXPECT_TRUE(play.step()->scene->curves_of(1).empty());
}

// Counted by hand: two ranks, each with 6 ms measured and 2 ms predicted.
TEST_F(OpenedTrace, AddsUpOperationsOfOneName) {
  const auto sums = scene().sums(2);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].name, QStringLiteral("linear weight gradient (mlp up), backward"));
  EXPECT_EQ(sums[0].operations, 2);
  EXPECT_NEAR(sums[0].time.value(), 12e-3, 1e-12);
  EXPECT_NEAR(sums[0].predicted.value(), 4e-3, 1e-12);
}

// 1.5 µs after 20 s: with four digits both ends would be 20.00 s.
TEST(TraceDetails, TellTheEndsOfAShortOperationApart) {
  StepPlay play;
  play.open(written(
      "late-trace.json",
      span_trace({{"rank 0", "compute", "norm, forward", Seconds(0), Seconds(20)},
                  {"rank 0", "compute", "linear, forward", Seconds(20), Seconds(20 + 1.5e-6)}})));
  ASSERT_TRUE(wait_until([&] { return !play.busy(); }));
  ASSERT_NE(play.step(), nullptr) << play.problem().toStdString();
  const TimelineScene& scene = *play.step()->scene;
  EXPECT_EQ(scene.details_of(scene.tracks().front().slices.back()),
            QStringLiteral("linear, forward\n1.500 µs from 20.000000000 s to 20.000001500 s"));
}

// Tracks have the order of the streams of a simulated rank, whatever their order in the file.
TEST(SimulatedTrace, HasItsTracksAndSumsAsASimulationHasThem) {
  StepPlay play;
  play.open(written("order-trace.json",
                    span_trace({{"stage 0", "receive", "receive, forward", Seconds(0), Seconds(9)},
                                {"stage 0", "data", "all-gather (data)", Seconds(1), Seconds(2)},
                                {"stage 0", "compute", "linear, forward", Seconds(2), Seconds(4)},
                                {"stage 1", "data", "all-gather (data)", Seconds(1), Seconds(2)},
                                {"stage 1", "compute", "linear, forward", Seconds(2), Seconds(4)},
                                {"stage 0", "own", "step", Seconds(0), Seconds(1)}})));
  ASSERT_TRUE(wait_until([&] { return !play.busy(); }));
  ASSERT_NE(play.step(), nullptr) << play.problem().toStdString();
  QStringList names;
  for (const TimelineTrack& track : play.step()->scene->tracks()) names.append(track.name);
  EXPECT_EQ(names,
            QStringList({QStringLiteral("stage 0 · compute"), QStringLiteral("stage 0 · receive"),
                         QStringLiteral("stage 0 · data"), QStringLiteral("stage 0 · own"),
                         QStringLiteral("stage 1 · compute"), QStringLiteral("stage 1 · data")}));
  const std::vector<QString>& shares = play.step()->shares;
  ASSERT_EQ(shares.size(), 4u);
  EXPECT_TRUE(shares.front().contains(QStringLiteral("linear, forward")))
      << shares.front().toStdString();
  EXPECT_TRUE(shares.back().contains(QStringLiteral("receive"))) << shares.back().toStdString();
  EXPECT_TRUE(shares.back().endsWith(QStringLiteral("waiting included")));
}

// A norm was predicted beside the GEMM and not measured.
TEST(TraceSums, AreOfOperationsThatWereMeasured) {
  StepPlay play;
  play.open(written(
      "predicted-alone-trace.json",
      span_trace({{"rank 0 predicted", "compute", "norm, forward", Seconds(0), Seconds(1e-3)},
                  {"rank 0 predicted", "compute", "linear, forward", Seconds(1e-3), Seconds(2e-3)},
                  {"rank 0 measured", "compute", "linear, forward", Seconds(0), Seconds(3e-3)}})));
  ASSERT_TRUE(wait_until([&] { return !play.busy(); }));
  ASSERT_NE(play.step(), nullptr) << play.problem().toStdString();
  const auto sums = play.step()->scene->sums(12);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].name, QStringLiteral("linear, forward"));
  EXPECT_EQ(sums[0].operations, 1);
}

// The messages of rank 1 were predicted only: they are a track, but not among the operations of the
// run.
TEST_F(OpenedTrace, AddsUpNoTrackThatOnlyThePredictionHas) {
  const auto sums = scene().sums(12);
  const auto messages =
      std::ranges::find(sums, QStringLiteral("all-reduce (tensor), forward"), &TimelineSum::name);
  ASSERT_NE(messages, sums.end());
  EXPECT_EQ(messages->operations, 1);
  EXPECT_NEAR(messages->time.value(), 3e-3, 1e-12);
}

TEST_F(OpenedTrace, IsDrawnMeasuredAbovePredicted) {
  Gantt gantt;
  gantt.resize(900, 500);
  gantt.set_scene(play_.step()->scene);
  // The spans of the trace, and what their colours mean.
  const auto swatches = static_cast<int>(gantt.legend().size());
  EXPECT_EQ(gantt.drawing().svg().count(QStringLiteral("<rect")), 11 + swatches);
  EXPECT_FALSE(gantt.grab().isNull());
}

// The earlier timeline stays.
TEST_F(OpenedTrace, IsKeptWhereTheNextOneIsCancelled) {
  const auto before = play_.step();
  std::vector<Span> spans(40000, {"rank 0", "compute", "linear", Seconds(0), Seconds(1)});
  const auto file = written("large-trace.json", span_trace(spans));
  QObject::connect(&play_, &StepPlay::progressed, [this](double fraction) {
    EXPECT_GT(fraction, 0);
    play_.cancel();
  });
  play_.open(file);
  ASSERT_TRUE(wait_until([this] { return !play_.busy(); }));
  EXPECT_EQ(play_.step(), before);
  EXPECT_EQ(play_.problem(), QStringLiteral("Cancelled."));
}

// The page says why, and that the one before is below.
TEST_F(OpenedTrace, StaysWhereTheNextOneIsNone) {
  const auto before = play_.step();
  play_.open(written("no-trace.json", "{}"));
  ASSERT_TRUE(wait_until([this] { return !play_.busy(); }));
  EXPECT_EQ(play_.step(), before);
  EXPECT_TRUE(play_.problem().contains(QStringLiteral("no-trace.json: found no \"traceEvents\"")))
      << play_.problem().toStdString();
}

}  // namespace
}  // namespace trainyard
