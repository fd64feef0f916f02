// Laws that hold for every registered schedule on every shape that it accepts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string>

#include "model/schedule/play.h"
#include "model/schedule/schedule.h"
#include "tests/model/schedule/pass_times.h"

namespace trainyard {
namespace {

// F, B and W in picoseconds; they are divisible by the numbers of chunks in accepted_shapes().
constexpr std::array<std::array<int, 3>, 6> kTimes = {
    {{6, 6, 6}, {12, 12, 6}, {6, 12, 6}, {12, 6, 6}, {6, 18, 12}, {18, 6, 12}}};

class EverySchedule : public ::testing::TestWithParam<const Schedule*> {
 protected:
  const Schedule& schedule() const { return *GetParam(); }

  std::vector<PipelineShape> accepted_shapes() const {
    std::vector<PipelineShape> shapes;
    for (const int stages : {1, 2, 3, 4, 8}) {
      for (const int chunks : {1, 2, 3}) {
        for (const int microbatches : {1, 2, 3, 4, 6, 8, 12, 24}) {
          const PipelineShape shape = schedule().shape(stages, chunks, microbatches);
          if (schedule().accepts(shape)) shapes.push_back(shape);
        }
      }
    }
    return shapes;
  }
};

std::string describe(PipelineShape shape) {
  return fmt::format("p {}, v {}, m {}", shape.stages, shape.chunks, shape.microbatches);
}

// The positions in a stage's list of the passes of one micro-batch and chunk, by kind; -1 if
// absent.
class Positions {
 public:
  Positions(const std::vector<Pass>& list, int microbatch, int chunk) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].microbatch == microbatch && list[i].chunk == chunk) {
        at_[static_cast<std::size_t>(list[i].kind)] = static_cast<int>(i);
      }
    }
  }
  int of(PassKind kind) const { return at_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<int, 4> at_{-1, -1, -1, -1};
};

// The boundaries between stages on a micro-batch's way; the turn of a V is none.
int boundaries(PipelineShape shape) {
  return layer_chunks(shape) - (shape.route == Route::vee ? 2 : 1);
}

TEST_P(EverySchedule, IsFoundByItsNameAndAcceptsSomeShape) {
  EXPECT_EQ(find_schedule(schedule().name), &schedule());
  EXPECT_FALSE(accepted_shapes().empty());
}

TEST_P(EverySchedule, RunsEveryPassOnceAndInOrder) {
  for (const PipelineShape shape : accepted_shapes()) {
    SCOPED_TRACE(describe(shape));
    const PassList lists = schedule().passes(shape);
    std::vector<std::size_t> found(lists.size());
    for (int i = 0; i < shape.microbatches; ++i) {
      for (int c = 0; c < layer_chunks(shape); ++c) {
        const ChunkPlace place = place_of(shape, i, c);
        const auto stage = static_cast<std::size_t>(place.stage);
        const Positions at(lists[stage], i, place.chunk);
        const bool whole = at.of(PassKind::backward) >= 0;
        const int b = at.of(whole ? PassKind::backward : PassKind::input_gradient);
        ASSERT_GE(at.of(PassKind::forward), 0);
        ASSERT_GT(b, at.of(PassKind::forward));
        if (!whole) {
          ASSERT_TRUE(schedule().splits_backward);
          ASSERT_GT(at.of(PassKind::weight_gradient), b);
        }
        found[stage] += whole ? 2 : 3;
      }
    }
    // All passes were found, and a list has as many passes as there are different ones, so each is
    // there once.
    for (std::size_t i = 0; i < lists.size(); ++i) EXPECT_EQ(lists[i].size(), found[i]);
  }
}

// A single stage waits for nobody. Software runs it without a pipeline, with whole backward passes.
TEST_P(EverySchedule, PutsNothingOffWithoutAPipeline) {
  EXPECT_FALSE(splits_backward(schedule(), 1));
  for (const PipelineShape shape : accepted_shapes()) {
    if (shape.stages > 1) continue;
    const PassList lists = schedule().passes(shape);
    for (const Pass& pass : lists.front()) {
      EXPECT_TRUE(pass.kind == PassKind::forward || pass.kind == PassKind::backward)
          << describe(shape);
    }
  }
}

// Counts the weight gradients after the last pass of another kind.
TEST_P(EverySchedule, LeavesTheWeightGradientsItDeclaresForTheEnd) {
  for (const PipelineShape shape : accepted_shapes()) {
    if (shape.chunks > 1 || shape.route != Route::loop) continue;
    const PassList lists = schedule().passes(shape);
    for (int stage = 0; stage < shape.stages; ++stage) {
      const auto& list = lists[static_cast<std::size_t>(stage)];
      const auto other = std::find_if(list.rbegin(), list.rend(), [](const Pass& pass) {
        return pass.kind != PassKind::weight_gradient;
      });
      const auto left = std::max<std::ptrdiff_t>(1, other - list.rbegin());
      EXPECT_EQ(left, schedule().weight_gradients_at_end(shape, stage)) << describe(shape);
    }
  }
}

TEST_P(EverySchedule, HoldsTheActivationsItDeclares) {
  for (const PipelineShape shape : accepted_shapes()) {
    SCOPED_TRACE(describe(shape));
    const PassList lists = schedule().passes(shape);
    const Played run = played(schedule(), shape, std::vector(lists.size(), seconds(1, 1, 1)));
    for (int stage = 0; stage < shape.stages; ++stage) {
      int held = 0;
      int most = 0;
      for (const Pass& pass : lists[static_cast<std::size_t>(stage)]) {
        if (pass.kind == PassKind::forward) most = std::max(most, ++held);
        if (pass.kind == PassKind::backward || pass.kind == PassKind::weight_gradient) --held;
      }
      EXPECT_EQ(held, 0);
      EXPECT_EQ(most, schedule().chunks_in_flight(shape, stage));
      EXPECT_EQ(most, run.chunks_in_flight[static_cast<std::size_t>(stage)]);
    }
  }
}

// Chunks of 1, 4 and 9 bytes, or in the reverse order; expected is the maximum over the pass list.
TEST_P(EverySchedule, KeepsTheMostOfItsUnlikeChunks) {
  for (const PipelineShape shape : accepted_shapes()) {
    SCOPED_TRACE(describe(shape));
    const PassList lists = schedule().passes(shape);
    for (const bool growing : {true, false}) {
      std::vector<Bytes> of_chunks;
      for (int chunk = 0; chunk < chunks_held(shape); ++chunk) {
        const double root = growing ? chunk + 1 : chunks_held(shape) - chunk;
        of_chunks.emplace_back(root * root);
      }
      for (int stage = 0; stage < shape.stages; ++stage) {
        Bytes held, most;
        for (const Pass& pass : lists[static_cast<std::size_t>(stage)]) {
          const Bytes of_chunk = of_chunks[static_cast<std::size_t>(pass.chunk)];
          if (pass.kind == PassKind::forward) most = std::max(most, held += of_chunk);
          if (pass.kind == PassKind::backward) held -= of_chunk;
          if (pass.kind == PassKind::weight_gradient) held -= of_chunk;
        }
        EXPECT_EQ(most, most_kept(schedule(), shape, stage, of_chunks)) << "stage " << stage;
      }
    }
  }
}

// An input gradient counts from its begin on.
TEST_P(EverySchedule, HasTheChunksItDeclaresBetweenTheHalvesOfBackward) {
  for (const PipelineShape shape : accepted_shapes()) {
    SCOPED_TRACE(describe(shape));
    const PassList lists = schedule().passes(shape);
    for (int stage = 0; stage < shape.stages; ++stage) {
      int between = 0;
      int most = 0;
      for (const Pass& pass : lists[static_cast<std::size_t>(stage)]) {
        if (pass.kind == PassKind::input_gradient) most = std::max(most, ++between);
        if (pass.kind == PassKind::weight_gradient) --between;
      }
      EXPECT_EQ(between, 0);
      EXPECT_EQ(most, schedule().chunks_between_halves(shape, stage)) << "stage " << stage;
    }
  }
}

TEST_P(EverySchedule, HasTheChunksItDeclaresPastTheirInputGradient) {
  for (const PipelineShape shape : accepted_shapes()) {
    SCOPED_TRACE(describe(shape));
    const PassList lists = schedule().passes(shape);
    for (int stage = 0; stage < shape.stages; ++stage) {
      int before = 0;
      int most = 0;
      for (const Pass& pass : lists[static_cast<std::size_t>(stage)]) {
        if (pass.kind == PassKind::forward) most = std::max(most, ++before);
        if (pass.kind != PassKind::forward && pass.kind != PassKind::weight_gradient) --before;
      }
      const int past = schedule().chunks_past_input_gradient(shape, stage);
      EXPECT_EQ(most, schedule().chunks_in_flight(shape, stage) - past) << "stage " << stage;
    }
  }
}

TEST_P(EverySchedule, PairsThePassesItDeclares) {
  for (const PipelineShape shape : accepted_shapes()) {
    const PassList lists = schedule().passes(shape);
    for (int stage = 0; stage < shape.stages; ++stage) {
      const auto& list = lists[static_cast<std::size_t>(stage)];
      const auto paired = std::ranges::count_if(list, [](const Pass& pass) { return pass.paired; });
      EXPECT_EQ(paired, schedule().pairs(shape, stage)) << describe(shape);
    }
  }
}

// Handbook §8: beside its own m micro-batches, a stage's span has the fill of the p − 1 other
// stages. Schedules with two copies of the layers have none, because their layers are not dealt one
// by one.
TEST_P(EverySchedule, FillsAsItsSpanOverEqualStagesSays) {
  EXPECT_EQ(schedule().fill == nullptr, schedule().route == Route::both_ways);
  if (schedule().fill == nullptr) return;
  int compared = 0;
  for (const PipelineShape shape : accepted_shapes()) {
    if (shape.microbatches < 2 * shape.stages - 1) continue;
    for (const auto& [f, b, w] : kTimes) {
      const PassTimes stage = picoseconds(f, b, w);
      const bool exact =
          schedule().in_domain != nullptr ? schedule().in_domain(shape, stage) : f == b && b == w;
      if (!exact || w > f) continue;
      ++compared;
      SCOPED_TRACE(describe(shape) + fmt::format(", F {} B {} W {}", f, b, w));
      const Played run = played(schedule(), shape, equal_stages(shape.stages, stage));
      const double own = shape.microbatches * (f + b + w);
      const double others = (shape.stages - 1) * (f + b + w);
      EXPECT_NEAR(run.longest_span.value() * 1e12, own + others * schedule().fill(shape, stage),
                  1e-6);
    }
  }
  EXPECT_GT(compared, 0);
}

class EveryClosedForm : public EverySchedule {};

TEST_P(EveryClosedForm, IsWhatIsPlayedInsideItsDomain) {
  int in_domain = 0;
  for (const PipelineShape shape : accepted_shapes()) {
    for (const auto& [f, b, w] : kTimes) {
      const PassTimes stage = picoseconds(f, b, w);
      if (!schedule().in_domain(shape, stage)) continue;
      ++in_domain;
      SCOPED_TRACE(describe(shape) + fmt::format(", F {} B {} W {}", f, b, w));
      const auto stages = equal_stages(shape.stages, stage);
      const Played run = played(schedule(), shape, stages);
      EXPECT_EQ(in_picoseconds(run.longest_span),
                in_picoseconds(schedule().closed_span(shape, stages)));
      EXPECT_EQ(in_picoseconds(run.makespan),
                in_picoseconds(schedule().closed_makespan(shape, stages)));
    }
  }
  EXPECT_GT(in_domain, 0);
}

// A stage cannot take less than its own work, and a micro-batch not less than its way forward and
// back.
TEST_P(EverySchedule, NeverBeatsTheBusiestStageOrTheLongestWay) {
  for (const PipelineShape shape : accepted_shapes()) {
    SCOPED_TRACE(describe(shape));
    std::vector<PassTimes> stages;
    double busiest = 0;
    double way = 0;
    for (int i = 0; i < shape.stages; ++i) {
      const double f = 1 + 0.25 * (i % 3);
      stages.push_back(seconds(f, f, f / 2));
      busiest = std::max(busiest, stages.back().total().value() * shape.microbatches);
      way += f + f;
    }
    const Played run = played(schedule(), shape, stages);
    EXPECT_GE(run.longest_span.value(), busiest * (1 - 1e-9));
    EXPECT_GE(run.makespan.value(), way * (1 - 1e-9));
    EXPECT_GE(longest_span(schedule(), shape, stages).value(), busiest * (1 - 1e-9));
  }
}

TEST_P(EverySchedule, IsNotShortenedBySends) {
  for (const PipelineShape shape : accepted_shapes()) {
    SCOPED_TRACE(describe(shape));
    const PassList lists = schedule().passes(shape);
    PlayTimes times = uniform_times(shape, seconds(1, 1, 1));
    const Seconds without = play(lists, shape, times)->makespan;
    times.send = Seconds(0.5);
    const Seconds with = play(lists, shape, times)->makespan;
    if (shape.stages == 1) {
      EXPECT_EQ(with, without);
    } else {  // the first micro-batch's way there and back
      EXPECT_GE(with.value(), without.value());
      EXPECT_GE(with.value(), 2 * boundaries(shape) * 0.5);
    }
  }
}

std::vector<const Schedule*> with_closed_form() {
  std::vector<const Schedule*> closed;
  std::ranges::copy_if(schedules(), std::back_inserter(closed),
                       [](const Schedule* schedule) { return schedule->closed_span != nullptr; });
  return closed;
}

std::string name_of(const ::testing::TestParamInfo<const Schedule*>& instance) {
  std::string name(instance.param->name);
  std::erase_if(name, [](unsigned char c) { return !std::isalnum(c); });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, EverySchedule, ::testing::ValuesIn(schedules()), name_of);
INSTANTIATE_TEST_SUITE_P(Table, EveryClosedForm, ::testing::ValuesIn(with_closed_form()), name_of);

}  // namespace
}  // namespace trainyard
