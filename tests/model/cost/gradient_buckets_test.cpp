#include "model/cost/sharding/gradient_buckets.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "tests/model/cost/data_parallel_traffic.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// A bucket's layers; whether it has the head, the embedding.
struct Bucket {
  int layers = 0;
  bool head = false, embedding = false;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

// Unit by unit from the head to the embedding, as the stack's own code goes through parameters: a
// bucket that has the limit is closed.
std::vector<Bucket> one_by_one(const ChunkParameters& chunk, double limit) {
  std::vector<Bucket> all;
  Bucket open;
  double held = 0;
  const auto close = [&] {
    if (open != Bucket{}) all.push_back(open);
    open = {};
    held = 0;
  };
  const auto take = [&](double parameters) {
    held += parameters;
    if (held >= limit) close();
  };
  if (chunk.head > 0) {
    open.head = true;
    take(chunk.head);
    if (chunk.apart.head) close();
  }
  for (int layer = 0; layer < chunk.layers; ++layer) {
    ++open.layers;
    take(chunk.layer);
  }
  if (chunk.embedding > 0) {
    if (chunk.apart.embedding) close();
    open.embedding = true;
  }
  close();
  return all;
}

std::vector<Bucket> listed(const ChunkParameters& chunk, const BucketedChunk& cut) {
  std::vector<Bucket> all;
  if (chunk.head > 0) all.push_back({cut.with_head, true, false});
  for (int i = 0; i < cut.full; ++i) all.push_back({cut.each, false, false});
  const bool embedding = chunk.embedding > 0;
  const bool joins_head = cut.one && embedding && !chunk.apart.embedding;
  if (joins_head) all.back().embedding = true;
  const bool joins = embedding && !cut.one && !chunk.apart.embedding;
  if (cut.rest > 0 || joins) all.push_back({cut.rest, false, joins});
  if (embedding && chunk.apart.embedding) all.push_back({0, false, true});
  return all;
}

// A head of 30 and a layer of 20 are more than 40; then come two layers, twice.
TEST(GradientBuckets, AreFilledFromTheHeadOn) {
  const ChunkParameters chunk{.embedding = 30, .layer = 20, .head = 30, .layers = 5};
  const BucketedChunk cut = bucketed(chunk, 40);
  EXPECT_EQ(listed(chunk, cut),
            (std::vector<Bucket>{
                {1, true, false}, {2, false, false}, {2, false, false}, {0, false, true}}));
  EXPECT_EQ(cut.messages, 4);
}

TEST(GradientBuckets, WithoutALimitAreOne) {
  const ChunkParameters chunk{.embedding = 30, .layer = 20, .head = 30, .layers = 5};
  const BucketedChunk cut = bucketed(chunk, kNoLimit);
  EXPECT_EQ(listed(chunk, cut), (std::vector<Bucket>{{5, true, true}}));
  EXPECT_EQ(cut.messages, 1);
}

TEST(GradientBuckets, AreThoseOfAWalkThroughTheUnits) {
  std::mt19937 random(3);
  const auto some = [&](unsigned most) { return static_cast<double>(random() % most); };
  for (int draw = 0; draw < 5000; ++draw) {
    const ChunkParameters chunk{.embedding = some(40),
                                .layer = 1 + some(20),
                                .head = some(40),
                                .layers = 1 + static_cast<int>(random() % 9),
                                .apart = {random() % 3 == 0, random() % 3 == 0}};
    const double limit = random() % 4 == 0 ? kNoLimit : 1 + some(80);
    const BucketedChunk cut = bucketed(chunk, limit);
    const std::vector<Bucket> walked = one_by_one(chunk, limit);
    ASSERT_EQ(listed(chunk, cut), walked) << draw;
    ASSERT_EQ(cut.messages, static_cast<int>(walked.size())) << draw;
  }
}

// Megatron-LM: max(40 million, 1 million a data-parallel rank); one bucket behind the first chunk
// of the first stage.
TEST(GradientBuckets, GrowWithTheRanksOnTheFirstStage) {
  Stack stack;
  stack.bucket_parameters = 4e7;
  stack.bucket_parameters_per_rank = 1e6;
  Plan plan;
  plan.pipeline_parallel = 2;
  plan.data_parallel = 16;
  EXPECT_EQ(bucket_limit(stack, plan, {0, 0}), 4e7);
  plan.data_parallel = 2048;
  EXPECT_EQ(bucket_limit(stack, plan, {0, 0}), 2.048e9);
  EXPECT_EQ(bucket_limit(stack, plan, {1, 0}), kNoLimit);
  EXPECT_EQ(bucket_limit(stack, plan, {0, 1}), kNoLimit);
  plan.pipeline_parallel = 1;  // a schedule's chunks follow each other as if they were one
  EXPECT_EQ(bucket_limit(stack, plan, {0, 1}), 2.048e9);
}

}  // namespace
}  // namespace trainyard
