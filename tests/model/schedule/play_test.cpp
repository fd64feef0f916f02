#include "model/schedule/play.h"

#include <gtest/gtest.h>

#include "tests/model/schedule/pass_times.h"

namespace trainyard {
namespace {

constexpr PassKind F = PassKind::forward;
constexpr PassKind FullB = PassKind::backward;
constexpr PassKind B = PassKind::input_gradient;
constexpr PassKind W = PassKind::weight_gradient;

Expected<Played> play_equal(const PassList& lists, PipelineShape shape, Seconds send = Seconds(0)) {
  PlayTimes times = uniform_times(shape, seconds(1, 1, 1));
  times.send = send;
  return play(lists, shape, times);
}

// F of stage 0 in [0, 1], of stage 1 in [1, 2]; backward of stage 1 in [2, 4], of stage 0 in [4,
// 6].
TEST(Player, RunsOneMicroBatchThereAndBack) {
  const PassList lists = {{{F, 0, 0}, {FullB, 0, 0}}, {{F, 0, 0}, {FullB, 0, 0}}};
  const auto run = play_equal(lists, {2, 1, 1});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->makespan, Seconds(6));
  EXPECT_EQ(run->start, (std::vector{Seconds(0), Seconds(1)}));
  EXPECT_EQ(run->end, (std::vector{Seconds(6), Seconds(4)}));
  EXPECT_EQ(run->longest_span, Seconds(6));
}

TEST(Player, DelaysEverySendBetweenStages) {
  const PassList lists = {{{F, 0, 0}, {FullB, 0, 0}}, {{F, 0, 0}, {FullB, 0, 0}}};
  EXPECT_EQ(play_equal(lists, {2, 1, 1}, Seconds(0.25))->makespan, Seconds(6.5));
}

// Two chunks a stage: p·v − 1 = 3 boundaries each way, the ring from stage 1 to stage 0 included.
TEST(Player, ClosesTheRingOfChunks) {
  const PassList lists(2, {{F, 0, 0}, {F, 0, 1}, {FullB, 0, 1}, {FullB, 0, 0}});
  const auto run = play_equal(lists, {2, 2, 1}, Seconds(0.25));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->makespan, Seconds(4 * 1.5 + 6 * 0.25));  // a chunk is half a stage
  EXPECT_EQ(run->chunks_in_flight, (std::vector{2, 2}));
}

// In a V, chunk 1 of stage 1 follows chunk 0 of the same stage without a send; chunk 1 of stage 0
// is the last.
TEST(Player, TurnsAVRoundOnTheLastStage) {
  const PassList lists(2, {{F, 0, 0}, {F, 0, 1}, {FullB, 0, 1}, {FullB, 0, 0}});
  const auto run = play_equal(lists, {2, 2, 1, Route::vee}, Seconds(0.25));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->makespan, Seconds(4 * 1.5 + 4 * 0.25));
}

// Micro-batch 0 starts at stage 0, micro-batch 1 at stage 1. Stage 1 runs both forward passes in
// [0, 2] and the backward pass of 0 in [2, 4]. The pair on stage 0 ends at 4 + 3, less what it
// hides; then come the two backward passes of 1.
TEST(Player, RunsAPairInTheTimeOfBothLessWhatItHides) {
  const PassList lists = {{{F, 0, 0}, {F, 1, 1, true}, {FullB, 0, 0}, {FullB, 1, 1}},
                          {{F, 1, 1}, {F, 0, 0}, {FullB, 0, 0}, {FullB, 1, 1}}};
  PassTimes stage = seconds(1, 1, 1);
  PipelineShape shape{2, 1, 2, Route::both_ways};
  EXPECT_EQ(play(lists, shape, uniform_times(shape, stage))->makespan, Seconds(11));
  stage.hidden = Seconds(1);
  EXPECT_EQ(play(lists, shape, uniform_times(shape, stage))->makespan, Seconds(10));
}

TEST(Player, RefusesAPairWithoutABackwardPass) {
  const PassList lists = {{{F, 0, 0, true}, {B, 0, 0}, {W, 0, 0}}};
  EXPECT_EQ(play_equal(lists, {1, 1, 1}).error().message,
            "stage 0: forward of micro-batch 0, chunk 0 is paired with no backward");
}

TEST(Player, SendsNothingOnOneStage) {
  const PassList lists = {{{F, 0, 0}, {F, 0, 1}, {FullB, 0, 1}, {FullB, 0, 0}}};
  EXPECT_EQ(play_equal(lists, {1, 2, 1}, Seconds(7))->makespan, Seconds(3));
}

TEST(Player, FreesActivationsAtTheEndOfTheWeightGradient) {
  const PassList late = {{{F, 0, 0}, {B, 0, 0}, {F, 1, 0}, {W, 0, 0}, {B, 1, 0}, {W, 1, 0}}};
  EXPECT_EQ(play_equal(late, {1, 1, 2})->chunks_in_flight, (std::vector{2}));
  const PassList prompt = {{{F, 0, 0}, {B, 0, 0}, {W, 0, 0}, {F, 1, 0}, {B, 1, 0}, {W, 1, 0}}};
  EXPECT_EQ(play_equal(prompt, {1, 1, 2})->chunks_in_flight, (std::vector{1}));
}

// 1,000 additions of 12.3 ms in doubles are not 1,000 · 12.3 ms; picoseconds are exact.
TEST(Player, AddsWholePicoseconds) {
  std::vector<Pass> list;
  for (int i = 0; i < 1000; ++i) {
    list.push_back({F, i, 0});
    list.push_back({FullB, i, 0});
  }
  const PlayTimes times = uniform_times({1, 1, 1000}, seconds(12.3e-3, 0, 0));
  const auto run = play({list}, {1, 1, 1000}, times);
  ASSERT_TRUE(run);
  EXPECT_EQ(in_picoseconds(run->makespan), 12'300'000'000'000);
}

// Passes of three years, in the order of RunsOneMicroBatchThereAndBack: more picoseconds than 64
// bits hold.
TEST(Player, PlaysStepsOfCenturies) {
  const PassList lists = {{{F, 0, 0}, {FullB, 0, 0}}, {{F, 0, 0}, {FullB, 0, 0}}};
  const PipelineShape shape{2, 1, 1};
  const auto run = play(lists, shape, uniform_times(shape, seconds(1e8, 1e8, 1e8)));
  ASSERT_TRUE(run);
  EXPECT_NEAR(run->makespan.value(), 6e8, 1e-3);
}

TEST(Player, NamesTheStageAndPassOfADeadlock) {
  // Stage 0 wants micro-batch 0 back before it has sent it.
  const PassList lists = {{{FullB, 0, 0}, {F, 0, 0}}, {{F, 0, 0}, {FullB, 0, 0}}};
  const auto run = play_equal(lists, {2, 1, 1});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().message,
            "stage 0: backward of micro-batch 0, chunk 0 waits for ever: a deadlock");
}

TEST(Player, FindsADeadlockBetweenStages) {
  // Stage 0 sends micro-batch 1 only after micro-batch 0 is back, but stage 1 wants 1 first.
  const PassList lists = {{{F, 0, 0}, {FullB, 0, 0}, {F, 1, 0}, {FullB, 1, 0}},
                          {{F, 1, 0}, {FullB, 1, 0}, {F, 0, 0}, {FullB, 0, 0}}};
  const auto run = play_equal(lists, {2, 1, 2});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().message,
            "stage 0: backward of micro-batch 0, chunk 0 waits for ever: a deadlock");
}

TEST(Player, RefusesAWeightGradientBeforeItsInputGradient) {
  const auto run = play_equal({{{F, 0, 0}, {W, 0, 0}, {B, 0, 0}}}, {1, 1, 1});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().message,
            "stage 0: weight gradient of micro-batch 0, chunk 0 waits for ever: a deadlock");
}

TEST(Player, NamesAMissingPass) {
  const PassList lists = {{{F, 0, 0}, {FullB, 0, 0}}, {{F, 0, 0}}};
  EXPECT_EQ(play_equal(lists, {2, 1, 1}).error().message,
            "stage 1: backward of micro-batch 0, chunk 0 is missing");
  EXPECT_EQ(play_equal({{{F, 0, 0}, {B, 0, 0}}}, {1, 1, 1}).error().message,
            "stage 0: weight gradient of micro-batch 0, chunk 0 is missing");
}

TEST(Player, NamesARepeatedPass) {
  EXPECT_EQ(play_equal({{{F, 0, 0}, {F, 0, 0}, {FullB, 0, 0}}}, {1, 1, 1}).error().message,
            "stage 0: forward of micro-batch 0, chunk 0 is repeated");
  // A whole backward pass contains the weight gradient.
  EXPECT_EQ(play_equal({{{F, 0, 0}, {FullB, 0, 0}, {W, 0, 0}}}, {1, 1, 1}).error().message,
            "stage 0: weight gradient of micro-batch 0, chunk 0 is repeated");
}

TEST(Player, NamesAPassThatDoesNotExist) {
  EXPECT_EQ(play_equal({{{F, 1, 0}}}, {1, 1, 1}).error().message,
            "stage 0: forward of micro-batch 1, chunk 0 is out of range");
  EXPECT_EQ(play_equal({{{F, 0, -1}}}, {1, 1, 1}).error().message,
            "stage 0: forward of micro-batch 0, chunk -1 is out of range");
  EXPECT_EQ(play_equal({}, {2, 1, 1}).error().message, "found 0 stages, allowed 2");
}

}  // namespace
}  // namespace trainyard
