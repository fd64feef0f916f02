#include "model/cost/sharding/data_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/model/cost/data_parallel_traffic.h"
#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

using namespace literals;

// A ring without latency at 1 byte per second, so that the time is the number of bytes on the wire.
PlanLinks unit_ring(int ranks) {
  GroupLinks ring;
  ring.size = ring.ranks_per_domain = ranks;
  ring.inside = ring.inside_pair = BytesPerSecond(1);
  PlanLinks links;
  links.dense_gradient = links.dense_shard = ring;
  links.choice.algorithm = "ring";
  return links;
}

// Llama-3.1-8B with reductions in 16 bits; communication beside compute costs the compute nothing.
PreparedJob llama_reduced_in_16_bits() {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.overlap_slowdown = 0;
  job.job.training.stack.reduction_bytes = 2;
  return job;
}

double traffic_in_gigabytes(int zero_stage) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.reduction_bytes = 2;
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.zero_stage = zero_stage;
  plan.microbatches = 8;
  StageParameters stage;
  stage.dense = 7e9;
  return data_parallel_traffic(job, plan, unit_ring(64), stage).value() / 1e9;
}

// golden.md, "ZeRO traffic per rank and step": Φ = 7e9, 64 ranks, 8 micro-steps, 2 bytes.
TEST(DataParallelTraffic, OfZeroStagesIsTheGoldenOne) {
  EXPECT_NEAR(traffic_in_gigabytes(0), 27.56, 0.005);
  EXPECT_NEAR(traffic_in_gigabytes(1), 27.56, 0.005);
  EXPECT_NEAR(traffic_in_gigabytes(2), 124.0, 0.1);
  EXPECT_NEAR(traffic_in_gigabytes(3), 330.8, 0.1);
}

// A step between two ranks takes a second, and bytes take no time, so the time counts messages.
PlanLinks counting_links() {
  PlanLinks links = unit_ring(2);
  links.dense_shard.inside = links.dense_shard.inside_pair = BytesPerSecond(1e30);
  links.dense_shard.inside_latency = Seconds(1);
  return links;
}
Plan overlapped_on_two_ranks() {
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.zero_stage = 1;
  plan.sharding_group = 2;
  plan.overlap.data_parallel = true;
  return plan;
}

// Beside passes, the gradients and the weights of the embedding, the head and the four layers go
// one by one; otherwise all go in one message.
TEST(DataParallelTraffic, IsAMessageForEachUnitBesidePasses) {
  const PreparedJob job = llama_8b_on_h100();
  const PlanLinks links = counting_links();
  Plan plan = overlapped_on_two_ranks();
  StageParameters stage;
  stage.dense = 6;
  stage.embedding_matrix = stage.head_matrix = 1;
  stage.layers = 4;
  EXPECT_NEAR(data_parallel_traffic(job, plan, links, stage).value(), 2 * (4 + 2), 1e-9);
  plan.overlap.data_parallel = false;
  EXPECT_NEAR(data_parallel_traffic(job, plan, links, stage).value(), 2, 1e-9);
}

// The same with buckets of two parameters: the head with the last layer, the next two, and the
// first with the embedding. Without a limit there is one.
TEST(DataParallelTraffic, IsAMessageForEachBucket) {
  PreparedJob job = llama_8b_on_h100();
  const PlanLinks links = counting_links();
  const Plan plan = overlapped_on_two_ranks();
  StageParameters stage;
  stage.dense = 6;
  stage.embedding_matrix = stage.head_matrix = 1;
  stage.embedding = stage.head = true;
  stage.layers = 4;
  const auto messages = [&](double bucket) {
    job.job.training.stack.bucket_parameters = bucket;
    return data_parallel_traffic(job, plan, links, stage).value() / 2;
  };
  EXPECT_NEAR(messages(1), 6, 1e-9);
  EXPECT_NEAR(messages(2), 3, 1e-9);
  EXPECT_NEAR(messages(100), 1, 1e-9);
}

StageWork long_passes() {
  StageWork work;
  work.layers = {Seconds(1e12), Seconds(1e12), Seconds(1e12)};
  return work;
}

// Behind long passes the last messages show: the first layer's, and that of the embedding, whose
// work takes no time. However large that is, it is one message.
TEST(DataParallelCost, OfTheLastBucketHasOneLatency) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.overlap_slowdown = 0;
  job.job.training.stack.bucket_parameters = 1;
  const PlanLinks links = counting_links();
  const Plan plan = overlapped_on_two_ranks();
  StageParameters stage;
  stage.dense = 110;
  stage.embedding_matrix = 100;
  stage.embedding = true;
  stage.layers = 10;
  const DataParallelCost cost = data_parallel_cost(job, plan, links, stage, long_passes());
  EXPECT_NEAR(cost.end.value(), 2, 1e-9);  // the first layer's and the embedding's
  EXPECT_NEAR(cost.start.value(), 2, 1e-9);
}

struct Shown {
  DataParallelCost all, rest;  // without overlap, and with it
};
Shown beside_long_passes(const StageParameters& stage) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.overlap_slowdown = 0;
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.zero_stage = 1;
  plan.sharding_group = 64;
  const PlanLinks links = unit_ring(64);
  Shown shown;
  shown.all = data_parallel_cost(job, plan, links, stage, long_passes());
  plan.overlap.data_parallel = true;
  shown.rest = data_parallel_cost(job, plan, links, stage, long_passes());
  return shown;
}

// Communication that is overlapped hides behind backward passes that are long enough, except for
// its last piece.
TEST(DataParallelCost, HidesBehindLongBackwardPasses) {
  StageParameters stage;
  stage.dense = 1e9;
  stage.layers = 9;
  stage.embedding_matrix = 1e8;  // as large as a layer
  stage.embedding = true;
  const auto [all, rest] = beside_long_passes(stage);
  // The embedding is reduced last, behind no work of its own, and the first layer's reduction has
  // nothing left to hide behind either: 2e8 of 1e9 parameters show. At the start of the step the
  // same two are gathered first.
  EXPECT_NEAR(rest.end / all.end, 0.2, 1e-9);
  EXPECT_NEAR(rest.start / all.start, 0.2, 1e-9);
  EXPECT_EQ(rest.lost, Seconds(0));
}

// Under no_sync, reductions begin after the last backward pass of a chunk, and what comes next
// waits for them (PyTorch: perform_reduce_grad, whose last callback waits). So all reductions show,
// but once per step and not per micro-batch. Weights are gathered once, beside the first forward
// pass.
TEST(DataParallelCost, UnderNoSyncShowsEveryReductionOnce) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.overlap_slowdown = 0;
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.pipeline_parallel = 4;
  plan.microbatches = 16;
  plan.sharding_group = 64;
  plan.overlap.data_parallel = true;
  plan.pipeline_no_sync = true;
  StageParameters stage;
  stage.dense = 1e9;
  stage.layers = 10;
  for (const int zero_stage : {2, 3}) {
    plan.zero_stage = zero_stage;
    const DataParallelCost cost =
        data_parallel_cost(job, plan, unit_ring(64), stage, long_passes());
    const double gradients = 1e9 * job.job.training.stack.reduction_bytes;
    EXPECT_NEAR(cost.end.value(), gradients * 63 / 64, 1e-9 * gradients) << zero_stage;
    EXPECT_NEAR(cost.start.value(), 2e9 / 10 * 63 / 64, 1) << zero_stage;  // the first layer's
    EXPECT_EQ(cost.microbatch.total(), Seconds(0)) << zero_stage;
  }
}

// The head's gradient is reduced first; the head's weights are gathered with the first layer.
TEST(DataParallelCost, OfAHeadHidesBehindTheLayersBeforeIt) {
  StageParameters stage;
  stage.dense = 1e9;
  stage.layers = 5;
  stage.head_matrix = 5e8;
  stage.head = true;
  const auto [all, rest] = beside_long_passes(stage);
  EXPECT_NEAR(rest.end / all.end, 0.1, 1e-9);
  EXPECT_NEAR(rest.start / all.start, 0.6, 1e-9);
}

// ZeRO-3 with four equal layers: gathers and reductions take 1 s each, backward passes 1.5 s. The
// first gather and the last reduction show in full. The two layers in between have a reduction and
// a gather beside them, of which half a second each shows.
TEST(DataParallelCost, OfEveryPassShowsWhatDoesNotFitBesideALayer) {
  const PreparedJob job = llama_reduced_in_16_bits();
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.zero_stage = 3;
  plan.sharding_group = 64;
  plan.overlap.data_parallel = true;
  StageParameters stage;
  stage.layers = 4;
  stage.dense = 4 * 64.0 / 63 / 2;  // a byte a second: 1 s a layer
  StageWork work;
  work.layers = {Seconds(4), Seconds(3), Seconds(3)};
  const auto cost = data_parallel_cost(job, plan, unit_ring(64), stage, work);
  EXPECT_NEAR(cost.microbatch.forward.value(), 1, 1e-9);
  EXPECT_NEAR(cost.microbatch.input_gradient.value(), 1 + 2 * 0.5 + 1, 1e-9);
  EXPECT_NEAR(cost.at_ends.value(), 3, 1e-9);
}

// The same with passes that wait for copies to the hosts. Kernels, copies and gathers run at once,
// and a forward pass inside the stage ends with the last of them. Gathers slow the kernels down.
TEST(DataParallelCost, OfPassesThatWaitForCopiesHasTheirTimeToo) {
  PreparedJob job = llama_8b_on_h100();
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.zero_stage = 3;
  plan.sharding_group = 64;
  plan.overlap.data_parallel = true;
  StageParameters stage;
  stage.layers = 1000;  // the first gather is a thousandth of all
  for (const double slowdown : {0.0, 0.25}) {
    job.job.training.stack.overlap_slowdown = slowdown;
    for (const double kernels : {4.0, 6.0}) {
      for (const double copies : {1.0, 5.0, 7.0, 9.0}) {
        for (const double gathers : {8.0, 20.0}) {
          stage.dense = gathers * 64.0 / 63 / 2;  // a byte a second
          StageWork work;
          work.copies.forward = Seconds(std::max(0.0, copies - kernels));
          work.layers.forward = Seconds(kernels) + work.copies.forward;
          const auto cost = data_parallel_cost(job, plan, unit_ring(64), stage, work);
          const double found = (work.layers.forward + cost.microbatch.forward).value();
          const double expected = std::max({kernels / (1 - slowdown), copies, gathers});
          EXPECT_NEAR(found, expected, 0.003 * expected)
              << kernels << ' ' << copies << ' ' << gathers << ' ' << slowdown;
        }
      }
    }
  }
}

// ZB-V on two stages with one layer per chunk; F, B and W take 5, 2 and 1 s, a reduction takes 9 s.
// At the end of its list, between the last W of the two chunks, the first stage runs B and W of the
// chunk on the way out for one or two micro-batches. The last stage begins one forward pass later,
// so its spans are shorter by that pass (by the lists of Qi et al. 2024).
TEST(DataParallelCost, InAVFollowsTheLastPassesOfBothChunks) {
  const PreparedJob job = llama_reduced_in_16_bits();
  Plan plan;
  plan.schedule = find_schedule("zb-v");
  plan.pipeline_parallel = 2;
  plan.virtual_stages = 2;
  plan.zero_stage = 0;
  plan.optimizer_barrier = false;
  plan.overlap.data_parallel = true;
  StageParameters stage;
  stage.layers = 2;
  stage.dense = 2 * 9 * 64.0 / 63 / 2 / 2;  // all-reduced at a byte a second: 9 s a layer
  StageWork work;
  work.layers = {Seconds(2 * 5), Seconds(2 * 2), Seconds(2 * 1)};
  const auto end = [&](bool first, int microbatches) {
    plan.microbatches = microbatches;
    stage.embedding = stage.head = first;
    return data_parallel_cost(job, plan, unit_ring(64), stage, work).end.value();
  };
  // What is left of the first chunk's reduction when the last pass ends; then the 9 s of the other
  // chunk.
  EXPECT_NEAR(end(true, 1), (9 - 2 - 1) + 9, 1e-9);
  EXPECT_NEAR(end(true, 8), (9 - 2 - 1 - 2 - 1) + 9, 1e-9);
  EXPECT_NEAR(end(false, 8), (9 - 1) + 9 - 5, 1e-9);
  plan.optimizer_barrier = true;
  EXPECT_NEAR(end(false, 8), (9 - 1) + 9, 1e-9);
}

// When the passes in a stage's list run if F, B and W take 5, 2 and 1 s and nothing waits.
struct ListTimes {
  std::array<double, 2> first_forward{-1, -1}, last_gradient{};  // of the two chunks
  double end = 0;
};
ListTimes times_of(const std::vector<Pass>& list, double begin) {
  ListTimes times;
  times.end = begin;
  for (const Pass& pass : list) {
    const auto chunk = static_cast<std::size_t>(pass.chunk);
    const bool forward = pass.kind == PassKind::forward;
    if (forward && times.first_forward[chunk] < 0) times.first_forward[chunk] = times.end;
    if (forward) times.end += 5;
    if (pass.kind == PassKind::backward || pass.kind == PassKind::input_gradient) times.end += 2;
    if (pass.kind == PassKind::backward || pass.kind == PassKind::weight_gradient) {
      times.end += 1;
      times.last_gradient[chunk] = times.end;
    }
  }
  return times;
}

// DualPipe with one layer per copy; gathers and reductions take 29 s. The first pass of each copy
// waits for that copy's weights, and the copy that works first is gathered first. A copy's
// reduction begins after its last gradient. The lists of passes say when that is.
TEST(DataParallelCost, BothWaysFollowsTheFirstAndLastPassesOfBothCopies) {
  constexpr double kMessage = 29;
  const PreparedJob job = llama_reduced_in_16_bits();
  Plan plan;
  plan.schedule = find_schedule("dualpipe");
  plan.zero_stage = 1;
  plan.sharding_group = 64;
  plan.overlap.data_parallel = true;
  plan.microbatches = 32;
  StageParameters held;
  held.layers = 2;
  held.dense = held.layers * kMessage * 64.0 / 63 / 2;  // a byte a second
  StageWork work;
  work.layers = {Seconds(5), Seconds(2), Seconds(1)};
  PlanLinks links = unit_ring(64);
  links.pipeline.inside = links.pipeline.inside_pair = BytesPerSecond(1e30);
  for (const int p : {2, 4, 8, 16}) {
    plan.pipeline_parallel = p;
    const PassList lists = plan.schedule->passes(pipeline_shape(plan));
    for (work.stage = 0; work.stage < p; ++work.stage) {
      const double arrives = 5.0 * std::min(work.stage, p - 1 - work.stage);
      ListTimes list = times_of(lists[static_cast<std::size_t>(work.stage)], arrives);
      std::sort(list.first_forward.begin(), list.first_forward.end());
      std::sort(list.last_gradient.begin(), list.last_gradient.end());
      const auto cost = data_parallel_cost(job, plan, links, held, work);
      EXPECT_NEAR(cost.start.value(),
                  std::max(kMessage - list.first_forward[0], 2 * kMessage - list.first_forward[1]),
                  1e-6);
      const double first = list.last_gradient[0] + kMessage;
      const double second = std::max(first, list.last_gradient[1]) + kMessage;
      EXPECT_NEAR(cost.end.value(), second - list.end, 1e-6) << work.stage << " of " << p;
    }
  }
}

// Interleaved 1F1B on two stages. The reduction of the embedding takes 20 s, longer than the
// chunk's passes. Under ZeRO-2 the last two micro-batches leave two reductions to wait for; under
// ZeRO-1 one is left.
TEST(DataParallelCost, OfEveryMicrobatchFindsThoseOfItsGroupBeforeIt) {
  const PreparedJob job = llama_reduced_in_16_bits();
  Plan plan;
  plan.schedule = find_schedule("interleaved-1f1b");
  plan.pipeline_parallel = plan.virtual_stages = 2;
  plan.microbatches = 2;
  plan.sharding_group = 64;
  plan.overlap.data_parallel = true;
  StageParameters stage;
  stage.layers = 2;
  stage.embedding = true;
  stage.embedding_matrix = stage.dense = 20 * 64.0 / 63 / 2;  // layers have next to nothing
  StageWork work;
  work.layers = {Seconds(2), Seconds(2), Seconds(2)};  // a backward pass of a chunk: 2 s
  const auto end = [&](int zero_stage) {
    plan.zero_stage = zero_stage;
    return data_parallel_cost(job, plan, unit_ring(64), stage, work).end.value();
  };
  EXPECT_NEAR(end(1), 20, 1e-9);
  EXPECT_NEAR(end(2), 2 * 20 - 2, 1e-9);
}

// An all-to-all whose group spans the nodes as the reduction's group does. While both run they
// share the links, so the exchange takes longer, and the reduction makes progress meanwhile.
TEST(DataParallelCost, TakesLinksFromTheExchangesBesideIt) {
  GroupLinks across;
  across.size = across.domains = 4;
  across.inside = BytesPerSecond(100);
  across.across = across.across_all_to_all = BytesPerSecond(1);
  PlanLinks links;
  links.expert = across;
  ExchangeTimes exchanges;
  exchanges.expert = Seconds(3);
  // The exchange sends 3/4 of its bytes over the links, so both rates are equal at 1/(1 + 3/4).
  const double fair = 1 / 1.75;
  const double stretch = 1 / 0.75 / fair;
  ExchangeUse use;
  use.expert = all_to_all_use(across);
  const Cover cover = cover_of(Seconds(10), exchanges, 0, ring_of(across), links, use);
  EXPECT_NEAR(cover.rate, (7 + 3 * stretch * fair) / 10, 1e-9);
  EXPECT_NEAR(cover.lost, 3 * (stretch - 1) / (7 + 3 * stretch * fair), 1e-9);
}

// A member has 4 bytes per second out of its node, but only one out of its leaf. A reduction across
// leaves takes one, which leaves three of four to an exchange inside a leaf. The exchange, with 3/4
// of its bytes leaving the node, takes 4 s instead of 3 s, and the reduction runs as fast as alone.
TEST(DataParallelCost, TakesNoUplinksFromExchangesBelowALeaf) {
  GroupLinks leaf;
  leaf.size = leaf.domains = 4;
  leaf.inside = BytesPerSecond(100);
  leaf.across = leaf.across_all_to_all = leaf.way_out = BytesPerSecond(4);
  GroupLinks all = leaf;
  all.across = all.across_all_to_all = BytesPerSecond(1);
  all.narrow_levels = 1;
  PlanLinks links;
  links.expert = leaf;
  ExchangeTimes exchanges;
  exchanges.expert = Seconds(3);
  ExchangeUse use;
  use.expert = all_to_all_use(leaf);
  const Cover cover = cover_of(Seconds(10), exchanges, 0, ring_of(all), links, use);
  EXPECT_NEAR(cover.rate * 10, 7 + 4, 1e-9);
  EXPECT_NEAR(cover.lost * cover.rate * 10, 4 - 3, 1e-9);
}

// Messages of a ring that its blocks hide: 3 s of messages behind 4 s of blocks, on the links of
// the reduction. At half the rate the messages take 6 s, so 2 s show. The reduction has half of the
// links for 6 s, and all of them in the other 6 s of the pass.
TEST(DataParallelCost, TakesLinksFromTheRingThatBlocksHide) {
  GroupLinks across;
  across.size = across.domains = 4;
  across.inside = BytesPerSecond(100);
  across.across = BytesPerSecond(1);
  PlanLinks links;
  links.context = across;
  ExchangeTimes exchanges;
  exchanges.ring_hidden = Seconds(3);
  exchanges.ring_spare = Seconds(1);
  ExchangeUse use;
  use.context = ring_use(across);
  const Cover cover = cover_of(Seconds(10), exchanges, 0, ring_of(across), links, use);
  EXPECT_NEAR(cover.rate * 10, 6 * 0.5 + 6, 1e-9);
  EXPECT_NEAR(cover.lost * cover.rate * 10, 2, 1e-9);
}

// An exchange inside a domain uses links that the reduction across domains does not slow.
TEST(DataParallelCost, LeavesExchangesInsideANodeAlone) {
  GroupLinks across;
  across.size = across.domains = 4;
  across.inside = BytesPerSecond(100);
  across.across = BytesPerSecond(1);
  PlanLinks links;
  links.tensor.size = links.tensor.ranks_per_domain = 8;
  links.tensor.inside = BytesPerSecond(100);
  ExchangeTimes exchanges;
  exchanges.tensor = Seconds(3);
  ExchangeUse use;
  use.tensor = ring_use(links.tensor);
  const Cover cover = cover_of(Seconds(10), exchanges, 0, ring_of(across), links, use);
  EXPECT_NEAR(cover.rate, 1, 1e-9);
  EXPECT_NEAR(cover.lost, 0, 1e-9);
}

// Two nodes of 32 ranks. A ring that crosses the boundary at a quarter of the inner links' rate
// takes time from the compute for only a quarter of its duration.
TEST(DataParallelCost, OfASlowNetworkLeavesComputeTheDevice) {
  PreparedJob job = llama_8b_on_h100();
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.sharding_group = 64;
  plan.overlap.data_parallel = true;
  StageParameters stage;
  stage.dense = 1e9;
  stage.layers = 10;
  PlanLinks links = unit_ring(64);
  links.dense_gradient.ranks_per_domain = 32;
  links.dense_gradient.domains = 2;
  links.dense_gradient.across = BytesPerSecond(0.25 / 32);
  job.job.training.stack.overlap_slowdown = 1;
  const auto cost = data_parallel_cost(job, plan, links, stage, long_passes());
  EXPECT_NEAR(cost.lost / cost.end, 9 * 0.25, 1e-9);  // what is left is a tenth of the whole
}

// Mixed-precision Adam moves 30 bytes per parameter (handbook §4); the norm reads 4 more.
TEST(OptimizerTime, ReadsAndWritesTheStatesOfTheShard) {
  PreparedJob job = llama_8b_on_h100();
  job.job.cluster.device = ideal_device();  // 1 TB/s
  job.job.training.stack.gradient_bytes = 4;
  Plan plan;
  plan.zero_stage = 1;
  plan.sharding_group = 8;
  StageParameters stage;
  stage.dense = 8e9;
  EXPECT_NEAR(optimizer_time(job, plan, stage).value(), 1e9 * 34 / 1e12, 1e-9);
}

// Lion moves the same bytes per layer as Muon, so the difference is Muon's matrix products. A layer
// of Llama-8B (h 4096, f 14336, keys 1024 wide) has 2·6h³ for Q and O, 2·(4·1024²·h + 2·1024³) for
// K and V and 3·(4h²f + 2h³) for the MLP, five times. Eight ranks of TP and eight of ZeRO-1 share
// 32 layers, at 100 TFLOP/s.
TEST(OptimizerTime, OfMuonAddsTheProductsOfItsMatrices) {
  PreparedJob job = llama_8b_on_h100();
  job.job.cluster.device = ideal_device();
  Plan plan;
  plan.tensor_parallel = 8;
  plan.zero_stage = 1;
  plan.sharding_group = 8;
  StageParameters stage;
  stage.dense = 1e9;
  stage.kinds[0] = 32;
  job.job.training.optimizer = *find_optimizer("lion");
  const Seconds lion = optimizer_time(job, plan, stage);
  job.job.training.optimizer = *find_optimizer("muon");
  const Seconds muon = optimizer_time(job, plan, stage);
  const double layer = 2 * 4.12317e11 + 2 * 1.93274e10 + 3 * 1.09951e12;
  EXPECT_NEAR((muon - lion).value(), 32 * 5 * layer / 64 / 100e12, 1e-5);
}

// Embedding and head are updated by AdamW, whose second moment is 4 bytes read and 4 written: for
// 1e9 parameters on eight ranks of ZeRO-1 at 1 TB/s, a millisecond.
TEST(OptimizerTime, OfMuonHasTheSecondMomentOfTheEnds) {
  PreparedJob job = llama_8b_on_h100();
  job.job.cluster.device = ideal_device();
  job.job.training.optimizer = *find_optimizer("muon");
  Plan plan;
  plan.zero_stage = 1;
  plan.sharding_group = 8;
  StageParameters layers, ends;
  layers.dense = ends.dense = 1e9;
  ends.embedding_matrix = 6e8;
  ends.head_matrix = 4e8;
  const Seconds more = optimizer_time(job, plan, ends) - optimizer_time(job, plan, layers);
  EXPECT_NEAR(more.value(), 1e-3, 1e-9);
}

}  // namespace
}  // namespace trainyard
