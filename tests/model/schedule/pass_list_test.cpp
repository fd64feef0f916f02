// Pass lists as the papers draw them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>

#include "model/schedule/listed.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

// The list as text, "F0 F1 B0 …"; with several chunks, "F0.1" is micro-batch 0 in chunk 1. B is the
// whole backward pass, or the input gradient if the list has W.
std::string list_of(std::string_view name, PipelineShape shape, std::size_t stage) {
  std::vector<std::string> passes;
  const PassList lists = find_schedule(name)->passes(shape);
  for (const Pass& pass : lists[stage]) {
    const bool weight = pass.kind == PassKind::weight_gradient;
    const char kind = pass.kind == PassKind::forward ? 'F' : weight ? 'W' : 'B';
    passes.push_back(shape.chunks == 1 ? fmt::format("{}{}", kind, pass.microbatch)
                                       : fmt::format("{}{}.{}", kind, pass.microbatch, pass.chunk));
  }
  return fmt::format("{}", fmt::join(passes, " "));
}

TEST(PassList, OfGpipeTurnsBackAfterTheLastForward) {  // Huang 2019, figure 2c
  EXPECT_EQ(list_of("gpipe", {2, 1, 3}, 0), "F0 F1 F2 B2 B1 B0");
}

TEST(PassList, OfOneForwardOneBackwardIsNarayananFigure4) {
  EXPECT_EQ(list_of("1f1b", {4, 1, 8}, 0), "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  EXPECT_EQ(list_of("1f1b", {4, 1, 3}, 3), "F0 B0 F1 B1 F2 B2");
}

TEST(PassList, OfInterleavedIsNarayananFigure4) {
  // p = 4, v = 2: the last device runs micro-batches 1–4 of chunk 0, then one forward, one backward
  // of chunk 1.
  EXPECT_EQ(list_of("interleaved-1f1b", {4, 2, 4}, 3),
            "F0.0 F1.0 F2.0 F3.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 F3.1 B3.1 B0.0 B1.0 B2.0 B3.0");
  EXPECT_EQ(list_of("interleaved-1f1b", {2, 2, 4}, 0),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
}

TEST(PassList, OfZeroBubbleIsQiFigure3) {
  EXPECT_EQ(list_of("zb-h1", {2, 1, 4}, 0), "F0 F1 B0 W0 F2 B1 W1 F3 B2 W2 B3 W3");
  EXPECT_EQ(list_of("zb-h1", {2, 1, 4}, 1), "F0 B0 F1 B1 W0 F2 B2 W1 F3 B3 W2 W3");
  EXPECT_EQ(list_of("zb-h2", {2, 1, 4}, 0), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(list_of("zb-h2", {2, 1, 4}, 1), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

TEST(PassList, OfZbVTurnsRoundOnTheLastStage) {  // Qi 2024: p = 2, as many in flight as 1F1B
  EXPECT_EQ(list_of("zb-v", {2, 2, 3}, 1),
            "F0.0 F0.1 F1.0 F1.1 B0.1 W0.1 F2.0 B0.0 W0.0 F2.1 B1.1 W1.1 B1.0 B2.1 B2.0 W1.0 W2.1 "
            "W2.0");
}

TEST(Schedule, OfAVTakesTwoChunksAndOfTwoWaysEvenNumbers) {
  EXPECT_EQ(find_schedule("zb-v")->accepts({4, 3, 8}).error().message,
            "found 3 with zb-v, allowed 2");
  const Schedule& dualpipe = *find_schedule("dualpipe");
  EXPECT_TRUE(dualpipe.accepts({4, 1, 8}));
  EXPECT_EQ(dualpipe.accepts({3, 1, 8}).error().where, "/plan/pipeline_parallel");
  EXPECT_EQ(dualpipe.accepts({4, 2, 8}).error().where, "/plan/virtual_stages");
  EXPECT_EQ(dualpipe.accepts({4, 1, 6}).error().where, "/plan/micro_batch");
  EXPECT_EQ(dualpipe.accepts({4, 1, 9}).error().where, "/plan/micro_batch");
}

TEST(Schedule, RefusesChunksThatItDoesNotHave) {
  for (const auto* name : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {
    EXPECT_TRUE(find_schedule(name)->accepts({4, 1, 8})) << name;
    const auto refused = find_schedule(name)->accepts({4, 2, 8});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().where, "/plan/virtual_stages");
    EXPECT_EQ(refused.error().message, "found 2 with " + std::string(name) + ", allowed 1");
  }
}

TEST(Schedule, OfInterleavingNeedsStagesChunksAndMultiplesOfTheStages) {
  const Schedule& interleaved = *find_schedule("interleaved-1f1b");
  EXPECT_TRUE(interleaved.accepts({2, 2, 2}));
  EXPECT_EQ(interleaved.accepts({1, 2, 2}).error().where, "/plan/pipeline_parallel");
  EXPECT_EQ(interleaved.accepts({2, 1, 2}).error().where, "/plan/virtual_stages");
  EXPECT_EQ(interleaved.accepts({4, 2, 7}).error().where, "/plan/micro_batch");
  EXPECT_TRUE(interleaved.accepts({4, 2, 8}));
  EXPECT_EQ(interleaved.accepts({4, 2, 9}).error().where, "/plan/micro_batch");
}

TEST(Schedule, IsNullWhenNoneHasTheName) {
  EXPECT_EQ(find_schedule("2f2b"), nullptr);
  EXPECT_EQ(find_schedule(""), nullptr);
}

// A schedule given as a pass list declares the same properties as the named schedule.
TEST(PassList, OfAUserDeclaresWhatItsPassesShow) {
  for (const std::string_view name : {"1f1b", "zb-h1", "zb-h2"}) {
    const Schedule& named = *find_schedule(name);
    const PipelineShape shape = named.shape(4, 1, 8);
    const auto listed = list_schedule("mine", shape, named.passes(shape), true);
    ASSERT_TRUE(listed.has_value());
    const Schedule& own = (*listed)->descriptor;
    EXPECT_EQ(own.splits_backward, named.splits_backward) << name;
    for (int stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(own.weight_gradients_at_end(own.shape(4, 1, 8), stage),
                named.weight_gradients_at_end(shape, stage))
          << name << ", stage " << stage;
      EXPECT_EQ(own.chunks_between_halves(own.shape(4, 1, 8), stage),
                named.chunks_between_halves(shape, stage))
          << name << ", stage " << stage;
      EXPECT_EQ(own.chunks_in_flight(own.shape(4, 1, 8), stage),
                named.chunks_in_flight(shape, stage))
          << name << ", stage " << stage;
    }
  }
}

}  // namespace
}  // namespace trainyard
