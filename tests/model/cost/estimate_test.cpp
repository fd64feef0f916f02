#include "model/cost/estimate.h"

#include <gtest/gtest.h>

#include "model/cost/compute.h"
#include "model/cost/messages/pipeline_sends.h"
#include "model/cost/messages/traffic.h"
#include "model/schedule/play.h"
#include "model/workload/operators.h"
#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

using namespace literals;

PlanRequest korthikanti_plan() {
  return {.tensor_parallel = 8,
          .sequence_parallel = true,
          .pipeline_parallel = 8,
          .virtual_stages = 3,
          .recompute = {RecomputeMode::selective, 0}};
}

TEST(Estimate, BreakdownSumsToTheStep) {
  const PreparedJob job = gpt3_on_a100();
  const Estimate out = estimate(job, legal_plan(job, korthikanti_plan()));
  EXPECT_EQ(out.breakdown.total(), out.step_time);
  EXPECT_LT(out.step_time_low, out.step_time);
  EXPECT_GT(out.step_time_high, out.step_time);
}

// Handbook §12.5.
TEST(Estimate, OfOneDeviceHasNoCommunicationAndNoBubble) {
  PreparedJob job = llama_8b_on_h100();
  job.job.cluster.devices_per_node = 1;
  job.job.cluster.nvlink_domain = 1;
  job = prepare(job.job);
  const Breakdown parts = estimate(job, legal_plan(job, {})).breakdown;
  for (const Seconds part : {parts.tensor_parallel, parts.context_parallel, parts.expert_parallel,
                             parts.pipeline, parts.data_parallel, parts.bubble}) {
    EXPECT_EQ(part, Seconds(0));
  }
}

// The definition: model FLOP over step time, devices and peak.
TEST(Estimate, MfuIsModelFlopOverWhatTheDevicesCouldDo) {
  const PreparedJob job = gpt3_on_a100();
  const Estimate out = estimate(job, legal_plan(job, korthikanti_plan()));
  // Handbook §3: 72·B·s·L·h²·(1 + s/(6h) + V/(12Lh)).
  const double h = 12288, L = 96, s = 2048, V = 51200, B = 64;
  const double flop = 72 * B * s * L * h * h * (1 + s / (6 * h) + V / (12 * L * h));
  EXPECT_NEAR(out.mfu, flop / (out.step_time.value() * 64 * 312e12), 1e-9);
  const double causal = 72 * B * s * L * h * h * (1 + s / (12 * h) + V / (12 * L * h));
  EXPECT_NEAR(causal_mfu(job, out) / out.mfu, causal / flop, 1e-9);
  // Selective recomputation repeats one forward of the core: 1 + 2s/(9h) instead of 1 + s/(6h).
  const double hardware = 72 * B * s * L * h * h * (1 + 2 * s / (9 * h) + V / (12 * L * h));
  EXPECT_NEAR(out.hfu / out.mfu, hardware / flop, 1e-9);
}

// 96·B·s·L·h²·(1 + s/(6h) + V/(16Lh)) over the model FLOP (Narayanan et al. 2021, eq. 3).
TEST(Estimate, HfuOfFullRecomputationCountsAFourthForward) {
  const PreparedJob job = gpt3_on_a100();
  PlanRequest request = korthikanti_plan();
  request.recompute = {RecomputeMode::full, 0};
  const Estimate out = estimate(job, legal_plan(job, request));
  const double h = 12288, L = 96, s = 2048, V = 51200;
  const double ratio =
      96 * (1 + s / (6 * h) + V / (16 * L * h)) / (72 * (1 + s / (6 * h) + V / (12 * L * h)));
  EXPECT_NEAR(out.hfu / out.mfu, ratio, 1e-9);
}

// Multiplications per token and layer that recomputation repeats: (HFU/MFU − 1) times the model
// FLOP, over 2·s·L per sequence. The model FLOP are those of three passes.
double repeated_weights(const PreparedJob& job, Recompute recompute) {
  PlanRequest request;
  request.recompute = recompute;
  const Estimate out = estimate(job, legal_plan(job, request));
  const double tokens = static_cast<double>(job.job.training.global_batch) *
                        static_cast<double>(job.job.training.sequence_length);
  return (out.hfu / out.mfu - 1) * job.model_flop.value() / (2 * tokens * job.job.model.layers);
}

// Llama-3.1-8B: h = a·d = 4,096, g·d = 1,024, f = 14,336. The products of a layer have h·(a·d +
// 2g·d) weights for Q, K and V, a·d·h for the output, 2h·f for gate and up, and f·h for down; the
// core has 2·s·a·d multiplications per token. Recomputation stops before the down projection, whose
// output no backward pass reads (torch.utils.checkpoint, early stop).
TEST(Estimate, HfuLeavesOutWhatAnEarlyStopDoesNotRepeat) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.recompute_stops_early = true;
  job = prepare(job.job);
  const auto s = static_cast<double>(job.job.training.sequence_length);
  const double h = 4096, keys = 1024, f = 14336;
  const double weights = h * (h + 2 * keys) + h * h + 2 * h * f + 2 * s * h;
  EXPECT_NEAR(repeated_weights(job, {RecomputeMode::full, 0}), weights, 1e-9 * weights);
}

// Every second one of the products queries, keys, values, output, gate, up and down is repeated:
// keys, output and up.
TEST(Estimate, HfuOfEverySecondProductCountsThoseAlone) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.selective = SelectiveRecompute::every_second_matmul;
  job = prepare(job.job);
  const double h = 4096, keys = 1024, f = 14336;
  const double weights = h * keys + h * h + h * f;
  EXPECT_NEAR(repeated_weights(job, {RecomputeMode::selective, 0}), weights, 1e-9 * weights);
}

// The same job with every rate doubled and every fixed time halved.
PreparedJob twice_as_fast(PreparedJob job) {
  Device& device = job.job.cluster.device;
  for (auto& peak : device.peak) peak *= 2;
  for (auto& gemm : device.rates.gemm) {
    gemm.per_multiprocessor *= 2;
    gemm.overhead /= 2;
  }
  for (auto& attention : device.rates.attention) {
    attention.per_multiprocessor *= 2;
    attention.overhead /= 2;
    attention.query_tile /= 2;
  }
  device.rates.experts.per_multiprocessor *= 2;
  device.rates.experts.overhead /= 2;
  device.rates.launch /= 2;
  device.memory_bandwidth *= 2;
  Cluster& cluster = job.job.cluster;
  cluster.intra.bandwidth *= 2;
  cluster.intra.latency /= 2;
  cluster.inter.bandwidth *= 2;
  cluster.inter.latency /= 2;
  Stack& stack = job.job.training.stack;
  for (Seconds* fixed :
       {&stack.host_layer_forward, &stack.host_moe_layer_forward, &stack.host_microbatch,
        &stack.step_overhead, &stack.sharded_update_per_rank}) {
    *fixed /= 2;
  }
  return prepare(job.job);
}

// Handbook §12.4. The clock's slow-down depends on FLOP, not on time, so it scales too.
TEST(Estimate, HalvesWhenEveryRateDoublesAndEveryFixedTimeHalves) {
  PreparedJob job = gpt3_on_a100();
  job.job.training.stack.host_layer_forward = 2.0_ms;
  job.job.training.stack.step_overhead = 30.0_ms;
  const Plan plan = legal_plan(job, korthikanti_plan());
  const Seconds slow = estimate(job, plan).step_time;
  EXPECT_NEAR(estimate(twice_as_fast(job), plan).step_time / slow, 0.5, 1e-9);
}

TEST(Estimate, FitsAtItsPeakAndNotOneByteBelow) {
  PreparedJob job = gpt3_on_a100();
  const Plan plan = legal_plan(job, korthikanti_plan());
  job.job.cluster.device.memory = estimate(job, plan).peak_memory;
  EXPECT_TRUE(estimate(job, plan).feasible);
  job.job.cluster.device.memory -= Bytes(1);
  EXPECT_FALSE(estimate(job, plan).feasible);
}

// The bubble of equal stages is (p − 1)/(v·m) of the ideal time (handbook §8). GPT-3's first and
// last stage also have embedding and head, 1.4 % of a stage's FLOP.
TEST(Estimate, BubbleOfInterleaved1F1BShrinksByTheChunks) {
  const PreparedJob job = gpt3_on_a100();
  const Estimate out = estimate(job, legal_plan(job, korthikanti_plan()));
  const Seconds ideal = out.stages[1].passes.total() * 64;
  EXPECT_NEAR(out.breakdown.bubble / ideal, 7.0 / (3 * 64), 0.01);
}

// Under DualPipe every parameter is held twice (handbook §12.1). The two copies lie on stages that
// mirror each other, so both end stages hold embedding and head.
TEST(Estimate, OfDualPipeHoldsTwoCopiesOfTheParameters) {
  Job untied = gpt3_on_a100().job;
  untied.model.tied_embeddings = false;
  const PreparedJob job = prepare(untied);
  PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 8};
  const auto parameters = [&](std::string_view schedule) {
    request.schedule = schedule;
    const Estimate out = estimate(job, legal_plan(job, request));
    double sum = 0;
    for (const StageParameters& stage : out.held) sum += stage.dense;
    return sum;
  };
  EXPECT_NEAR(parameters("dualpipe") / parameters("1f1b"), 2, 1e-12);
}

// Every stage has 12 layers in either case. Under zb-v stage 0 holds both ends of the network.
TEST(Estimate, OfAVHasBothEndsOnTheFirstStage) {
  const PreparedJob job = gpt3_on_a100();
  const Estimate out = estimate(
      job, legal_plan(job, {.tensor_parallel = 8, .pipeline_parallel = 8, .schedule = "zb-v"}));
  for (const StageParameters& stage : out.held) {
    EXPECT_EQ(stage.layers, 12);
    EXPECT_EQ(stage.embedding, &stage == &out.held.front());
    EXPECT_EQ(stage.head, &stage == &out.held.front());
  }
  EXPECT_EQ(out.slowest_stage, 0);
}

TEST(EstimateBound, IsNeverAboveTheEstimateAndHasItsMemory) {
  const PreparedJob job = gpt3_on_a100();
  for (const Schedule* schedule : schedules()) {
    const Plan plan = legal_plan(job, {.tensor_parallel = 8,
                                       .pipeline_parallel = 8,
                                       .virtual_stages = schedule->needs_chunks ? 2 : 1,
                                       .schedule = std::string(schedule->name)});
    Estimate bound;
    Estimator(job).estimate_bound(plan, bound);
    const Estimate exact = estimate(job, plan);
    EXPECT_LE(bound.step_time, exact.step_time) << schedule->name;
    EXPECT_EQ(bound.breakdown.bubble, Seconds(0));
    EXPECT_EQ(bound.peak_memory, exact.peak_memory) << schedule->name;
  }
}

TEST(Estimate, HostFloorBoundsASmallLayer) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.host_layer_forward = 1.0_s;
  job.job.training.stack.host_backward = 2;
  const Plan plan = legal_plan(job, {.zero_stage = 1});
  const Estimate out = estimate(job, plan);
  // 32 layers, 8 micro-batches, forward 1 s and backward 2 s each.
  EXPECT_NEAR(out.step_time.value(), 32 * 8 * 3.0, 0.02 * 32 * 8 * 3);
}

// 3.6 USD an hour on 8 devices is 0.008 USD a second.
TEST(Estimate, CostsDevicesTimesPriceTimesTime) {
  const PreparedJob job =
      prepare({llama_8b(), example_cluster(ideal_device(), 1), llama_8b_on_h100().job.training});
  const Estimate out = estimate(job, legal_plan(job, {.zero_stage = 1}));
  ASSERT_TRUE(out.cost_per_step.has_value());
  EXPECT_NEAR(out.cost_per_step->value(), 0.008 * out.step_time.value(), 1e-12);
  // The power is between idle (35 %) and full, 8 × 500 W, times the PUE.
  ASSERT_TRUE(out.energy_per_step.has_value());
  const double full = 8 * 500 * job.job.cluster.pue * out.step_time.value();
  EXPECT_GT(out.energy_per_step->value(), 0.35 * full);
  EXPECT_LE(out.energy_per_step->value(), full);
}

TEST(Estimate, IsSilentAboutMoneyAndEnergyWithoutPriceAndPower) {
  Device device = ideal_device();
  device.price.reset();
  device.power = Watts(0);
  const PreparedJob job =
      prepare({llama_8b(), example_cluster(device, 1), llama_8b_on_h100().job.training});
  const Estimate out = estimate(job, legal_plan(job, {.zero_stage = 1}));
  EXPECT_FALSE(out.cost_per_step.has_value());
  EXPECT_FALSE(out.energy_per_step.has_value());
}

TEST(ResolveRecompute, TakesTheFewestLayersThatFit) {
  PreparedJob job = gpt3_on_a100();
  PlanRequest request = korthikanti_plan();
  request.recompute = {RecomputeMode::full, 0};
  const Bytes least = estimate(job, legal_plan(job, request)).peak_memory;
  request.recompute = {RecomputeMode::selective, 0};
  const Bytes most = estimate(job, legal_plan(job, request)).peak_memory;
  ASSERT_LT(least, most);
  job.job.cluster.device.memory = least + (most - least) / 2.0;
  request.recompute = {RecomputeMode::automatic, 0};
  Plan plan = resolve_recompute(job, legal_plan(job, request));
  EXPECT_TRUE(estimate(job, plan).feasible);
  ASSERT_EQ(plan.recompute.mode, RecomputeMode::full);
  ASSERT_GT(plan.recompute.full_layers, 1);
  plan.recompute.full_layers -= 1;
  EXPECT_FALSE(estimate(job, plan).feasible);
}

// The stack can repeat all layers or none, but nothing less.
TEST(ResolveRecompute, TakesWhatTheStackCan) {
  PreparedJob job = gpt3_on_a100();
  PlanRequest request = korthikanti_plan();
  request.recompute = {RecomputeMode::selective, 0};
  job.job.cluster.device.memory = estimate(job, legal_plan(job, request)).peak_memory;
  request.recompute = {RecomputeMode::automatic, 0};
  EXPECT_EQ(resolve_recompute(job, legal_plan(job, request)).recompute.mode,
            RecomputeMode::selective);
  job.job.training.stack.limits.selective_recompute = false;
  job.job.training.stack.partial_recompute = PartialRecompute::none;
  EXPECT_EQ(resolve_recompute(job, legal_plan(job, request)).recompute,
            (Recompute{RecomputeMode::full, 0}));
}

TEST(ResolveRecompute, RecomputesNothingWhereEverythingFits) {
  const PreparedJob job = llama_8b_on_h100();
  PlanRequest request{.zero_stage = 3, .recompute = {RecomputeMode::automatic, 0}};
  EXPECT_EQ(resolve_recompute(job, legal_plan(job, request)).recompute.mode, RecomputeMode::none);
}

// Expected maximum of n standard normal variables: 1.4236 of 8 (tables of order statistics, e.g.
// Harter 1961).
TEST(Estimate, WaitsForTheSlowestOfManyRanks) {
  PreparedJob job = llama_8b_on_h100();
  const Plan plan = legal_plan(job, {});
  const Breakdown alike = estimate(job, plan).breakdown;
  job.job.training.stack.rank_spread = 0.01;
  const Breakdown unlike = estimate(job, plan).breakdown;
  const Seconds paced = alike.compute + alike.embedding_head + alike.recompute + alike.bubble;
  EXPECT_NEAR((unlike.other - alike.other) / paced, 0.01 * 1.4236, 2e-4);
}

TEST(Estimate, OfRecomputationThatStopsEarlyLeavesOutAThirdOfTheMlp) {
  PreparedJob job = llama_8b_on_h100();
  const Plan plan = legal_plan(job, {.recompute = {RecomputeMode::full, 0}});
  const Seconds whole = estimate(job, plan).breakdown.recompute;
  job.job.training.stack.recompute_stops_early = true;
  const Seconds early = estimate(job, plan).breakdown.recompute;
  // The down projection has 58.7 of a layer's 218.1 million weights. Attention and memory-bound
  // operators are also repeated, so its share of the time is smaller.
  EXPECT_LT(early / whole, 0.9);
  EXPECT_GT(early / whole, 1 - 58.7 / 218.1);
}

// Gathers move one byte per element instead of two, which saves half of the bytes of one of two
// collectives. Each is a ring of eight: seven steps of 3 us, and 7/8 of 4,096 tokens by 4,096 at
// 450 GB/s.
TEST(Estimate, OfQuantisedGathersMovesThreeQuartersOfTheTraffic) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.precision = *find_precision_recipe("fp8");
  job.job.training.stack.sequence_parallel = true;
  const Plan plan = legal_plan(job, {.tensor_parallel = 8, .sequence_parallel = true});
  const PlanLinks links = plan_links(job, plan);
  const auto forward = [&] {
    return layer_traffic(job, plan, links, tensor_traffic(job, plan, links), {})
        .tensor_parallel.forward;
  };
  const Seconds wide = forward();
  job.job.training.stack.quantised_gathers = true;
  const double latency = 7 * 3e-6, bytes = 7.0 / 8 * 4096 * 4096 * 2 / 450e9;
  EXPECT_NEAR(forward() / wide, (latency + 0.75 * bytes) / (latency + bytes), 1e-6);
}

// 108 is no multiple of 8, so on an A100 fp16 vectors at 78 TFLOP/s do the work instead of tensor
// cores at 312.
TEST(Estimate, OfUnfusedAttentionOnOddHeadsDoesWithoutTensorCores) {
  PreparedJob job = gpt3_on_a100();
  const auto core = [&](int head_dim) {
    Operator op;
    op.kind = OperatorKind::attention_core;
    op.cls = OperatorClass::attention;
    op.attention.query_head_dim = head_dim;
    op.forward = Flops(1e12);
    return operator_time(job.job.cluster.device, job.job.training, op).forward;
  };
  EXPECT_NEAR(core(108) / core(104), 312.0 / 78.0, 1e-9);
}

// The stages on both sides of a boundary take part in its sends. A micro-batch crosses p·v − 1
// boundaries in a loop, 2·(p − 1) on a way that turns, and p − 1 on each of two ways. A message
// takes a second here, and compute loses all of it, so passes get longer by two seconds per
// boundary.
TEST(Sends, SlowThePassesOnBothSidesOfEveryBoundary) {
  const PreparedJob job = gpt3_on_a100();
  Stack stack = job.job.training.stack;
  stack.overlap_slowdown = 1;
  const auto all = [&](const char* schedule, int chunks) {
    PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 8, .virtual_stages = chunks};
    request.schedule = schedule;
    request.overlap.pipeline = true;
    const Plan plan = legal_plan(job, request);
    PassTimes sum;
    for (int stage = 0; stage < 8; ++stage) {
      const PassTimes sends = sends_in_passes(stack, plan, {.between = Seconds(1)}, stage);
      sum.forward += sends.forward;
      sum.input_gradient += sends.input_gradient;
    }
    EXPECT_EQ(sum.forward, sum.input_gradient) << schedule;
    return sum.forward.value();
  };
  EXPECT_EQ(all("1f1b", 1), 2 * (8 - 1));
  EXPECT_EQ(all("interleaved-1f1b", 3), 2 * (8 * 3 - 1));
  EXPECT_EQ(all("zb-v", 2), 4 * (8 - 1));
  EXPECT_EQ(all("dualpipe", 1), 2 * (8 - 1));
}

// If the stack does not overlap sends, a pass contains what its own stage sends. On a way that
// turns, or with ways from both ends, that is each boundary once.
TEST(Sends, ThatAreNotOverlappedStandInThePassesOfTheirSenders) {
  const PreparedJob job = gpt3_on_a100();
  const auto all = [&](const char* schedule, int chunks) {
    PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 8, .virtual_stages = chunks};
    request.schedule = schedule;
    request.overlap.pipeline = false;
    const Plan plan = legal_plan(job, request);
    PassTimes sum;
    for (int stage = 0; stage < 8; ++stage) {
      const PassTimes sends =
          sends_in_passes(job.job.training.stack, plan, {.between = Seconds(1)}, stage);
      sum.forward += sends.forward;
      sum.input_gradient += sends.input_gradient;
    }
    EXPECT_EQ(sum.forward, sum.input_gradient) << schedule;
    return sum.forward.value();
  };
  EXPECT_EQ(all("zb-v", 2), 2 * (8 - 1));
  EXPECT_EQ(all("dualpipe", 1), 8 - 1);
}

// Eight stages of two devices on nodes of eight: four stages per domain. A message leaves its
// domain only from the fourth stage to the fifth and from the last to the first. 2,048 · 12,288
// elements of two bytes (with sequence parallelism half of them) take 84 µs over NVLink at 300 GB/s
// and 1.007 ms at 25 GB/s, plus a message's latency.
TEST(Sends, StayInTheirDomainWhereTheNextStageIsInIt) {
  const PreparedJob job = gpt3_on_a100(2, 64);
  PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 8};
  const Plan plan = legal_plan(job, request);
  ASSERT_EQ(plan.data_parallel, 1);
  const PipelineSends sends = pipeline_sends(job, plan, plan_links(job, plan));
  EXPECT_EQ(sends.stages_in_domain, 4);
  EXPECT_NEAR(sends.within.value(), 84e-6, 10e-6);
  EXPECT_NEAR(sends.between.value(), 1.007e-3, 0.2e-3);
  EXPECT_EQ(sends.behind(2), sends.within);
  EXPECT_EQ(sends.behind(3), sends.between);
  EXPECT_EQ(sends.behind(7), sends.between);
  EXPECT_EQ(sends.behind(-1), sends.between);
  EXPECT_EQ(sends.on_the_way(), 6 * sends.within + sends.between);
}

// The square of routed_groups_test (MessagesTakeTheTimeOfTheFullestLinkOnTheirWay): messages along
// the diagonal take half as long while the last stage sends none, in all but a loop of chunks.
TEST(Sends, TakeTheTimeOfTheirOwnBoundary) {
  PreparedJob job = gpt3_on_a100(4, 64);
  InterNode& inter = job.job.cluster.inter;
  inter.kind = InterNodeKind::torus;
  inter.dimensions = {2, 2};
  inter.link_bandwidth = 40.0_GBps;
  job = prepare(job.job);
  PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 4};
  request.schedule = "1f1b";
  const Plan plan = legal_plan(job, request);
  const PipelineSends sends = pipeline_sends(job, plan, plan_links(job, plan));
  const Seconds side = sends.behind(0) - sends.latency;
  EXPECT_NEAR((sends.behind(1) - sends.latency) / side, 0.5, 1e-9);
  EXPECT_NEAR((sends.on_the_way() - 3 * sends.latency) / side, 2.5, 1e-9);
  EXPECT_EQ(sends.between, sends.behind(2));

  request.virtual_stages = 2;
  request.schedule = "interleaved-1f1b";
  const Plan loop = legal_plan(job, request);
  const PipelineSends all = pipeline_sends(job, loop, plan_links(job, loop));
  EXPECT_EQ(all.behind(1), all.behind(0));
  EXPECT_EQ(all.around(), 4 * all.between);
}

// 1F1B keeps one micro-batch in flight per stage, so the sends of a round trip add to the time of
// the pipeline, with few micro-batches as with many. The player of pass lists says how much.
TEST(Sends, OfOneForwardOneBackwardPaceThePipeline) {
  for (const int microbatches : {1, 2, 4, 8, 11, 24, 128}) {
    PreparedJob job = gpt3_on_a100(8, microbatches);
    job.job.training.stack.overlap_slowdown = 0;
    PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 8};
    request.overlap.pipeline = true;
    job.job.cluster.inter.bandwidth *= 0.02;
    job = prepare(job.job);
    const Plan plan = legal_plan(job, request);
    const Estimate out = estimate(job, plan);
    const PipelineShape shape = pipeline_shape(plan);
    PlayTimes times = play_times(shape, out.passes);
    const PassList passes = plan.schedule->passes(shape);
    const Seconds without = play(passes, shape, times)->longest_span;
    times.send = pipeline_sends(job, plan, plan_links(job, plan)).between;
    const Seconds with = play(passes, shape, times)->longest_span;
    EXPECT_GT(with / without, 1.05);
    EXPECT_NEAR((out.breakdown.pipeline + without) / with, 1, 0.01) << microbatches;
  }
}

// A user's own layers per stage, where the first chunk of the first stage or the last chunk of the
// last stage differs from the others. The player of pass lists says what they take. Some cases have
// end stages that are one layer short, or unlike stages whose chunks are alike.
TEST(Pipeline, OfUnlikeLayersTakesWhatIsPlayed) {
  const PreparedJob job = llama_8b_on_h100(1, 16);
  const std::vector<std::vector<int>> lists = {
      {4, 4, 4, 1, 4, 4, 4, 7}, {1, 4, 4, 4, 7, 4, 4, 4}, {7, 4, 4, 4, 1, 4, 4, 4},
      {3, 4, 4, 4, 4, 4, 4, 5}, {2, 6, 4, 4, 2, 6, 4, 4}, {4, 4, 4, 4, 4, 4, 4, 4},
  };
  for (const int t : {1, 2}) {
    for (const std::vector<int>& layers : lists) {
      PlanRequest request{.tensor_parallel = t, .pipeline_parallel = 4, .virtual_stages = 2};
      request.layers_per_stage = layers;
      request.zero_stage = 0;
      const Plan plan = legal_plan(job, request);
      const Estimate out = estimate(job, plan);
      const PipelineShape shape = pipeline_shape(plan);
      const auto played =
          play(plan.schedule->passes(shape), shape, play_times(shape, out.chunk_passes));
      const Seconds busy = out.stages[static_cast<std::size_t>(out.slowest_stage)].passes.total() *
                           plan.microbatches;
      EXPECT_NEAR((busy + out.breakdown.bubble) / played->longest_span, 1, 1e-3)
          << "t " << t << ", first chunk " << layers.front() << ", last " << layers.back();
    }
  }
}

// Eight stages of like layers, four per node. An overlapped send slows the stages at both ends of
// its boundary, and some boundaries lie inside a node.
TEST(Pipeline, HasTheSendsOfEveryStagesOwnBoundaries) {
  PreparedJob job = llama_8b_on_h100(2, 32);
  job.job.training.stack.overlap_slowdown = 0.2;
  PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 8};
  request.schedule = "1f1b";
  request.rank_order = "tp-cp-ep-pp-dp";
  request.overlap.pipeline = true;
  const Plan plan = legal_plan(job, request);
  const Estimate out = estimate(job, plan);
  const PipelineSends sends = pipeline_sends(job, plan, plan_links(job, plan));
  ASSERT_EQ(sends.stages_in_domain, 4);
  const Seconds crossing = 0.2 * (sends.between - sends.within);
  ASSERT_GT(crossing, Seconds(0));
  const auto forward = [&](std::size_t stage) { return out.stages[stage].passes.forward; };
  for (const std::size_t beside : {3u, 4u}) {  // the boundary between the nodes
    EXPECT_NEAR((forward(beside) - forward(2)) / crossing, 1, 1e-6) << beside;
  }
  for (const std::size_t inside : {1u, 5u, 6u}) {
    EXPECT_NEAR(forward(inside) / forward(2), 1, 1e-12) << inside;
  }
}

// The head makes the last stage the longest. It begins when the first micro-batch arrives and ends
// last. The player of pass lists is the second computation.
TEST(Pipeline, OfZbH1EndsWhenItsLastStageEnds) {
  const PreparedJob job = llama_8b_on_h100(1, 8);
  PlanRequest request{.pipeline_parallel = 8};
  request.schedule = "zb-h1";
  request.zero_stage = 0;
  const Plan plan = legal_plan(job, request);
  const Estimate out = estimate(job, plan);
  const PipelineShape shape = pipeline_shape(plan);
  const auto played = play(plan.schedule->passes(shape), shape, play_times(shape, out.passes));
  const Seconds busy =
      out.stages[static_cast<std::size_t>(out.slowest_stage)].passes.total() * plan.microbatches;
  EXPECT_NEAR((busy + out.breakdown.bubble) / played->makespan, 1, 1e-3);
  EXPECT_GT(played->makespan, 1.02 * played->longest_span);
}

}  // namespace
}  // namespace trainyard
