// How layers are dealt to chunks (design §3), in the order in which a micro-batch passes the
// chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "model/plan/dealt_layers.h"
#include "model/plan/plan.h"
#include "tests/model/plan/question.h"

namespace trainyard {
namespace {

std::vector<int> layers(int stages, int chunks, int layer_count) {
  Plan plan;
  plan.pipeline_parallel = stages;
  plan.virtual_stages = chunks;
  std::vector<int> result;
  for (int chunk = 0; chunk < stages * chunks; ++chunk) {
    const LayersOfChunks of_chunks(plan, layer_count);
    EXPECT_EQ(of_chunks.before(chunk), std::accumulate(result.begin(), result.end(), 0));
    result.push_back(of_chunks[chunk]);
  }
  return result;
}

TEST(LayersOfChunk, AreEvenWhenTheChunksDivideThem) {
  EXPECT_EQ(layers(4, 1, 32), (std::vector{8, 8, 8, 8}));
  EXPECT_EQ(layers(2, 2, 8), (std::vector{2, 2, 2, 2}));
  EXPECT_EQ(layers(1, 1, 7), (std::vector{7}));
  EXPECT_EQ(layers(2, 1, 2), (std::vector{1, 1}));  // even comes before embedding and head
}

TEST(LayersOfChunk, CountEmbeddingAndHeadAsALayerEach) {
  EXPECT_EQ(layers(8, 1, 30), (std::vector{3, 4, 4, 4, 4, 4, 4, 3}));
  EXPECT_EQ(layers(2, 2, 6), (std::vector{1, 2, 2, 1}));
  EXPECT_EQ(layers(4, 1, 2), (std::vector{0, 1, 1, 0}));  // p·v − 2 layers: chunks without any
}

TEST(LayersOfChunk, ElseMakeTheChunksAfterTheFirstLonger) {
  EXPECT_EQ(layers(4, 1, 33), (std::vector{8, 9, 8, 8}));  // r = 1: chunk 1
  EXPECT_EQ(layers(4, 1, 35), (std::vector{8, 9, 9, 9}));  // r = 3: chunks 1 … 3
  EXPECT_EQ(layers(2, 1, 5), (std::vector{2, 3}));
  EXPECT_EQ(layers(4, 1, 3), (std::vector{0, 1, 1, 1}));
}

TEST(LayersOfChunk, SumToTheNetworkForEveryShape) {
  for (int chunks = 1; chunks <= 24; ++chunks) {
    for (int count = std::max(1, chunks - 2); count <= 60; ++count) {
      const auto all = layers(chunks, 1, count);
      EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0), count) << chunks << " chunks";
    }
  }
}

// In a loop a stage has every p-th chunk.
TEST(LayersOfChunk, OfAStageAreThoseOfItsChunks) {
  const auto expect_sums = [](const Plan& plan, int layer_count) {
    const LayersOfChunks of_chunks(plan, layer_count);
    for (int stage = 0; stage < plan.pipeline_parallel; ++stage) {
      int sum = 0;
      for (int chunk = 0; chunk < plan.virtual_stages; ++chunk) {
        sum += of_chunks[chunk * plan.pipeline_parallel + stage];
      }
      EXPECT_EQ(of_chunks.of_stage(stage), sum) << layer_count << " layers, stage " << stage;
    }
  };
  Plan plan;
  for (int chunks = 1; chunks <= 30; ++chunks) {
    plan.pipeline_parallel = 1 + chunks % 5;
    plan.virtual_stages = 1 + chunks / 5;
    for (int count = 1; count <= 70; ++count) expect_sums(plan, count);
  }
  plan.pipeline_parallel = 2;
  plan.virtual_stages = 2;
  plan.layers_per_stage = {3, 1, 4, 2};
  expect_sums(plan, 10);
}

TEST(LayersPerStage, AreTakenAsTheyAreNamed) {
  PlanQuestion question;  // 32 layers
  question.request.pipeline_parallel = 4;
  question.request.layers_per_stage = {7, 9, 9, 7};
  const Plan plan = question.answer().value();
  EXPECT_EQ(LayersOfChunks(plan, 32)[0], 7);
  EXPECT_EQ(LayersOfChunks(plan, 32)[1], 9);
  EXPECT_EQ(LayersOfChunks(plan, 32).before(2), 16);
}

TEST(LayersPerStage, SpreadOverTheChunksOfAStage) {
  PlanQuestion question;
  question.request.pipeline_parallel = 2;
  question.request.virtual_stages = 2;
  question.request.layers_per_stage = {20, 12};  // stage 0 has chunks 0 and 2
  EXPECT_EQ(question.answer()->layers_per_stage, (std::vector{10, 6, 10, 6}));
  question.request.layers_per_stage = {9, 7, 9, 7};  // one per chunk
  EXPECT_EQ(question.answer()->layers_per_stage, (std::vector{9, 7, 9, 7}));
}

TEST(LayersPerStage, AreRefusedWhenTheyDoNotFit) {
  PlanQuestion question;
  question.request.pipeline_parallel = 2;
  question.request.layers_per_stage = {16, 15};
  EXPECT_EQ(question.refusal(), "/plan/layers_per_stage: found 31 layers in all, allowed 32");
  question.request.layers_per_stage = {16, 16, 0};
  EXPECT_EQ(question.refusal(), "/plan/layers_per_stage: found 3 entries, allowed 2");
  question.request.layers_per_stage = {33, -1};
  EXPECT_EQ(question.refusal(), "/plan/layers_per_stage/1: found -1, allowed 0 or more");
  question.request.layers_per_stage = {32, 0};
  EXPECT_EQ(question.refusal(), "legal");
  question.request.virtual_stages = 2;
  question.request.layers_per_stage = {17, 15};
  EXPECT_EQ(question.refusal(),
            "/plan/layers_per_stage/0: found 17, allowed a multiple of virtual_stages 2, or 4 "
            "entries, one a chunk");
  question.request.layers_per_stage = {32};
  EXPECT_EQ(question.refusal(),
            "/plan/layers_per_stage: found 1 entries, allowed 2 (stages) or 4 (chunks)");
}

// ---- Layers that are dealt to the chunks of a stage ---------------------------------------------

std::vector<int> dealt(const std::vector<int>& chunks, int count) {
  std::vector<int> result(chunks.size());
  deal_layers(chunks, count, result);
  return result;
}

TEST(DealtLayers, AreAsManyOfEachChunkWhereTheChunksDivideThem) {
  EXPECT_EQ(dealt({4, 4}, 6), (std::vector{3, 3}));
  EXPECT_EQ(dealt({3, 3, 2}, 3), (std::vector{1, 1, 1}));
  EXPECT_EQ(dealt({7}, 5), (std::vector{5}));
}

TEST(DealtLayers, GoToTheFirstChunksWhereTheyAreNotDivided) {
  EXPECT_EQ(dealt({4, 4}, 5), (std::vector{3, 2}));
  EXPECT_EQ(dealt({3, 3, 2}, 4), (std::vector{2, 1, 1}));
}

TEST(DealtLayers, GoToTheOtherChunksWhereOneHasNoMore) {
  EXPECT_EQ(dealt({1, 4, 2}, 6), (std::vector{1, 3, 2}));
  EXPECT_EQ(dealt({0, 2}, 1), (std::vector{0, 1}));
  EXPECT_EQ(dealt({2, 2}, 9), (std::vector{2, 2}));
}

// The fewest layers left behind the dealt ones in a chunk, over the chunks that were dealt any.
int fewest_behind(const std::vector<int>& chunks, int count) {
  const std::vector<int> of_chunks = dealt(chunks, count);
  int fewest = 1000;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    if (of_chunks[chunk] > 0) fewest = std::min(fewest, chunks[chunk] - of_chunks[chunk]);
  }
  return fewest;
}

TEST(DealtLayers, HaveAtLeastSoManyBehindThem) {
  for (const std::vector<int>& chunks :
       {std::vector{5}, {3, 3}, {1, 4}, {4, 2, 3}, {2, 2, 2, 2}, {0, 3}, {6, 1, 5, 1}}) {
    const auto held = static_cast<int>(chunks.size());
    const int all = std::accumulate(chunks.begin(), chunks.end(), 0);
    const int smallest = *std::ranges::min_element(chunks);
    const bool alike = smallest * held == all;
    for (int count = 1; count <= all; ++count) {
      const int least = layers_behind(smallest, held, count);
      EXPECT_LE(least, fewest_behind(chunks, count)) << held << " chunks, " << count;
      if (alike) {
        EXPECT_EQ(least, fewest_behind(chunks, count)) << held << " chunks, " << count;
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
