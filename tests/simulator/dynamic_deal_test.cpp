// Dynamic micro-batches. Their number and content is counted by hand and by a second, simpler deal.
// Their cost is compared with steps of jobs that have those batches from the start.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "model/workload/flop.h"
#include "tests/model/workload/models.h"
#include "tests/simulator/disturbed_step.h"

namespace trainyard {
namespace {

constexpr std::int64_t kFull = 4096;

// Llama-3.1-8B with sequences of 4096 tokens on several replicas of one stage, or on as many stages
// as a schedule asks for.
struct DynamicJob {
  std::int64_t global_batch = 8;
  int replicas = 1;
  int micro_batch = 1;
  const char* schedule = "1f1b";
  int stages = 1;
  int chunks = 1;
};

DealtSequences dynamic_deal(SequenceMix mix, const DynamicJob& job) {
  mix.dynamic = true;
  Training training = modern();
  training.global_batch = job.global_batch;
  Plan plan;
  plan.data_parallel = job.replicas;
  plan.micro_batch = job.micro_batch;
  plan.schedule = find_schedule(job.schedule);
  plan.pipeline_parallel = job.stages;
  plan.virtual_stages = job.chunks;
  return deal(mix, llama_8b(), training, plan, 0);
}

std::vector<double> tokens_in(const std::vector<SequenceWork>& replica, int micro_batch = 1) {
  std::vector<double> tokens;
  for (const SequenceWork& of : replica) {
    tokens.push_back(of.tokens * micro_batch * static_cast<double>(kFull));
  }
  return tokens;
}

// ---- How many, and what is in them --------------------------------------------------------------

TEST(DynamicMicrobatches, OfSequencesOfHalfTheLengthAreHalfAsMany) {
  const DealtSequences found =
      dynamic_deal({.lengths = {2048}}, {.global_batch = 16, .replicas = 2});
  ASSERT_EQ(found.work.size(), 2U);
  for (const auto& replica : found.work) {
    ASSERT_EQ(replica.size(), 4U);
    for (const SequenceWork& of : replica) {
      EXPECT_EQ(of.tokens, 1);
      EXPECT_NEAR(of.attention, 0.5, 1e-3);  // two of (l/s)² = 1/4 each
    }
  }
  EXPECT_EQ(found.tokens, 0.5);
}

TEST(DynamicMicrobatches, OfFullSequencesAreThePlans) {
  const DealtSequences found =
      dynamic_deal({.lengths = {kFull}}, {.global_batch = 24, .replicas = 2, .micro_batch = 3});
  for (const auto& replica : found.work) {
    EXPECT_EQ(tokens_in(replica, 3), std::vector<double>(4, 3.0 * kFull));
  }
}

// The micro-batches of one replica are all full, those of the other a quarter. Both replicas have
// as many as the first one needs.
TEST(DynamicMicrobatches, AreAsManyAsTheFullestReplicaNeeds) {
  const SequenceMix turns{.lengths = {4096, 1024}};
  const DealtSequences found = dynamic_deal(turns, {.global_batch = 8, .replicas = 2});
  EXPECT_EQ(tokens_in(found.work[0]), std::vector<double>(4, 4096));
  EXPECT_EQ(tokens_in(found.work[1]), std::vector<double>(4, 1024));
}

// Dealt over both replicas, four micro-batches are full, and two hold half of the short sequences
// each.
TEST(DynamicMicrobatches, BalancedAreDealtOverAllReplicas) {
  const SequenceMix turns{.lengths = {4096, 1024}, .balanced = true};
  const DealtSequences found = dynamic_deal(turns, {.global_batch = 8, .replicas = 2});
  for (const auto& replica : found.work) {
    EXPECT_EQ(tokens_in(replica), (std::vector<double>{2048, 4096, 4096}));
  }
}

// 16,384 tokens could be packed into four micro-batches of 4,096 (4096; 2048 + 2048; 3000 + 1096;
// 2048 + 1024 + 1024). But dealing them evenly into four puts 3096 + 1024 > 4096 into one, so the
// deal needs five.
TEST(DynamicMicrobatches, AreThoseOfTheEvenDealNotOfTheTightestPacking) {
  const SequenceMix mix{.lengths = {4096, 2048, 1024, 1024, 3000, 1096, 2048, 2048}};
  const DealtSequences found = dynamic_deal(mix, {.global_batch = 8});
  std::vector<double> tokens = tokens_in(found.work[0]);
  EXPECT_EQ(tokens.size(), 5U);
  EXPECT_EQ(std::accumulate(tokens.begin(), tokens.end(), 0.0), 16384);
}

// The order of verl: by size, first the first, third, … backwards, then the second, fourth, …
TEST(DynamicMicrobatches, BeginAndEndWithTheSmallest) {
  const SequenceMix mix{.lengths = {4096, 3900, 3800, 3700, 3600, 3500}};
  EXPECT_EQ(tokens_in(dynamic_deal(mix, {.global_batch = 6}).work[0]),
            (std::vector<double>{3600, 3800, 4096, 3900, 3700, 3500}));
  EXPECT_EQ(tokens_in(dynamic_deal(mix, {.global_batch = 5}).work[0]),
            (std::vector<double>{3600, 3800, 4096, 3900, 3700}));
}

// Each length is another power of two, so the tokens of a micro-batch tell which sequences it has.
TEST(DynamicMicrobatches, HaveEverySequenceOnce) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t bit = 1; bit <= kFull; bit *= 2) lengths.push_back(bit);
  const auto count = static_cast<std::int64_t>(lengths.size());
  const DealtSequences found = dynamic_deal({.lengths = lengths}, {.global_batch = count});
  ASSERT_EQ(found.work[0].size(), 2U);  // 8,191 tokens
  std::int64_t seen = 0;
  for (const double tokens : tokens_in(found.work[0])) {
    EXPECT_EQ(seen & std::llround(tokens), 0);
    seen |= std::llround(tokens);
  }
  EXPECT_EQ(seen, 2 * kFull - 1);
}

// Twelve sequences of 4096/4 tokens need three micro-batches. Megatron's interleaved schedule takes
// a multiple of its stages; DualPipe takes an even number, at least two per stage.
TEST(DynamicMicrobatches, AreRoundedUpToWhatTheScheduleTakes) {
  const auto count = [](const DynamicJob& job) {
    return dynamic_deal({.lengths = {1024}}, job).work[0].size();
  };
  EXPECT_EQ(count({.global_batch = 12, .schedule = "1f1b", .stages = 4}), 3U);
  EXPECT_EQ(count({.global_batch = 12, .schedule = "zb-h2", .stages = 4}), 3U);
  const DynamicJob interleaved{
      .global_batch = 12, .schedule = "interleaved-1f1b", .stages = 2, .chunks = 2};
  EXPECT_EQ(count(interleaved), 4U);
  EXPECT_EQ(count({.global_batch = 12, .schedule = "dualpipe", .stages = 2}), 4U);
  EXPECT_EQ(count({.global_batch = 12, .schedule = "dualpipe", .stages = 4}), 8U);
}

// ---- A second deal ------------------------------------------------------------------------------

using Bins = std::vector<std::vector<std::int64_t>>;  // lengths

double linear_and_attention(std::int64_t length) {
  Training training = modern();
  training.sequence_length = length;
  const SequenceFlop flop = sequence_forward_flop(llama_8b(), training, AttentionCount::causal);
  return (flop.layers + flop.head).value();
}

double tokens_only(std::int64_t length) { return static_cast<double>(length); }

// Deals the longest first, each into the first of the bins with the smallest sum, found by looking
// at all.
Bins plain_deal(std::vector<std::int64_t> lengths, std::size_t bins, double (*size)(std::int64_t)) {
  std::sort(lengths.rbegin(), lengths.rend());
  Bins dealt(bins);
  std::vector<double> sums(bins);
  for (const std::int64_t length : lengths) {
    const auto least =
        static_cast<std::size_t>(std::min_element(sums.begin(), sums.end()) - sums.begin());
    dealt[least].push_back(length);
    sums[least] = 0;
    for (const std::int64_t one : dealt[least]) sums[least] += size(one);
  }
  return dealt;
}

std::int64_t fullest(const Bins& bins) {
  std::int64_t most = 0;
  for (const auto& bin : bins) {
    most = std::max(most, std::accumulate(bin.begin(), bin.end(), std::int64_t{0}));
  }
  return most;
}

// Tries numbers of bins upwards from the least that the tokens need. All replicas then have the
// maximum over the replicas.
std::size_t plain_need(const std::vector<std::int64_t>& lengths, std::int64_t limit) {
  const auto sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  auto bins = static_cast<std::size_t>((sum + limit - 1) / limit);
  while (fullest(plain_deal(lengths, bins, tokens_only)) > limit) ++bins;
  return bins;
}

std::vector<double> sorted_sums(const Bins& bins) {
  std::vector<double> sums;
  for (const auto& bin : bins) {
    sums.push_back(static_cast<double>(std::accumulate(bin.begin(), bin.end(), std::int64_t{0})));
  }
  std::sort(sums.begin(), sums.end());
  return sums;
}

TEST(DynamicMicrobatches, OfRandomLengthsAreThoseOfAPlainerDeal) {
  std::mt19937_64 random{11};
  const auto drawn = [&](std::initializer_list<int> from) {
    return *(from.begin() + static_cast<std::ptrdiff_t>(random() % from.size()));
  };
  int above_the_bound = 0;
  int by_tokens = 0;
  for (int i = 0; i < 300; ++i) {
    const int micro_batch = drawn({1, 1, 2, 3});
    const auto replicas = static_cast<std::size_t>(drawn({1, 2, 4}));
    const std::size_t each = static_cast<std::size_t>(micro_batch * drawn({2, 4, 8, 16}));
    const double power = drawn({1, 3, 6});  // the higher the more short ones
    std::vector<std::int64_t> lengths;
    std::vector<std::vector<std::int64_t>> of(replicas);
    for (std::size_t at = 0; at < each * replicas; ++at) {
      const double part = static_cast<double>(random() % 100000 + 1) / 1e5;
      lengths.push_back(std::max<std::int64_t>(
          1, std::llround(static_cast<double>(kFull) * std::pow(part, power))));
      of[at / static_cast<std::size_t>(micro_batch) % replicas].push_back(lengths.back());
    }
    const std::int64_t limit = micro_batch * kFull;
    std::size_t need = 1;
    std::size_t bound = 1;
    for (const auto& own : of) {
      need = std::max(need, plain_need(own, limit));
      const auto sum = std::accumulate(own.begin(), own.end(), std::int64_t{0});
      bound = std::max(bound, static_cast<std::size_t>((sum + limit - 1) / limit));
    }
    above_the_bound += need > bound ? 1 : 0;
    const DealtSequences found = dynamic_deal(
        {.lengths = lengths}, {.global_batch = static_cast<std::int64_t>(lengths.size()),
                               .replicas = static_cast<int>(replicas),
                               .micro_batch = micro_batch});
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      Bins expected = plain_deal(of[replica], need, linear_and_attention);
      if (fullest(expected) > limit) {
        expected = plain_deal(of[replica], need, tokens_only);
        ++by_tokens;
      }
      std::vector<double> tokens = tokens_in(found.work[replica], micro_batch);
      for (double& sum : tokens) sum = std::round(sum);
      std::sort(tokens.begin(), tokens.end());
      EXPECT_EQ(tokens, sorted_sums(expected));
      EXPECT_LE(tokens.back(), static_cast<double>(limit));
      EXPECT_GT(tokens.front(), 0);
    }
  }
  EXPECT_GT(above_the_bound, 10);
  EXPECT_LT(above_the_bound, 150);
  EXPECT_GT(by_tokens, 0);
}

// ---- What they cost -----------------------------------------------------------------------------

StepConditions dynamic_lengths(std::vector<std::int64_t> lengths) {
  return {.sequences = SequenceMix{.lengths = std::move(lengths), .dynamic = true}};
}

PlanRequest two_by_two(const char* schedule, int chunks = 1) {
  PlanRequest request;
  request.tensor_parallel = 2;
  request.pipeline_parallel = 2;
  request.virtual_stages = chunks;
  request.micro_batch = 2;
  request.schedule = schedule;
  return request;
}

TEST(DynamicMicrobatches, OfFullSequencesAreTheSameStep) {
  const PreparedJob job = job_of(1, 8, 32);
  for (const PlanRequest& request : {two_by_two("1f1b"), two_by_two("interleaved-1f1b", 2),
                                     two_by_two("zb-v", 2), two_by_two("dualpipe")}) {
    const StepSimulation whole = disturbed(job, request, {});
    const StepSimulation same = disturbed(job, request, dynamic_lengths({4096}));
    EXPECT_TRUE(same.step.folded());
    EXPECT_EQ(same.timeline.times, whole.timeline.times) << request.schedule;
  }
}

// Second computation: two documents of half the length fill a row, so a job of half the batch does
// the same work in the same number of micro-batches.
TEST(DynamicMicrobatches, OfHalvesAreTheStepOfPackedRowsOfHalfTheBatch) {
  const PreparedJob job = job_of(1, 8, 32);
  const PreparedJob half = job_of(1, 8, 16);
  StepConditions packed;
  packed.sequences = SequenceMix{.lengths = {2048}, .packed = true};
  for (const PlanRequest& request :
       {two_by_two("1f1b"), two_by_two("interleaved-1f1b", 2), two_by_two("zb-h1")}) {
    const StepSimulation expected = disturbed(half, request, packed);
    const StepSimulation found = disturbed(job, request, dynamic_lengths({2048}));
    EXPECT_EQ(found.step.program->microbatches, 4);
    EXPECT_EQ(found.timeline.times, expected.timeline.times) << request.schedule;
    const Estimate rates = as_estimate(job, legal_plan(job, request), found);
    EXPECT_NEAR(rates.tokens_per_second * found.step_time.value(), 32 * 2048, 1e-6 * 32 * 2048);
  }
}

TEST(DynamicMicrobatches, HoldNoMoreMemoryThanThePlans) {
  const PreparedJob job = job_of(1, 8, 32);
  for (const PlanRequest& request : {two_by_two("gpipe"), two_by_two("1f1b")}) {
    const StepSimulation whole = disturbed(job, request, {});
    const StepSimulation fewer = disturbed(job, request, dynamic_lengths({1024}));
    EXPECT_EQ(fewer.step.program->microbatches, 2);
    for (std::size_t stage = 0; stage < 2; ++stage) {
      EXPECT_LE(fewer.stages[stage].memory.peak.bytes, whole.stages[stage].memory.peak.bytes);
    }
  }
}

TEST(DynamicMicrobatches, AreRefusedForPackedRows) {
  StepConditions both = dynamic_lengths({2048});
  both.sequences->packed = true;
  const auto refused = check(both, job_of(1, 8, 32).job);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "/simulation/sequences/dynamic");
  EXPECT_EQ(refused.error().message,
            "found it with \"packed\", allowed one of them: packed rows are all full");
}

}  // namespace
}  // namespace trainyard
