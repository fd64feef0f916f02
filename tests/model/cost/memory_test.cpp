#include "model/cost/memory/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "model/cost/estimate.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

using namespace literals;

// State bytes by handbook §7 with K = 12 and gradients of 16 bits, or of `gradient_bytes`.
Bytes states(double parameters, int zero_stage, int ranks, double gradient_bytes = 2) {
  Training training = modern();
  training.stack.gradient_bytes = gradient_bytes;
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.zero_stage = zero_stage;
  plan.sharding_group = ranks;
  StageParameters stage;
  stage.dense = parameters;
  return state_memory(training, plan, stage).allocated();
}

// golden.md, "ZeRO bytes per rank" (Rajbhandari et al. 2020, Fig. 1).
TEST(StateMemory, OfZeroStagesIsThePublishedOne) {
  EXPECT_NEAR(states(7.5e9, 0, 64).value(), 120.0e9, 1e6);
  EXPECT_NEAR(states(7.5e9, 1, 64).value(), 31.41e9, 1e7);
  EXPECT_NEAR(states(7.5e9, 2, 64).value(), 16.64e9, 1e7);
  EXPECT_NEAR(states(7.5e9, 3, 64).value(), 1.875e9, 1e6);
}

// FSDP2 under torch.distributed.pipelining calls set_requires_gradient_sync(False) and
// set_reshard_after_backward(False) except for the last backward pass (stage.py). So 2 bytes of
// each gathered weight and 4 of each gradient are whole, and 12 bytes of master weight and moments
// are sharded, whatever reshard_after_forward is. Without a pipeline nothing is whole.
TEST(StateMemory, UnderNoSyncHasWholeGradientsAndGatheredWeights) {
  Training training = modern();
  training.stack.gradient_bytes = 4;
  training.stack.keeps_weight_copy = false;
  const auto of = [&](int zero_stage, int stages) {
    Plan plan;
    plan.schedule = find_schedule("1f1b");
    plan.zero_stage = zero_stage;
    plan.pipeline_parallel = stages;
    plan.sharding_group = 8;
    plan.pipeline_no_sync = true;
    StageParameters stage;
    stage.dense = 1e9;
    return state_memory(training, plan, stage).allocated().value();
  };
  for (const int zero_stage : {2, 3}) {
    EXPECT_DOUBLE_EQ(of(zero_stage, 4), 1e9 * (2 + 4 + 12.0 / 8)) << zero_stage;
  }
  EXPECT_DOUBLE_EQ(of(2, 1), 1e9 * (2 + (4 + 12.0) / 8));
  EXPECT_DOUBLE_EQ(of(3, 1), 1e9 * (4 + 12.0) / 8);
}

// golden.md, Llama-2-7B: fp32 DDP states take 107.8 GB, FSDP over 2, 4 and 8 ranks 53.9, 27.0 and
// 13.5. That is 16 bytes for each of 6,738,415,616 parameters, even if the stack uses 16-bit
// gradients.
TEST(StateMemory, OfFp32HasGradientsOfItsWeights) {
  for (const double gradient_bytes : {2, 4}) {
    Training training = modern();
    training.precision = *find_precision_recipe("fp32");
    training.stack.gradient_bytes = training.stack.reduction_bytes = gradient_bytes;
    const auto of = [&](int zero_stage, int ranks) {
      Plan plan;
      plan.schedule = find_schedule("1f1b");
      plan.zero_stage = zero_stage;
      plan.sharding_group = ranks;
      StageParameters stage;
      stage.dense = 6'738'415'616;
      return state_memory(training, plan, stage).allocated().value();
    };
    EXPECT_NEAR(of(0, 8), 107.8e9, 5e7);
    EXPECT_NEAR(of(3, 2), 53.9e9, 5e7);
    EXPECT_NEAR(of(3, 4), 27.0e9, 5e7);
    EXPECT_NEAR(of(3, 8), 13.5e9, 5e7);
    EXPECT_EQ(reduced_gradient_bytes(training), 4);
  }
}

// golden.md, "175B on 8 ranks".
TEST(StateMemory, Of175BillionParametersOnEightRanks) {
  EXPECT_NEAR(states(175e9, 0, 8).value(), 2800e9, 1e8);
  EXPECT_NEAR(states(175e9, 1, 8).value(), 962.5e9, 1e8);
  EXPECT_NEAR(states(175e9, 2, 8).value(), 656.25e9, 1e8);
  EXPECT_NEAR(states(175e9, 3, 8).value(), 350.0e9, 1e8);
}

// golden.md, "states at t = 8, p = 16": 16 B, 18 B, ZeRO-1 over 8, and the distributed optimizer
// with fp32 gradients (6 + 12/8 bytes).
TEST(StateMemory, OfAGpt3RankUnderMegatronsOptimizers) {
  const double parameters = 1.36419e9;
  EXPECT_NEAR(states(parameters, 0, 8) / 1.0_GiB, 20.33, 0.005);
  EXPECT_NEAR(states(parameters, 0, 8, 4) / 1.0_GiB, 22.87, 0.005);
  EXPECT_NEAR(states(parameters, 1, 8) / 1.0_GiB, 6.99, 0.005);
  EXPECT_NEAR(states(parameters, 1, 8, 4) / 1.0_GiB, 9.53, 0.005);
}

// In PyTorch's fully_shard a module's parameters are its fp32 shards, which are cast to 16 bits as
// they are gathered. Adam keeps two more such tensors (handbook §7: 4 + 4 + 4, and 4 for the
// gradient).
TEST(StateMemory, OfFsdpCountsTheShardsAsParameters) {
  Training training = modern();
  training.stack.keeps_weight_copy = false;
  training.stack.gradient_bytes = 4;
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.zero_stage = 3;
  plan.sharding_group = 8;
  StageParameters stage;
  stage.dense = 8e9;
  const MemoryByKind memory = state_memory(training, plan, stage);
  EXPECT_EQ(memory.parameters, Bytes(4e9));
  EXPECT_EQ(memory.gradients, Bytes(4e9));
  EXPECT_EQ(memory.optimizer, Bytes(8e9));
}

// Llama-3.1-8B in bf16 with an untied vocabulary of 128,256 × 4,096 at both ends and a final norm.
// All 8,030,261,248 parameters have master weights and a momentum; those at the ends also have
// AdamW's second moment (Liu et al. 2025, arXiv 2502.16982, §2.2).
TEST(StateMemory, OfMuonHasTwoMomentsAtTheEndsOfTheNetwork) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.optimizer = *find_optimizer("muon");
  const Plan plan = legal_plan(job, {.zero_stage = 0});
  std::vector<StageParameters> stages;
  stage_parameters(job, plan, stages);
  const double ends = 2 * 128256.0 * 4096 + 4096;
  EXPECT_DOUBLE_EQ(state_memory(job.job.training, plan, stages.front()).optimizer.value(),
                   8 * 8030261248.0 + 4 * ends);
}

// golden.md, "reduction by stages 1, 2, 3".
TEST(StateMemory, ShrinksByThePublishedFactors) {
  const double whole = states(1e9, 0, 8).value();
  EXPECT_NEAR(whole / states(1e9, 1, 8).value(), 2.91, 0.005);
  EXPECT_NEAR(whole / states(1e9, 2, 64).value(), 7.21, 0.005);
  EXPECT_NEAR(whole / states(1e9, 3, 1024).value(), 1024, 1e-6);
}

LayerCost gpt3_layer(int tensor, bool sequence_parallel) {
  const PreparedJob job = gpt3_on_a100(16, 64);
  const Plan plan = legal_plan(job, {.tensor_parallel = tensor,
                                     .sequence_parallel = sequence_parallel,
                                     .pipeline_parallel = 128 / tensor > 16 ? 16 : 128 / tensor});
  return layer_cost(job, plan, plan_links(job, plan), {});
}

// golden.md, "activations of one layer" (Korthikanti et al. 2022, Table 2): MiB at b = 1.
TEST(LayerActivations, AreKorthikantisRows) {
  const Bytes mib = 1.0_MiB;
  EXPECT_NEAR(gpt3_layer(1, false).saved.everything / mib, 2736, 0.5);
  EXPECT_NEAR(gpt3_layer(8, false).saved.everything / mib, 552, 0.5);
  EXPECT_NEAR(gpt3_layer(8, true).saved.everything / mib, 342, 0.5);
  EXPECT_NEAR(gpt3_layer(8, true).saved.selective / mib, 102, 0.5);
  EXPECT_NEAR(gpt3_layer(8, false).saved.input_only / mib, 48, 0.5);
  EXPECT_NEAR(gpt3_layer(8, true).saved.input_only / mib, 6, 0.5);
}

// golden.md, "1F1B stage 0 of p = 16 (6 layers, 16 in flight)". The embedding's own dropout mask (1
// byte per element) comes on top.
TEST(StageActivations, OfTheFirst1F1BStageOfGpt3) {
  const PreparedJob job = gpt3_on_a100(16, 64);
  const auto stage0 = [&](bool sequence_parallel, RecomputeMode mode) {
    const Plan plan = legal_plan(job, {.tensor_parallel = 8,
                                       .sequence_parallel = sequence_parallel,
                                       .pipeline_parallel = 16,
                                       .recompute = {mode, 0}});
    return estimate(job, plan).stages[0].memory.at_peak.activations / 1.0_GiB;
  };
  const double mask = 16.0 * 2048 * 12288 / 1073741824.0;
  EXPECT_NEAR(stage0(false, RecomputeMode::none), 51.75 + mask, 0.01);
  EXPECT_NEAR(stage0(true, RecomputeMode::none), 32.06 + mask / 8, 0.01);
  EXPECT_NEAR(stage0(true, RecomputeMode::selective), 9.56 + mask / 8, 0.01);
  EXPECT_NEAR(stage0(false, RecomputeMode::full), 4.50 + mask, 0.01);
}

// Second computation: four plans that recompute the same way on every stage. A stage of the mixed
// plan costs what that stage costs in the plan that recomputes everywhere as it does.
TEST(StageRecompute, CostsWhatTheSameStageCostsWhereAllDoIt) {
  const PreparedJob job = gpt3_on_a100();
  PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 4};
  request.recompute_per_stage = {
      {RecomputeMode::full, 0}, {RecomputeMode::full, 5}, {RecomputeMode::selective, 0}, {}};
  const Estimate mixed = estimate(job, legal_plan(job, request));
  for (std::size_t i = 0; i < 4; ++i) {
    PlanRequest alike{.tensor_parallel = 8, .pipeline_parallel = 4};
    alike.recompute = request.recompute_per_stage[i];
    const StageEstimate expected = estimate(job, legal_plan(job, alike)).stages[i];
    const StageEstimate& stage = mixed.stages[i];
    EXPECT_EQ(stage.memory.at_peak.device(), expected.memory.at_peak.device()) << i;
    EXPECT_EQ(stage.passes.total(), expected.passes.total()) << i;
    EXPECT_EQ(stage.exposed.recompute, expected.exposed.recompute) << i;
  }
}

// Model FLOP are 3 forward passes (handbook §3). Recomputing half the layers of one stage in four
// adds an eighth of the forward FLOP to the hardware FLOP.
TEST(StageRecompute, AddsTheFlopOfItsOwnLayersToWhatTheHardwareDoes) {
  const PreparedJob job = gpt3_on_a100();
  PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 4};
  request.recompute_per_stage.assign(4, {});
  request.recompute_per_stage[1] = {RecomputeMode::full, 12};  // of 24: an eighth of the network
  const Estimate mixed = estimate(job, legal_plan(job, request));
  const double batch = 64;
  EXPECT_NEAR(mixed.hfu / mixed.mfu, 1 + job.flop.layers * batch / 8 / job.model_flop, 1e-12);
}

TEST(StageMemory, HoldsLogitsOrRecomputedActivationsNeverBoth) {
  const PreparedJob job = gpt3_on_a100();
  const Plan plan = legal_plan(
      job, {.tensor_parallel = 8, .pipeline_parallel = 8, .recompute = {RecomputeMode::full, 0}});
  for (const StageEstimate& stage : estimate(job, plan).stages) {
    const MemoryByKind& peak = stage.memory.at_peak;
    EXPECT_EQ(std::min(peak.logits, peak.recomputation), Bytes(0));
    EXPECT_EQ(stage.memory.moment == MemoryMoment::output_head, peak.logits > Bytes(0));
  }
}

// Under gpipe all micro-batches go forward before the first goes back (Huang et al. 2019). A logit
// waits as its softmax in fp32, and its 16-bit gradient is added to that (Megatron-LM's
// cross_entropy.py, the stack of gpt3_on_a100). At the peak, the logits of the last micro-batch may
// already have been freed for a layer's gradients.
TEST(StageMemory, OfGpipeHoldsTheLogitsOfEveryMicroBatch) {
  const PreparedJob job = gpt3_on_a100();
  PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 8, .schedule = "gpipe"};
  const Plan plan = legal_plan(job, request);
  const Estimate all = estimate(job, plan);
  const Bytes logits = all.stages.back().memory.at_peak.logits;
  const double rows = static_cast<double>(job.job.training.sequence_length) * plan.micro_batch;
  const double columns = static_cast<double>(padded_vocabulary(job.job.model.vocabulary, 8)) / 8;
  const double waiting = 4 * rows * columns * (plan.microbatches - 1);
  EXPECT_GE(logits.value(), waiting);
  EXPECT_LE(logits.value(), waiting + 6 * rows * columns);
  EXPECT_EQ(all.stages.front().memory.at_peak.logits, Bytes(0));
}

// Where a weight gradient is put off, the logits' gradients live until then: for p − 1 more
// micro-batches on the last stage of ZB-H1, for 2p − 2 of ZB-H2 (Qi et al. 2023, figures 2 and 3).
// In a V the first stage has the head and puts off nothing.
TEST(StageMemory, HoldsLogitGradientsUntilTheWeightGradient) {
  const PreparedJob job = gpt3_on_a100();
  const auto logits = [&](std::string_view schedule, int chunks, std::size_t stage) {
    PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 8};
    request.schedule = schedule;
    request.virtual_stages = chunks;
    request.recompute = {RecomputeMode::none, 0};
    return estimate(job, legal_plan(job, request)).stages[stage].memory.at_peak.logits.value();
  };
  const double columns = static_cast<double>(padded_vocabulary(job.job.model.vocabulary, 8)) / 8;
  const double one = static_cast<double>(job.job.training.sequence_length) * columns;
  const double head = logits("1f1b", 1, 7);
  EXPECT_TRUE(head == 0 || head == 6 * one) << head / one;
  EXPECT_DOUBLE_EQ(logits("zb-h1", 1, 7) - head, 7 * 2 * one);
  EXPECT_DOUBLE_EQ(logits("zb-h2", 1, 7) - head, 14 * 2 * one);
  EXPECT_EQ(logits("zb-v", 2, 7), 0);
  EXPECT_LE(logits("zb-v", 2, 0), 6 * one);
}

// 36 layers in 16 chunks: two per chunk, and one more in chunks 1 … 4 (design §3). Expected is the
// maximum of the layers in flight, counted over Megatron's order of passes
// (core/pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving: (p−i−1)·2 +
// (v−1)·p passes of warm-up), m = 16.
TEST(StageMemory, CountsTheLayersOfEachChunkInFlight) {
  Job deep = llama_8b_on_h100(1, 16).job;
  deep.model.layers = 36;
  const PreparedJob job = prepare(deep);
  PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 4};
  request.virtual_stages = 4;
  for (const bool away : {false, true}) {
    if (away) request.offload.activations = OffloadTarget::host;
    const Plan plan = legal_plan(job, request);
    const Estimate priced = estimate(job, plan);
    const double one = layer_cost(job, plan, plan_links(job, plan), {}).saved.everything.value();
    for (const auto& [stage, layers] : {std::pair(0, 46), std::pair(1, 42), std::pair(2, 38)}) {
      const StageMemory& memory = priced.stages[static_cast<std::size_t>(stage)].memory;
      const Bytes found = away ? memory.on_host : memory.at_peak.activations;
      EXPECT_NEAR(found.value(), layers * one, 1e-9 * layers * one) << stage << away;
    }
  }
}

// Backward passes run from the last layer to the first. In a chunk of four layers of which three
// are recomputed, only the input of the last is left when the third is complete again. With two
// recomputed, two layers are gone by then, which is more than a layer. With seven recomputed of two
// chunks, one chunk has no layer behind them. Where weight gradients are put off, nothing is gone.
TEST(StageMemory, HasNothingOfTheLayersBehindThoseThatAreRepeated) {
  const PreparedJob job = llama_8b_on_h100(2, 32);
  PlanRequest request{.tensor_parallel = 2};
  const auto repeated = [&](int pipeline, int layers, const char* schedule, int chunks) {
    request.pipeline_parallel = pipeline;
    request.recompute = {RecomputeMode::full, layers};
    request.schedule = schedule;
    request.virtual_stages = chunks;
    const Plan plan = legal_plan(job, request);
    return estimate(job, plan).stages.front().memory.at_peak.recomputation.value();
  };
  const Plan plan = legal_plan(job, {.tensor_parallel = 2, .pipeline_parallel = 8});
  const SavedBytes saved = layer_cost(job, plan, plan_links(job, plan), {}).saved;
  const double all = saved.everything.value(), input = saved.input_only.value();
  EXPECT_NEAR(repeated(8, 4, "1f1b", 1), all, 1e-9 * all);
  EXPECT_NEAR(repeated(8, 3, "1f1b", 1), input, 1e-9 * all);
  EXPECT_EQ(repeated(8, 2, "1f1b", 1), 0);
  EXPECT_NEAR(repeated(4, 6, "interleaved-1f1b", 2), input, 1e-9 * all);
  EXPECT_NEAR(repeated(4, 7, "interleaved-1f1b", 2), all, 1e-9 * all);
  EXPECT_GE(repeated(8, 3, "zb-h1", 1), all * (1 - 1e-9));
}

// The most that a stage keeps over its list of passes, in units of one micro-batch's activations on
// the stage. A forward pass adds `kept`; an input gradient leaves `between` of it until the weight
// gradient; a whole backward pass leaves nothing.
double most_kept(const Plan& plan, int stage, double kept, double between) {
  const PipelineShape shape = pipeline_shape(plan);
  double now = 0, most = 0;
  const PassList lists = plan.schedule->passes(shape);
  for (const Pass& pass : lists[static_cast<std::size_t>(stage)]) {
    if (pass.kind == PassKind::forward) now += kept;
    if (pass.kind == PassKind::input_gradient) now += between - kept;
    if (pass.kind == PassKind::weight_gradient) now -= between;
    if (pass.kind == PassKind::backward) now -= kept;
    most = std::max(most, now);
  }
  return most / chunks_held(shape);
}

// PyTorch of December 2024, torch/distributed/pipelining/stage.py: for each of m micro-batches a
// chunk has a buffer in which activations come (args_recv_info) and one in which gradients do
// (grad_recv_info); output_chunks has what it sent and the buffers' grad what it sent back, until
// the next step. Of 1F1B's four stages the third has two micro-batches in flight, of which the
// first layer's input lies in its buffer, and m − 2 gradients; the first receives no activations,
// the last no gradients, and has m times the logits. Later nothing stays to the end, but for what a
// micro-batch in flight has sent.
TEST(StageMemory, HoldsWhatThePipelineKeepsOfEveryMicroBatch) {
  const PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 4};
  const auto memory = [&](bool buffers, bool to_the_end) {
    PreparedJob job = llama_8b_on_h100(1, 16);
    Stack& stack = job.job.training.stack;
    stack.pipeline_receive_buffers = buffers;
    stack.pipeline_keeps_outputs = stack.pipeline_keeps_gradients = to_the_end;
    stack.pipeline_keeps_logits = to_the_end;
    return estimate(prepare(job.job), legal_plan(job, request)).stages;
  };
  const double message = 4096.0 / 2 * 4096 * 2;  // of sequence parallelism a half
  const auto plain = memory(false, false);
  const auto more = [&](const std::vector<StageEstimate>& stages, std::size_t stage) {
    return (stages[stage].memory.at_peak.activations - plain[stage].memory.at_peak.activations) /
           Bytes(message);
  };
  const auto first = memory(true, true);
  EXPECT_DOUBLE_EQ(more(first, 0), 16 + 16);                        // gradients, outputs
  EXPECT_DOUBLE_EQ(more(first, 2), (16 - 2) + 16 + 16 + (16 - 2));  // both ways, twice
  EXPECT_DOUBLE_EQ(more(first, 3), (16 - 1) + (16 - 1));
  EXPECT_DOUBLE_EQ((first[3].memory.at_peak.logits - plain[3].memory.at_peak.logits).value(),
                   16 * 4096.0 * 128256 / 2 * 2);
  const auto later = memory(true, false);
  EXPECT_DOUBLE_EQ(more(later, 0), 16 + 4);
  EXPECT_DOUBLE_EQ(more(later, 2), (16 - 2) + 16 + 2);
  EXPECT_DOUBLE_EQ(more(later, 3), 16 - 1);
  EXPECT_EQ(later[3].memory.at_peak.logits, plain[3].memory.at_peak.logits);
}

// fms-fsdp, fms_fsdp/policies/ac_handler.py, of 1/2: [ac, no-ac, ac, no-ac, ...]. With experts in
// every second layer, the dense ones are first: they keep their input alone, those with experts
// everything. A stage of three keeps its second layer.
TEST(StageMemory, KeepsEverySecondLayerWhole) {
  PreparedJob job = llama_8b_on_h100(1, 16);
  job.job.model = mixtral_8x7b();
  job.job.model.layers = 6;
  job.job.model.moe_every = 2;
  job.job.training.stack.selective = SelectiveRecompute::half_of_layers;
  job = prepare(job.job);
  PlanRequest request{.recompute = {RecomputeMode::selective, 0}};
  const auto kept = [&] {
    const Plan plan = legal_plan(job, request);
    std::vector<double> bytes;
    for (const StageEstimate& stage : estimate(job, plan).stages) {
      bytes.push_back(stage.memory.at_peak.activations.value());
    }
    return bytes;
  };
  const auto layers = [&] {
    const Plan plan = legal_plan(job, request);
    return stage_costs(job, plan, plan_links(job, plan));
  };
  const StageCosts whole = layers();
  const auto dense = static_cast<std::size_t>(index_of(layer_kind(job.job.model, 0)));
  const auto moe = static_cast<std::size_t>(index_of(layer_kind(job.job.model, 1)));
  ASSERT_NE(dense, moe);
  const auto input = [](const LayerCost& layer) { return layer.saved.input_only.value(); };
  const auto all = [](const LayerCost& layer) { return layer.saved.everything.value(); };
  const double ends =
      whole.embedding.saved.everything.value() + whole.head.saved.everything.value();
  EXPECT_NEAR(kept()[0] / (3 * input(whole.layers[dense]) + 3 * all(whole.layers[moe]) + ends), 1,
              1e-12);
  request.pipeline_parallel = 2;
  const StageCosts half = layers();
  EXPECT_NEAR(kept()[1] / (2 * input(half.layers[moe]) + all(half.layers[dense]) +
                           half.head.saved.everything.value()),
              1, 1e-12);
}

// What the weight gradients of Llama-3.1-8B read, per token on each of eight ranks. Inputs of QKV,
// output projection, up and down: 4096, 4096/8, 4096 and 14336/8 elements, where sequence
// parallelism shards the column-parallel ones. Gradients of their outputs: 6144/8, 4096, 2·14336/8
// and 4096, gathered. Only the first half of the backward pass reads queries, keys and values, gate
// and up.
TEST(SavedBytes, BetweenTheHalvesAreWhatWeightGradientsRead) {
  const PreparedJob job = llama_8b_on_h100();
  for (const bool sharded : {false, true}) {
    const Plan plan = legal_plan(job, {.tensor_parallel = 8, .sequence_parallel = sharded});
    const SavedBytes saved = layer_cost(job, plan, plan_links(job, plan), {}).saved;
    const double input = sharded ? 4096.0 / 8 : 4096;
    const double elements = 2 * input + (4096.0 + 14336) / 8 + (6144 + 2.0 * 14336) / 8 + 2 * 4096;
    const double tokens = static_cast<double>(job.job.training.sequence_length) * plan.micro_batch;
    EXPECT_DOUBLE_EQ(saved.between_halves.value(), 2 * tokens * elements) << sharded;
  }
}

// What full recomputation repeats, or what comes back from the host, for the first half of a
// backward pass stays until the second half. The estimate is exact where most passes are in flight
// while others wait between their halves; otherwise it may count the inputs of a few more.
TEST(StageMemory, KeepsWhatIsBackBetweenTheHalvesOfABackwardPass) {
  const PreparedJob job = llama_8b_on_h100();
  for (const char* schedule : {"zb-h1", "zb-h2", "zb-v", "dualpipe"}) {
    const bool exact = std::string_view(schedule).starts_with("zb-h");
    PlanRequest request{.pipeline_parallel = 4, .schedule = schedule};
    if (std::string_view(schedule) == "zb-v") request.virtual_stages = 2;
    request.recompute.mode = RecomputeMode::full;
    const Plan plan = legal_plan(job, request);
    const Estimate priced = estimate(job, plan);
    const LayerCost layer = layer_cost(job, plan, plan_links(job, plan), {});
    for (int i = 1; i < 3; ++i) {  // stages with neither embedding nor head
      const auto stage = static_cast<std::size_t>(i);
      const double layers = priced.held[stage].layers;
      const double input = layers * layer.saved.input_only.value();
      const double all = layers * layer.saved.between_halves.value();
      const MemoryByKind& peak = priced.stages[stage].memory.at_peak;
      const double found = (peak.activations + peak.recomputation).value();
      const double at_work = (layer.saved.everything - layer.saved.between_halves).value();
      const double expected = most_kept(plan, i, input, all) + at_work;
      EXPECT_GE(found, expected * (1 - 1e-12)) << schedule << ", stage " << i;
      EXPECT_LE(found, (expected + (exact ? 0 : 4 * input)) * (1 + 1e-12)) << schedule << i;
    }
  }
}

// An unfused core saves softmax, mask and dropout output (handbook §7: 5as² bytes), which only the
// first half of the backward pass reads. So each layer between the halves keeps that much less,
// except for the layer at work.
TEST(StageMemory, DropsTheScoresBetweenTheHalvesOfABackwardPass) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.flash_attention = false;
  job.job.training.stack.dropout = true;
  PlanRequest request{.pipeline_parallel = 4, .schedule = "zb-h2"};
  request.recompute.mode = RecomputeMode::full;
  const Plan plan = legal_plan(job, request);
  const Estimate priced = estimate(job, plan);
  const SavedBytes saved = layer_cost(job, plan, plan_links(job, plan), {}).saved;
  const double length = static_cast<double>(job.job.training.sequence_length);
  const double scores = 5.0 * plan.micro_batch * job.job.model.attention_heads * length * length;
  for (int i = 1; i < 3; ++i) {
    const auto stage = static_cast<std::size_t>(i);
    const double layers = priced.held[stage].layers;
    const MemoryByKind& peak = priced.stages[stage].memory.at_peak;
    const double between = saved.between_halves.value();
    EXPECT_GE(saved.everything.value() - between, scores);
    const double expected = most_kept(plan, i, layers * saved.input_only.value(), layers * between);
    EXPECT_NEAR((peak.activations + peak.recomputation).value(),
                expected + saved.everything.value() - between, 1e-9 * expected);
  }
}

// With activations on the host, two layers' activations are on the device at a time.
TEST(StageMemory, KeepsWhatIsFetchedBetweenTheHalvesOfABackwardPass) {
  const PreparedJob job = llama_8b_on_h100();
  PlanRequest request{.pipeline_parallel = 4, .schedule = "zb-h2"};
  request.offload.activations = OffloadTarget::host;
  const Plan plan = legal_plan(job, request);
  const Estimate priced = estimate(job, plan);
  const LayerCost layer = layer_cost(job, plan, plan_links(job, plan), {});
  const double one = layer.saved.everything.value();
  for (int i = 1; i < 3; ++i) {
    const auto stage = static_cast<std::size_t>(i);
    const MemoryByKind& peak = priced.stages[stage].memory.at_peak;
    const double expected =
        most_kept(plan, i, 0, priced.held[stage].layers * layer.saved.between_halves.value()) +
        2 * one;
    EXPECT_NEAR((peak.activations + peak.recomputation).value(), expected, 1e-9 * expected);
  }
}

// PyTorch's loss_parallel makes the gradient of a sharded vocabulary's logits from four fp32
// tensors of their size (torch/distributed/tensor/parallel/loss.py); the kernels for one rank need
// three.
TEST(StageMemory, OfLogitsOverTensorRanksIsWhatTheStackSaysOfThem) {
  Job of = llama_8b_on_h100().job;
  of.training.stack.saved_logit_bytes = 12;
  of.training.stack.parallel_logit_bytes = 16;
  const PreparedJob job = prepare(of);
  const auto logits = [&](int tensor) {
    const Plan plan = legal_plan(job, {.tensor_parallel = tensor});
    return estimate(job, plan).stages.front().memory.at_peak.logits.value();
  };
  const double all = static_cast<double>(of.training.sequence_length) * 128'256;
  EXPECT_DOUBLE_EQ(logits(1), 12 * all);
  EXPECT_DOUBLE_EQ(logits(8), 16 * all / 8);
}

TEST(StageMemory, OffloadedStatesLeaveTheDevice) {
  const PreparedJob job = llama_8b_on_h100();
  PlanRequest request{.zero_stage = 1};
  request.offload.optimizer = OffloadTarget::host;
  request.offload.gradients = OffloadTarget::host;
  const MemoryByKind peak = estimate(job, legal_plan(job, request)).stages[0].memory.at_peak;
  EXPECT_EQ(peak.optimizer, Bytes(0));
  EXPECT_EQ(peak.gradients, Bytes(0));
  // Stage 2 of ZeRO-Offload leaves 2 bytes a parameter (golden.md, DeepSpeed's estimate).
  EXPECT_NEAR(peak.parameters.value(), 2 * 8030261248.0, 1);
}

// Adam's states take 12 bytes per parameter, divided among the ranks of ZeRO-1. Gradients are whole
// on every rank (handbook §7).
TEST(HostMemory, HoldsTheStatesOfAllRanksOfANode) {
  PreparedJob job = llama_8b_on_h100();
  PlanRequest request{.zero_stage = 1};
  request.offload.optimizer = OffloadTarget::host;
  request.offload.gradients = OffloadTarget::host;
  const Plan plan = legal_plan(job, request);
  const int ranks = job.job.cluster.devices_per_node;
  const double gradient = job.job.training.stack.gradient_bytes;
  const double shares = 12.0 * ranks / plan.data_parallel;
  const double expected = 8030261248.0 * (ranks * gradient + shares);
  const Estimate unknown = estimate(job, plan);
  EXPECT_NEAR(unknown.host_memory.value(), expected, 1e-9 * expected);
  EXPECT_TRUE(unknown.feasible);
  job.job.cluster.host_memory = Bytes(0.999 * expected);
  EXPECT_FALSE(estimate(job, plan).feasible);
  job.job.cluster.host_memory = Bytes(1.001 * expected);
  EXPECT_TRUE(estimate(job, plan).feasible);
}

// A layer's activations are held for every micro-batch in flight: one for this stage and one for
// each stage behind it (1F1B, Narayanan et al. 2021).
TEST(HostMemory, HoldsTheActivationsOfTheMicroBatchesInFlight) {
  const PreparedJob job = llama_8b_on_h100();
  PlanRequest request{.pipeline_parallel = 4, .schedule = "1f1b"};
  request.offload.activations = OffloadTarget::host;
  const Plan plan = legal_plan(job, request);
  const Estimate priced = estimate(job, plan);
  const double one = layer_cost(job, plan, plan_links(job, plan), {}).saved.everything.value();
  for (std::size_t i = 0; i < 4; ++i) {
    const double expected = static_cast<double>(4 - i) * priced.held[i].layers * one;
    EXPECT_NEAR(priced.stages[i].memory.on_host.value(), expected, 1e-9 * expected);
  }
}

TEST(KindsOfMemory, SumToWhatTheDeviceMustHave) {
  MemoryByKind memory;
  Bytes sum;
  double value = 1;
  for (const KindOfMemory& kind : kKindsOfMemory) {
    memory.*kind.bytes = Bytes(value);
    sum += Bytes(value);
    value *= 2;  // a kind listed twice or left out changes the sum
  }
  EXPECT_EQ(memory.device(), sum);
}

// Flash attention keeps no scores, so selective recomputation of them repeats nothing, whether the
// halves of backward passes are apart or not.
TEST(StageMemory, OfSelectiveRecomputationUnderFlashAttentionIsThatOfNone) {
  const PreparedJob job = llama_8b_on_h100(1, 64);
  ASSERT_TRUE(job.job.training.stack.flash_attention);
  ASSERT_EQ(job.job.training.stack.selective, SelectiveRecompute::core_attention);
  for (const char* schedule : {"1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe"}) {
    PlanRequest request{.pipeline_parallel = 4, .schedule = schedule, .micro_batch = 1};
    if (std::string_view(schedule) == "zb-v") request.virtual_stages = 2;
    const Bytes none = estimate(job, legal_plan(job, request)).peak_memory;
    request.recompute = {RecomputeMode::selective, 0};
    EXPECT_EQ(estimate(job, legal_plan(job, request)).peak_memory, none) << schedule;
  }
}

}  // namespace
}  // namespace trainyard
