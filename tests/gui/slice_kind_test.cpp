#include "gui/presenters/timeline/slice_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "gui/presenters/text.h"
#include "gui/presenters/timeline/timeline_scene.h"
#include "scenarios/question.h"
#include "scenarios/read_trace.h"
#include "scenarios/scenario_text.h"
#include "scenarios/write/trace.h"
#include "simulator/step.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

std::shared_ptr<const StepSimulation> simulated(const std::string& model, const std::string& plan) {
  const auto question = question_of(R"({"trainyard": "scenario/1", "model": ")" + model + R"(",
      "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
      "training": {"global_batch": 16, "sequence_length": 2048}, "plan": )" +
                                        plan + "}",
                                    "a.json");
  if (!question) {
    ADD_FAILURE() << question.error().where << ": " << question.error().message;
    return nullptr;
  }
  const auto made = requested_plan(question->scenario, question->job);
  auto played = simulate(question->job, *made);
  return std::make_shared<const StepSimulation>(*std::move(played));
}

constexpr const char* kOverlaps =
    R"("overlap": {"tensor_parallel": true, "context_parallel": true, "expert_parallel": true,
                   "pipeline": true, "data_parallel": true})";
constexpr const char* kNoOverlaps =
    R"("overlap": {"tensor_parallel": false, "context_parallel": false, "expert_parallel": false,
                   "pipeline": false, "data_parallel": false})";

// Together these steps use every stream, and play the work of every stream among the kernels too.
// gpt-oss-20b has biases of experts, which the ranks that share an expert reduce beside the
// kernels.
std::vector<std::shared_ptr<const StepSimulation>> steps_on_every_stream() {
  std::vector<std::shared_ptr<const StepSimulation>> steps;
  for (const std::string overlap : {kOverlaps, kNoOverlaps}) {
    steps.push_back(simulated("llama-3.1-8b", R"({"tensor_parallel": 2, "sequence_parallel": true,
        "pipeline_parallel": 2, "context_parallel": 2, "offload": {"activations": "host"}, )" +
                                                  overlap + "}"));
    steps.push_back(simulated("gpt-oss-20b", R"({"tensor_parallel": 2, "expert_parallel": 2,
        "expert_tensor_parallel": 2, "pipeline_parallel": 2, )" +
                                                 overlap + "}"));
    steps.push_back(simulated("gpt2-355m", R"({"pipeline_parallel": 2, )" + overlap + "}"));
  }
  return steps;
}

// The streams of the handbook's parallelisms, named one by one.
TEST(SliceKind, IsThatOfItsTrackForEveryNameThatATraceHas) {
  const std::map<Stream, SliceKind> played = {{Stream::tensor, SliceKind::tensor_parallel},
                                              {Stream::context, SliceKind::context_parallel},
                                              {Stream::expert, SliceKind::expert_parallel},
                                              {Stream::pipeline, SliceKind::pipeline},
                                              {Stream::gradient, SliceKind::pipeline},
                                              {Stream::receive, SliceKind::other},
                                              {Stream::data, SliceKind::data_parallel},
                                              {Stream::embedding, SliceKind::data_parallel},
                                              {Stream::copy, SliceKind::copy},
                                              {Stream::fetch, SliceKind::copy}};
  for (int i = 1; i < kStreams; ++i) {
    const auto stream = static_cast<Stream>(i);
    EXPECT_EQ(kind_of_track(name_of(stream)), played.at(stream)) << name_of(stream);
  }
  const std::map<ProgramStream, SliceKind> own = {
      {ProgramStream::tensor_parallel, SliceKind::tensor_parallel},
      {ProgramStream::context_parallel, SliceKind::context_parallel},
      {ProgramStream::expert_parallel, SliceKind::expert_parallel},
      {ProgramStream::pipeline, SliceKind::pipeline},
      {ProgramStream::data_parallel, SliceKind::data_parallel},
      {ProgramStream::embedding, SliceKind::data_parallel},
      {ProgramStream::copy, SliceKind::copy},
      {ProgramStream::fetch, SliceKind::copy}};
  for (int i = 1; i < kProgramStreams; ++i) {
    const auto stream = static_cast<ProgramStream>(i);
    const std::string name(name_of(stream));
    EXPECT_EQ(kind_of_track(name), own.at(stream)) << name;
    EXPECT_EQ(kind_of_track(name + ", beside kernels"), own.at(stream)) << name;
  }
  EXPECT_EQ(kind_of_track("pipeline, sends backward"), SliceKind::pipeline);
  EXPECT_EQ(kind_of_track("pipeline, receives"), SliceKind::other);
  for (const char* by_operation : {"compute", "launch", "stream 7", ""}) {
    EXPECT_EQ(kind_of_track(by_operation), std::nullopt) << by_operation;
  }
}

TEST(SliceKind, OfAnExchangeAmongKernelsIsThatOfWhomItJoins) {
  EXPECT_EQ(kind_of_operation("all-reduce (tensor), forward"), SliceKind::tensor_parallel);
  EXPECT_EQ(kind_of_operation("all-gather (kv-head) again, backward"), SliceKind::tensor_parallel);
  EXPECT_EQ(kind_of_operation("pass on (context), forward"), SliceKind::context_parallel);
  EXPECT_EQ(kind_of_operation("dispatch (expert), forward"), SliceKind::expert_parallel);
  EXPECT_EQ(kind_of_operation("all-gather (expert-tensor), forward"), SliceKind::expert_parallel);
  EXPECT_EQ(kind_of_operation("reduce-scatter (shard), backward"), SliceKind::data_parallel);
  EXPECT_EQ(kind_of_operation("send, backward"), SliceKind::pipeline);
  EXPECT_EQ(kind_of_operation("receive, forward"), SliceKind::other);
  EXPECT_EQ(kind_of_operation("copy, finish"), SliceKind::copy);
  EXPECT_EQ(kind_of_operation("optimizer step (shard), finish"), SliceKind::optimizer);
  EXPECT_EQ(kind_of_operation("serial part of the sharded update"), SliceKind::optimizer);
  EXPECT_EQ(kind_of_operation("linear (mlp up) again, backward"), SliceKind::recompute);
  EXPECT_EQ(kind_of_operation("send"), SliceKind::pipeline);
  EXPECT_EQ(kind_of_operation("ncclKernel (tensor"), SliceKind::other);
}

// Without sequence parallelism all tensor-parallel communication is on the compute stream. There
// its slices add up to the tensor-parallel part of the breakdown.
TEST(SliceKind, OfTensorParallelTimeAddsUpToTheBreakdowns) {
  for (const char* overlap : {kOverlaps, kNoOverlaps}) {
    const auto simulation = simulated(
        "llama-3.1-8b",
        std::string(R"({"tensor_parallel": 8, "sequence_parallel": false, )") + overlap + "}");
    const auto scene = TimelineScene::of(simulation);
    Seconds shown;
    for (const TimelineTrack& track : scene->tracks()) {
      if (track.rank != simulation->rank || !track.is_compute) continue;
      for (const std::uint32_t slice : track.slices) {
        const TaskTimes& times = scene->times_of(slice);
        if (scene->kind_of(slice) != SliceKind::tensor_parallel) continue;
        shown += to_seconds(times.end - times.start);
      }
    }
    EXPECT_GT(shown, Seconds(0));
    EXPECT_NEAR(shown / simulation->breakdown.tensor_parallel, 1, 1e-6) << overlap;
  }
}

// Track, times, name and kind of each slice. The name of a weight-gradient kernel says "backward"
// only, so both kinds count as one here.
using Drawn = std::multiset<std::tuple<std::string, std::int64_t, std::int64_t, std::string, int>>;
Drawn drawn(const TimelineScene& scene) {
  Drawn all;
  for (const TimelineTrack& track : scene.tracks()) {
    for (const std::uint32_t slice : track.slices) {
      const TaskTimes& times = scene.times_of(slice);
      if (times.end == times.start) continue;
      SliceKind kind = scene.kind_of(slice);
      if (kind == SliceKind::weight_gradient) kind = SliceKind::backward;
      all.emplace(track.name.toStdString(), times.start.count(), times.end.count(),
                  scene.name_of(slice).toStdString(), static_cast<int>(kind));
    }
  }
  return all;
}

TEST(SliceKind, IsTheSameOfASimulationAndOfItsTraceOnEveryStream) {
  std::set<std::string> seen;
  for (const auto& simulation : steps_on_every_stream()) {
    ASSERT_NE(simulation, nullptr);
    const auto file = written("kinds-trace.json", "");
    ASSERT_TRUE(write_trace(file, *simulation, [] { return false; }));
    auto trace = read_trace(file);
    ASSERT_TRUE(trace) << trace.error().message;
    const auto scene = TimelineScene::of(simulation);
    const auto read = TimelineScene::of(std::make_shared<const SavedTrace>(*std::move(trace)));
    const Drawn before = drawn(*scene), after = drawn(*read);
    ASSERT_EQ(before.size(), after.size());
    const auto differ = std::ranges::mismatch(before, after);
    if (differ.in1 != before.end()) {
      FAIL() << testing::PrintToString(*differ.in1) << "\n" << testing::PrintToString(*differ.in2);
    }
    for (const TimelineTrack& track : scene->tracks()) {
      const std::string name = track.name.toStdString();
      seen.insert(name.substr(name.find("· ") + std::string("· ").size()));
    }
  }
  for (int stream = 0; stream < kStreams; ++stream) {
    EXPECT_TRUE(seen.contains(std::string(name_of(static_cast<Stream>(stream)))))
        << name_of(static_cast<Stream>(stream));
  }
}

}  // namespace
}  // namespace trainyard
