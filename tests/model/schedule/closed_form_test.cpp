// Closed forms of spans, compared with handbook §8, with the golden values and with the player.
#include <gtest/gtest.h>

#include <random>

#include "model/schedule/play.h"
#include "model/schedule/rounds.h"
#include "model/schedule/schedule.h"
#include "tests/model/schedule/pass_times.h"

namespace trainyard {
namespace {

const Schedule& named(std::string_view name) { return *find_schedule(name); }

// Stages with forward times f_i and whole backward passes of twice that.
std::vector<PassTimes> stages_of(const std::vector<double>& forward) {
  std::vector<PassTimes> stages;
  for (const double f : forward) stages.push_back(seconds(f, f, f));
  return stages;
}

void expect_span(std::string_view name, PipelineShape shape, const std::vector<PassTimes>& stages,
                 double expected) {
  const Schedule& schedule = named(name);
  shape.route = schedule.route;
  EXPECT_NEAR(longest_span(schedule, shape, stages).value(), expected, 1e-9 * expected) << name;
  EXPECT_NEAR(played(schedule, shape, stages).longest_span.value(), expected, 1e-9 * expected)
      << name << ", played";
}

TEST(ClosedForm, OfGpipeAndOneForwardOneBackwardIsTheGoldenMakespan) {
  // (m+p−1)(F+B+W): 11 · 3 and 39 · 3.
  for (const auto* name : {"gpipe", "1f1b"}) {
    expect_span(name, {4, 1, 8}, equal_stages(4, seconds(1, 1, 1)), 33);
    expect_span(name, {8, 1, 32}, equal_stages(8, seconds(1, 1, 1)), 117);
  }
}

TEST(ClosedForm, OfInterleavedIsTheGoldenMakespan) {
  // m(F+B+W) + (p−1)(F+B+W)/v.
  expect_span("interleaved-1f1b", {4, 2, 8}, equal_stages(4, seconds(1, 1, 1)), 28.5);
  expect_span("interleaved-1f1b", {4, 4, 8}, equal_stages(4, seconds(1, 1, 1)), 26.25);
  expect_span("interleaved-1f1b", {8, 2, 32}, equal_stages(8, seconds(1, 1, 1)), 106.5);
}

TEST(ClosedForm, OfZeroBubbleIsThatOfThePaper) {
  // Qi et al. 2023: ZB-H1 m(F+B+W) + (p−1)(F+B−W), ZB-H2 m(F+B+W) + (p−1)(F+B−2W), W ≤ F.
  expect_span("zb-h1", {8, 1, 24}, equal_stages(8, seconds(1, 1, 1)), 72 + 7 * 1);
  expect_span("zb-h1", {4, 1, 12}, equal_stages(4, seconds(2, 3, 1)), 12 * 6 + 3 * 4);
  expect_span("zb-h2", {8, 1, 24}, equal_stages(8, seconds(1, 1, 1)), 72);
  expect_span("zb-h2", {4, 1, 12}, equal_stages(4, seconds(2, 3, 1)), 12 * 6 + 3 * 3);
}

// With p micro-batches in flight, the first input gradient of stage 0 cannot start before pF +
// (p−1)B, and stage 0 has been busy for pF by then. So the bubble is at least (p−1)B.
TEST(ClosedForm, OfZeroBubbleKnowsThatLongWeightGradientsComeTooLateForTheFirstWait) {
  expect_span("zb-h1", {2, 1, 8}, equal_stages(2, seconds(3, 6, 6)), 8 * 15 + 1 * 6);
  expect_span("zb-h2", {4, 1, 12}, equal_stages(4, seconds(2, 10, 3)), 12 * 15 + 3 * (10 - 2));
}

// Handbook §8: at p = 8, m = 24, F = B = W = 1 no schedule with one chunk a stage ends before 79.
TEST(ClosedForm, OfZbH2HasAMakespanBeyondItsSpan) {
  const auto stages = equal_stages(8, seconds(1, 1, 1));
  EXPECT_NEAR(makespan(named("zb-h2"), {8, 1, 24}, stages).value(), 79, 1e-9);
  EXPECT_NEAR(played(named("zb-h2"), {8, 1, 24}, stages).makespan.value(), 79, 1e-9);
  EXPECT_FALSE(named("zb-h2").optimizer_barrier);
}

// Qi et al. 2024: no bubble when F = B = W, with the activations of p micro-batches.
TEST(ClosedForm, OfZbVHasNoBubbleWithTheMemoryOfOneForwardOneBackward) {
  for (const PipelineShape shape : {PipelineShape{4, 2, 8}, {8, 2, 24}, {6, 2, 11}}) {
    expect_span("zb-v", shape, equal_stages(shape.stages, seconds(2, 2, 2)),
                6.0 * shape.microbatches);
    for (int stage = 0; stage < shape.stages; ++stage) {
      EXPECT_EQ(named("zb-v").chunks_in_flight(shape, stage), 2 * shape.stages);  // of two halves
    }
  }
}

// Handbook §8: p = 8, F = input = weight = 1, F&B = 3: bubble (p/2−1)(F&B + B − 2W) = 6, for any m.
TEST(ClosedForm, OfDualPipeIsThatOfTheReport) {
  for (const int m : {16, 20, 48}) {
    expect_span("dualpipe", {8, 1, m}, equal_stages(8, seconds(1, 1, 1)), 3 * m + 6);
  }
  EXPECT_EQ(named("dualpipe").chunks_in_flight({8, 1, 20}, 3), 9);  // p + 1
  EXPECT_EQ(named("dualpipe").pairs({8, 1, 20}, 0), 20 - 12 + 1);   // m − 3p/2 + 1
}

// (m−q)(F+B+W) + q·F&B + (p/2−1)(F&B + B − 2W), within about 3 % (handbook §8).
TEST(ClosedForm, OfDualPipeGainsWhatItsPairsHide) {
  PassTimes stage = seconds(1, 1.1, 0.9);
  stage.hidden = Seconds(0.6);
  const double pair = 3 - 0.6;
  for (const int m : {32, 64}) {
    const int q = m - 12 + 1;
    const double expected = (m - q) * 3 + q * pair + 3 * (pair + 1.1 - 2 * 0.9);
    const auto run = played(named("dualpipe"), {8, 1, m}, equal_stages(8, stage));
    EXPECT_NEAR(run.longest_span.value() / expected, 1, 0.03) << m;
  }
}

TEST(ClosedForm, GivesTheGoldenBubbleFraction) {
  // p = 16, m = 192: (p−1)/m of the ideal time, (p−1)/(m+p−1) of the total.
  const auto stages = equal_stages(16, seconds(1, 1, 1));
  const double span = longest_span(named("1f1b"), {16, 1, 192}, stages).value();
  const double ideal = 192 * 3;
  EXPECT_NEAR((span - ideal) / ideal, 0.078125, 1e-6);
  EXPECT_NEAR((span - ideal) / span, 0.072464, 1e-6);
}

TEST(ClosedForm, OfUnlikeStagesIsTheGoldenMakespan) {
  expect_span("gpipe", {4, 1, 8}, stages_of({1, 2, 1, 1}), 57);
  expect_span("1f1b", {4, 1, 8}, stages_of({1, 2, 1, 1}), 53);
  expect_span("gpipe", {4, 1, 32}, stages_of({1, 2, 1, 1}), 201);
  expect_span("1f1b", {4, 1, 32}, stages_of({1, 2, 1, 1}), 197);
  expect_span("gpipe", {4, 1, 8}, stages_of({1, 1.3, 0.8, 1.1}), 39.9);
  expect_span("1f1b", {4, 1, 8}, stages_of({1, 1.3, 0.8, 1.1}), 37.8);
}

TEST(ActivationsInFlight, AreTheGoldenOnes) {
  const Schedule& interleaved = named("interleaved-1f1b");
  EXPECT_EQ(interleaved.chunks_in_flight({4, 2, 8}, 0), 11);
  EXPECT_EQ(interleaved.chunks_in_flight({4, 4, 8}, 0), 19);
  EXPECT_EQ(interleaved.chunks_in_flight({8, 2, 32}, 0), 23);
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(named("1f1b").chunks_in_flight({4, 1, 8}, stage), 4 - stage);
    EXPECT_EQ(named("gpipe").chunks_in_flight({4, 1, 8}, stage), 8);
    EXPECT_EQ(named("zb-h1").chunks_in_flight({4, 1, 8}, stage), 4);  // p
    EXPECT_EQ(named("zb-h2").chunks_in_flight({4, 1, 8}, stage), 7);  // 2p − 1
  }
  EXPECT_EQ(interleaved.chunks_in_flight({4, 2, 4}, 0), 8);  // capped at m·v
  EXPECT_EQ(named("1f1b").chunks_in_flight({4, 1, 2}, 0), 2);
}

// The distance of the closed form from the player on unlike stages, relative to the player.
struct Spread {
  double mean = 0, worst = 0;
};

class UnlikeStages {
 public:
  // Draws stages that are up to 30 % longer or shorter than equal ones.
  Spread spread(std::string_view name, int least_microbatches_per_stage) {
    constexpr int kCases = 1000;
    const Schedule& schedule = named(name);
    Spread result;
    for (int i = 0; i < kCases; ++i) {
      const int p = pick(2, 12);
      const int v = schedule.needs_chunks ? pick(2, 5) : 1;
      const int m = p * pick(least_microbatches_per_stage, 6);
      const PassTimes all = seconds(real(1, 2), real(0.8, 2), real(0.5, 1));
      std::vector<PassTimes> stages;
      for (int stage = 0; stage < p; ++stage) stages.push_back(scaled(all, real(0.7, 1.3)));
      const double truth = played(schedule, {p, v, m}, stages).longest_span.value();
      const double error = std::abs(longest_span(schedule, {p, v, m}, stages).value() / truth - 1);
      result.mean += error / kCases;
      result.worst = std::max(result.worst, error);
    }
    return result;
  }

 private:
  static PassTimes scaled(PassTimes t, double factor) {
    return {t.forward * factor, t.input_gradient * factor, t.weight_gradient * factor};
  }
  int pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(random_()) / 4294967296.0;
  }
  std::mt19937 random_{20240229};
};

// F, B and W of all chunks, the chunks of a stage one after the other.
std::vector<PassTimes> unlike_ends(int p, int v, PassTimes layers, double embedding, double head) {
  std::vector<PassTimes> chunks(static_cast<std::size_t>(p) * static_cast<std::size_t>(v), layers);
  chunks.front().forward += Seconds(0.3 * embedding);
  chunks.front().weight_gradient += Seconds(embedding);
  PassTimes& last = chunks.back();
  last.forward += Seconds(head);
  last.input_gradient += Seconds(head);
  last.weight_gradient += Seconds(head);
  return chunks;
}

// An embedding in the first chunk of the first stage and a head in the last chunk of the last.
// Spreading them over all chunks of their stages would give a wrong span. The player is the truth.
TEST(ClosedForm, OfInterleavedKnowsWhichChunksHoldTheEnds) {
  const Schedule& schedule = named("interleaved-1f1b");
  for (const int p : {2, 4, 8}) {
    for (const int v : {2, 3, 4}) {
      for (const int m : {p, 2 * p, 4 * p}) {
        for (const double head : {0.1, 1.0, 4.0}) {
          const auto chunks = unlike_ends(p, v, seconds(1, 1.2, 0.8), 0.5, head);
          const double truth = played(schedule, {p, v, m}, chunks).longest_span.value();
          EXPECT_NEAR(longest_span(schedule, {p, v, m}, chunks).value() / truth, 1, 0.02)
              << "p " << p << " v " << v << " m " << m << " head " << head;
        }
      }
    }
  }
}

// Chunks of n and n + 1 layers, chunks of arbitrary times, and stages of unlike speed. The closed
// form must decide from the times alone which cases it has to play. The player is the truth.
TEST(ClosedForm, OfInterleavedWithUnlikeChunksIsWhatIsPlayed) {
  const Schedule& schedule = named("interleaved-1f1b");
  std::mt19937 random(7);
  const auto drawn = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (const int p : {2, 3, 4, 8}) {
    for (const int v : {2, 3, 4}) {
      for (const int rounds : {1, 2, 3, 5, 12}) {
        for (const bool any : {false, true}) {
          std::vector<PassTimes> chunks = unlike_ends(p, v, seconds(1, 1, 1), 0.5, drawn(0, 2));
          const int longer = 1 + static_cast<int>(drawn(0, p * v - 1));
          for (int i = 0; i < p * v; ++i) {
            const int position = i % v * p + i / v;  // in the network
            const double layers = any ? drawn(0, 3) : position >= 1 && position <= longer ? 2 : 1;
            PassTimes& chunk = chunks[static_cast<std::size_t>(i)];
            chunk.forward *= layers;
            chunk.input_gradient *= layers;
            chunk.weight_gradient *= layers;
          }
          const PipelineShape shape{p, v, rounds * p};
          const Played truth = played(schedule, shape, chunks);
          EXPECT_NEAR(span_of_rounds(shape, chunks) / truth.longest_span, 1, 1e-9)
              << "p " << p << " v " << v << " rounds " << rounds << " longer " << longer;
          if (!chunks_are_unlike(shape, chunks)) continue;
          EXPECT_NEAR(longest_span(schedule, shape, chunks) / truth.longest_span, 1, 1e-9)
              << "p " << p << " v " << v << " rounds " << rounds << " longer " << longer;
          EXPECT_NEAR(makespan(schedule, shape, chunks) / truth.makespan, 1, 1e-9);
        }
      }
    }
  }
}

// Long lists of chunks in which nearly all turns are the same. The speeds of the stages differ by
// so little that it takes many turns to show.
TEST(ClosedForm, OfManyUnlikeChunksIsWhatIsPlayed) {
  const Schedule& schedule = named("interleaved-1f1b");
  std::mt19937 random(11);
  const auto drawn = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (int i = 0; i < 200; ++i) {
    const int p = 2 + i % 5;
    const int v = 6 + static_cast<int>(drawn(0, 60.0 / p));
    const PipelineShape shape{p, v, p * (1 + static_cast<int>(drawn(0, 6)))};
    const int longer = static_cast<int>(drawn(p + 1, p * (v - 1)));
    const double apart = i % 2 == 0 ? 0 : drawn(1e-5, 1e-2);
    std::vector<PassTimes> chunks = unlike_ends(p, v, seconds(1, 1, drawn(0.5, 1)), 0.5, 1.5);
    for (int j = 0; j < p * v; ++j) {
      const double layers = j % v * p + j / v < longer ? 2 : 1;
      const double slower = 1 + apart * (j / v % 3);
      PassTimes& chunk = chunks[static_cast<std::size_t>(j)];
      chunk.forward *= layers * slower;
      chunk.input_gradient *= layers * slower;
      chunk.weight_gradient *= layers / slower;
    }
    ASSERT_TRUE(chunks_are_unlike(shape, chunks));
    const Seconds truth = played(schedule, shape, chunks).longest_span;
    EXPECT_NEAR(longest_span(schedule, shape, chunks) / truth, 1, 1e-11)
        << "p " << p << " v " << v << " m " << shape.microbatches << " longer " << longer;
  }
}

TEST(ClosedForm, OfChunksThatAreAlikeIsThatOfTheirStages) {
  const Schedule& schedule = named("interleaved-1f1b");
  const std::vector<PassTimes> stages = {seconds(2, 2, 2), seconds(3, 4, 3), seconds(1, 2, 2)};
  std::vector<PassTimes> chunks;
  for (const PassTimes& stage : stages) {
    const PassTimes half{stage.forward / 2, stage.input_gradient / 2, stage.weight_gradient / 2,
                         Seconds(0)};
    chunks.insert(chunks.end(), 2, half);
  }
  EXPECT_NEAR(longest_span(schedule, {3, 2, 6}, chunks).value(),
              longest_span(schedule, {3, 2, 6}, stages).value(), 1e-9);
}

// The sends of a micro-batch on its way there and back, p·v − 1 boundaries each way, add to the
// span without them, because nothing else fills the rounds (handbook §8, "the ring closes").
TEST(ClosedForm, OfInterleavedTakesEverySendOfOneWayThereAndBack) {
  const Schedule& schedule = named("interleaved-1f1b");
  for (const PipelineShape shape : {PipelineShape{4, 2, 4}, {4, 3, 8}, {8, 2, 16}, {2, 4, 8}}) {
    PlayTimes times = uniform_times(shape, seconds(1, 1, 1));
    const double without = play(schedule.passes(shape), shape, times)->longest_span.value();
    times.send = Seconds(0.01);
    const double with = play(schedule.passes(shape), shape, times)->makespan.value();
    EXPECT_NEAR(with - without, 2 * (layer_chunks(shape) - 1) * 0.01, 1e-6) << shape.stages;
  }
}

TEST(ClosedForm, OfUnlikeStagesIsCloseToThePlayer) {
  // Handbook §8 gives 1F1B's worst case as 1.4 % on 3,000 random cases; the bounds of the others
  // are measured here.
  const Spread gpipe = UnlikeStages().spread("gpipe", 1);
  EXPECT_LT(gpipe.worst, 1e-9);
  const Spread one_f_one_b = UnlikeStages().spread("1f1b", 2);
  EXPECT_LT(one_f_one_b.worst, 0.014);
  EXPECT_LT(UnlikeStages().spread("1f1b", 1).worst, 0.02);  // m = p too
  EXPECT_LT(one_f_one_b.mean, 0.001);
  const Spread interleaved = UnlikeStages().spread("interleaved-1f1b", 1);
  EXPECT_LT(interleaved.worst, 0.05);
  EXPECT_LT(interleaved.mean, 0.003);
  const Spread zb_h1 = UnlikeStages().spread("zb-h1", 1);
  EXPECT_LT(zb_h1.worst, 0.02);
  EXPECT_LT(zb_h1.mean, 0.001);
  const Spread zb_h2 = UnlikeStages().spread("zb-h2", 2);
  EXPECT_LT(zb_h2.worst, 0.03);
  EXPECT_LT(zb_h2.mean, 0.001);
}

// Two slow stages before many fast ones, as where older nodes take the first layers. Handbook §8's
// form is 15 % below the played 2,569 ms with four micro-batches: it lets the first one come back
// from the last stage before the others have gone forward as far as 1F1B's order wants them.
TEST(ClosedForm, OfSlowStagesBeforeFastOnesIsWhatIsPlayed) {
  std::vector<PassTimes> stages(14, seconds(5, 14, 0));
  for (int i = 0; i < 6; ++i) {
    stages[static_cast<std::size_t>(i)] = i < 2 ? seconds(147, 277, 0) : seconds(29, 59, 0);
  }
  for (int way = 0; way < 2; ++way) {
    for (const int microbatches : {2, 4, 8, 16, 32}) {
      const PipelineShape shape{14, 1, microbatches};
      const Played truth = played(named("1f1b"), shape, stages);
      EXPECT_NEAR(longest_span(named("1f1b"), shape, stages) / truth.longest_span, 1, 1e-3)
          << microbatches;
    }
    // Backward passes shorter than forward ones: the drain decides.
    for (PassTimes& stage : stages) std::swap(stage.forward, stage.input_gradient);
  }
}

// With fewer than 2p − 1 micro-batches ZB-H2 has no closed form for unlike stages (handbook §8).
TEST(ClosedForm, OfZbH2WithFewMicrobatchesAndUnlikeStagesIsWhatIsPlayed) {
  for (const int microbatches : {2, 3, 4, 6}) {
    std::vector<PassTimes> stages;
    for (const double layers : {7, 9, 7, 4}) {
      stages.push_back(seconds(layers, 1.1 * layers, 0.9 * layers));
    }
    const PipelineShape shape{4, 1, microbatches};
    const Played truth = played(named("zb-h2"), shape, stages);
    EXPECT_NEAR(longest_span(named("zb-h2"), shape, stages) / truth.longest_span, 1, 1e-9);
    EXPECT_NEAR(makespan(named("zb-h2"), shape, stages) / truth.makespan, 1, 1e-9);
  }
}

}  // namespace
}  // namespace trainyard
