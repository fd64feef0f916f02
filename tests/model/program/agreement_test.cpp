// Compares the program with the other description of the same step: model/workload's operators
// (FLOP, shapes, saved bytes) and model/cost's traffic. Neither is derived from the other.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "model/cost/estimate.h"
#include "model/cost/layer_cost.h"
#include "model/cost/messages/pipeline_sends.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/sharding/data_parallel.h"
#include "model/plan/layer_shard.h"
#include "model/program/flop.h"
#include "model/program/lower.h"
#include "model/program/price.h"
#include "model/program/view.h"
#include "model/schedule/schedule.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/program/unit_links.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

struct Case {
  PreparedJob job;
  Plan plan;
  Program program;
};

Case make_case(PreparedJob job, const PlanRequest& request) {
  job.job.training.stack.fused_cross_entropy = false;
  Case result{.job = job, .plan = legal_plan(job, request)};
  auto program = lower(job.job.model, job.job.training, result.plan);
  if (!program) ADD_FAILURE() << program.error().message;
  result.program = program.value_or(Program{});
  return result;
}

PlanRequest degrees(int tensor, int pipeline, bool sequence_parallel) {
  PlanRequest request;
  request.tensor_parallel = tensor;
  request.pipeline_parallel = pipeline;
  request.sequence_parallel = sequence_parallel;
  request.zero_stage = 0;
  return request;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const bool sequence_parallel : {false, true}) {
    list.push_back(make_case(llama_8b_on_h100(), degrees(2, 2, sequence_parallel)));
    list.push_back(make_case(gpt3_on_a100(), degrees(8, 4, sequence_parallel)));
    PlanRequest interleaved = degrees(8, 8, sequence_parallel);
    interleaved.virtual_stages = 3;
    list.push_back(make_case(gpt3_on_a100(), interleaved));
    PlanRequest zero_bubble = degrees(4, 2, sequence_parallel);
    zero_bubble.schedule = "zb-h1";
    list.push_back(make_case(llama_8b_on_h100(), zero_bubble));
    PlanRequest sharded = degrees(2, 2, sequence_parallel);
    sharded.zero_stage = 1;
    list.push_back(make_case(llama_8b_on_h100(), sharded));
  }
  list.push_back(make_case(llama_8b_on_h100(), degrees(1, 1, false)));
  for (const char* recipe : {"fp8", "mxfp8"}) {
    for (const bool in_low_precision : {false, true}) {
      PreparedJob job = llama_8b_on_h100();
      ComputeRates& rates = job.job.cluster.device.rates;  // mxfp8 wants GEMMs of 4 bits too
      rates.gemm[static_cast<std::size_t>(Dtype::fp4)] = rates.of(Dtype::fp8);
      job.job.training.precision = *find_precision_recipe(recipe);
      job.job.training.stack.quantised_gathers = in_low_precision;
      job.job.training.stack.quantised_activation_input = in_low_precision;
      job.job.training.stack.copies_sharded_sequences = in_low_precision;
      job.job.training.stack.eager_gradients = in_low_precision;
      job.job.training.stack.compiled = !in_low_precision;
      list.push_back(make_case(job, degrees(1, 1, false)));
      list.push_back(make_case(job, degrees(4, 2, true)));
    }
  }
  return list;
}

template <typename Visit>
void for_each_operation(const Case& of, const Visit& visit) {
  for (int stage = 0; stage < of.plan.pipeline_parallel; ++stage) {
    for (const IssuedOperation issued : operations_of(of.program, stage)) visit(issued);
  }
}

void expect_close(double found, double expected, const char* what) {
  EXPECT_NEAR(found, expected, 1e-12 * std::abs(expected)) << what;
}

// Handbook §12.2.
TEST(ProgramAgreement, FlopOfAllRanksAreTheModelFlop) {
  for (const Case& c : cases()) {
    Flops flop;
    for_each_operation(c,
                       [&](const IssuedOperation& issued) { flop += flop_of(*issued.operation); });
    const double ranks = c.plan.tensor_parallel * c.plan.data_parallel;
    expect_close((flop * ranks).value(), c.job.model_flop.value(), "FLOP");
  }
}

// Six layers on two stages: dense, experts, dense | experts, dense, experts.
Transformer every_second_of_experts() {
  Transformer model = mixtral_8x7b();
  model.layers = 6;
  model.moe_every = 2;
  return model;
}

Case repeating(const Transformer& model, SelectiveRecompute selective, bool stops_early,
               Recompute recompute) {
  Job job = llama_8b_on_h100().job;
  job.model = model;
  job.training.stack.selective = selective;
  job.training.stack.recompute_stops_early = stops_early;
  job.training.stack.flash_attention = selective != SelectiveRecompute::core_attention;
  PlanRequest request = degrees(1, 2, false);
  request.recompute = recompute;
  return make_case(prepare(job), request);
}

void expect_hardware_flop_of_the_program(const Case& c) {
  Flops repeated;
  for_each_operation(c, [&](const IssuedOperation& issued) {
    if (issued.operation->recomputed) repeated += flop_of(*issued.operation);
  });
  const double ranks = c.plan.devices() / c.plan.pipeline_parallel;
  const Estimate out = estimate(c.job, c.plan);
  EXPECT_NEAR(out.hfu / out.mfu - 1, repeated * ranks / c.job.model_flop, 1e-12);
}

// HFU counts what runs above the kernel's interface (handbook §3). Of a stage's unlike layers, the
// first ones are recomputed.
TEST(ProgramAgreement, HardwareFlopAreThoseThatTheProgramRepeats) {
  for (const Transformer& model : {llama_8b(), every_second_of_experts()}) {
    for (const bool stops_early : {false, true}) {
      for (const int layers : {0, 1, 2}) {
        expect_hardware_flop_of_the_program(repeating(model, SelectiveRecompute::core_attention,
                                                      stops_early, {RecomputeMode::full, layers}));
      }
    }
    for (const auto selective :
         {SelectiveRecompute::core_attention, SelectiveRecompute::every_second_matmul}) {
      expect_hardware_flop_of_the_program(
          repeating(model, selective, true, {RecomputeMode::selective, 0}));
    }
  }
}

std::vector<Operator> operators_of(const Case& c) {
  const LayerShard shard = layer_shard(c.plan);
  const Job& job = c.job.job;
  std::vector<Operator> list;
  for (const auto& part : {layer_operators(job.model, job.training, shard, LayerKind{}),
                           embedding_operators(job.model, job.training, shard),
                           head_operators(job.model, job.training, shard)}) {
    list.insert(list.end(), part.begin(), part.end());
  }
  return list;
}

void expect_same_shape(const Operation& operation, const Operator& op) {
  EXPECT_EQ(operation.gemm.m, op.gemm.m);
  EXPECT_EQ(operation.gemm.n, op.gemm.n);
  EXPECT_EQ(operation.gemm.k, op.gemm.k);
  EXPECT_EQ(operation.attention.heads, op.attention.heads);
  EXPECT_EQ(operation.attention.kv_heads, op.attention.kv_heads);
  EXPECT_EQ(operation.attention.queries, op.attention.queries);
  EXPECT_EQ(operation.attention.keys, op.attention.keys);
  EXPECT_EQ(operation.attention.batch, op.attention.batch);
  if (operation.kind == OperationKind::linear) {
    EXPECT_EQ(flop_of(operation).value(), op.forward.value());
  }
}

TEST(ProgramAgreement, EveryOperatorIsInTheProgramInItsShape) {
  for (const Case& c : cases()) {
    const std::vector<Operator> operators = operators_of(c);
    std::set<OperatorKind> found;
    for (const Block& block : c.program.blocks) {
      for (const Operation& operation : block.operations) {
        if (!operation.part) continue;
        found.insert(*operation.part);
        if (operation.kind == OperationKind::cast) continue;  // of a GEMM's operands, no GEMM
        for (const Operator& op : operators) {
          if (op.kind == *operation.part) expect_same_shape(operation, op);
        }
      }
    }
    for (const Operator& op : operators) {
      EXPECT_TRUE(found.contains(op.kind)) << name_of(op.kind);
    }
  }
}

const Block& block_of(const Case& c, std::string_view name) {
  for (const Block& block : c.program.blocks) {
    if (block.name == name) return block;
  }
  ADD_FAILURE() << name;
  return c.program.blocks.front();
}

// Bytes that a layer's forward pass creates and does not free. The layer's output counts in place
// of its input, which has the same size and was created by the layer before it.
Bytes kept_by_layer(const Case& c) {
  Bytes kept;
  for (const Operation& operation : block_of(c, "layer forward").operations) {
    for (const Operand& operand : operation.operands) {
      const ProgramBuffer& buffer = c.program.buffer(operand.buffer);
      if (operand.access == Access::create) kept += buffer.bytes();
      if (operand.frees) kept -= buffer.bytes();
    }
  }
  return kept;
}

TEST(ProgramAgreement, ALayerKeepsWhatItsOperatorsSave) {
  for (const Case& c : cases()) {
    Bytes saved;
    const Job& job = c.job.job;
    for (const Operator& op :
         layer_operators(job.model, job.training, layer_shard(c.plan), LayerKind{})) {
      saved += op.saved;
    }
    expect_close(kept_by_layer(c).value(), saved.value(), "bytes kept");
  }
}

// ---- What is repeated of it ------------------------------------------------------------------

struct OfRepeated {
  int tensor = 1, context = 1;
  bool sequence_parallel = false;
};
Case every_second_repeated(const OfRepeated& of, PreparedJob job) {
  job.job.training.stack.selective = SelectiveRecompute::every_second_matmul;
  job.job.training.stack.flash_attention = true;
  PlanRequest request = degrees(of.tensor, 1, of.sequence_parallel);
  request.context_parallel = of.context;
  request.recompute = {RecomputeMode::selective, 0};
  return make_case(std::move(job), request);
}

// Time of the part of a layer's forward pass that its backward pass recomputes.
Seconds time_repeated(const Case& c) {
  const OperationPrices prices(c.job, c.plan);
  const Block& backward = block_of(c, "layer backward");
  Seconds again;
  for (const Operation& operation : backward.operations) {
    if (operation.recomputed) again += prices.of(c.program, backward, operation);
  }
  return again;
}

PreparedJob in_8_bits(PreparedJob job) {
  job.job.training.precision = *find_precision_recipe("fp8");
  return job;
}

// pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md: Llama-3.1-8B, b = 2, s = 8192
// reserves 82.4 and 67.0 GiB in eager mode, and 5.4 and 5.0 GiB less when compiled. The MLP's
// output, 2·b·s·h bytes in each of 32 layers, is 4 GiB of that.
TEST(ProgramAgreement, CompiledLayersDoNotKeepTheMlpsOutput) {
  const auto kept = [](bool compiled) {
    PreparedJob job = llama_8b_on_h100();
    job.job.training.stack.compiled = compiled;
    const Case c = every_second_repeated({1}, std::move(job));
    const LayerCost cost = layer_cost(c.job, c.plan, unit_links(c.plan), LayerKind{});
    expect_close(kept_by_layer(c).value(), cost.saved.selective.value(), "bytes kept");
    expect_close(time_repeated(c).value(), cost.selective_recompute.recompute.value(),
                 "time repeated");
    const double tokens = static_cast<double>(c.job.job.training.sequence_length);
    return cost.saved.selective.value() / (c.plan.micro_batch * tokens);
  };
  EXPECT_DOUBLE_EQ(kept(false) - kept(true), 2 * 4096);
}

// An eager policy keeps every second GEMM's output by its number, even if nobody reads it again:
// per token, the MLP's output (2 bytes for 4,096 numbers) on every tensor-parallel rank before it
// is scattered, and this rank's part of the sum. Without sequence parallelism that sum is made in
// place.
TEST(ProgramAgreement, EagerLayersKeepTheMlpsOutputBeforeAndBehindTheReduceScatter) {
  for (const bool sequence_parallel : {false, true}) {
    const auto kept = [&](bool compiled) {
      PreparedJob job = llama_8b_on_h100();
      job.job.training.stack.compiled = compiled;
      const Case c = every_second_repeated({.tensor = 4, .sequence_parallel = sequence_parallel},
                                           std::move(job));
      const LayerCost cost = layer_cost(c.job, c.plan, unit_links(c.plan), LayerKind{});
      expect_close(kept_by_layer(c).value(), cost.saved.selective.value(), "bytes kept");
      return kept_by_layer(c).value() /
             static_cast<double>(c.job.job.training.sequence_length * c.plan.micro_batch);
    };
    const double more = sequence_parallel ? 2 * 4096 + 2 * 4096 / 4.0 : 2 * 4096;
    EXPECT_DOUBLE_EQ(kept(false) - kept(true), more) << sequence_parallel;
  }
}

// PyTorch's ring keeps the rank's own inputs and nothing that other ranks passed on: per token the
// layer's input, queries, values, the attention's output with its log-sum-exp, and one half of the
// MLP's first GEMM, as on one rank.
TEST(ProgramAgreement, ARingKeepsNothingOfWhatCameWhereEverySecondMatmulIsRepeated) {
  for (const int ranks : {2, 4}) {
    PreparedJob job = llama_8b_on_h100();
    job.job.training.stack.compiled = true;
    const Case c = every_second_repeated({.context = ranks}, std::move(job));
    const LayerCost cost = layer_cost(c.job, c.plan, unit_links(c.plan), LayerKind{});
    const double tokens = static_cast<double>(c.job.job.training.sequence_length) / ranks;
    const double a_token = 2 * (4096 + 4096 + 1024 + 4096 + 14336) + 4 * 32;
    expect_close(kept_by_layer(c).value(), a_token * tokens, "bytes kept");
    expect_close(cost.saved.selective.value(), a_token * tokens, "bytes estimated");
    expect_close(time_repeated(c).value(), cost.selective_recompute.recompute.value(),
                 "time repeated");
  }
}

// Compares with the estimate's own account of the operators.
TEST(ProgramAgreement, EverySecondMatmulIsRepeatedAndTheOthersKeptAsTheEstimateSays) {
  for (const Case& c :
       {every_second_repeated({1}, llama_8b_on_h100()),
        every_second_repeated({4}, llama_8b_on_h100()), every_second_repeated({8}, gpt3_on_a100()),
        every_second_repeated({4}, in_8_bits(llama_8b_on_h100()))}) {
    const LayerCost cost = layer_cost(c.job, c.plan, unit_links(c.plan), LayerKind{});
    expect_close(kept_by_layer(c).value(), cost.saved.selective.value(), "bytes kept");
    expect_close(time_repeated(c).value(), cost.selective_recompute.recompute.value(),
                 "time repeated");
  }
}

// Where recomputation stops early, the last GEMM is not repeated, but the cast of its input is,
// because the weight gradient reads it.
TEST(ProgramAgreement, AStopBehindTheLastSavedTensorLeavesOutWhatTheEstimateSays) {
  for (const bool narrow : {false, true}) {
    PreparedJob job = llama_8b_on_h100();
    if (narrow) job = in_8_bits(std::move(job));
    job.job.training.stack.recompute_stops_early = true;
    PlanRequest request = degrees(1, 1, false);
    request.recompute = {RecomputeMode::full, 0};
    const Case c = make_case(std::move(job), request);
    const LayerCost cost = layer_cost(c.job, c.plan, unit_links(c.plan), LayerKind{});
    expect_close(time_repeated(c).value(), cost.full_recompute.recompute.value(), "time repeated");
  }
}

// Of the ten copies beside a layer's collectives, the two of gathers are repeated.
TEST(ProgramAgreement, EverySecondMatmulRepeatsTheCopiesOfWhatIsGathered) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.selective = SelectiveRecompute::every_second_matmul;
  job.job.training.stack.copies_sharded_sequences = true;
  PlanRequest request = degrees(4, 1, true);
  request.recompute = {RecomputeMode::selective, 0};
  const Case c = make_case(std::move(job), request);
  int copies = 0, repeated = 0;
  for (const char* name : {"layer forward", "layer backward"}) {
    for (const Operation& operation : block_of(c, name).operations) {
      if (!operation.part || !is_sequence_copy(*operation.part)) continue;
      ++copies;
      if (!operation.recomputed) continue;
      ++repeated;
      EXPECT_EQ(operation.part, OperatorKind::gather_copy);
    }
  }
  EXPECT_EQ(copies, 10);
  EXPECT_EQ(repeated, 2);
}

// The parameters of a rank, and the bytes that are read, held and written for each.
TEST(ProgramAgreement, StagesHoldTheParametersOfTheEstimate) {
  for (const Case& c : cases()) {
    std::vector<StageParameters> stages;
    stage_parameters(c.job, c.plan, stages);
    for (int stage = 0; stage < c.plan.pipeline_parallel; ++stage) {
      double elements = 0;
      for (const IssuedOperation issued : operations_of(c.program, stage)) {
        if (issued.operation->kind != OperationKind::optimizer_step) continue;
        for (const Operand& operand : issued.operation->operands) {
          const ProgramBuffer& buffer = c.program.buffer(operand.buffer);
          if (buffer.role == BufferRole::weight) {
            elements += static_cast<double>(buffer.rows * buffer.columns);
          }
        }
      }
      expect_close(elements, stages[static_cast<std::size_t>(stage)].dense, "parameters");
    }
  }
}

// The kernel times of one layer's passes are those of its operators, each counted once.
void expect_layer_costs_its_operators(const Case& c) {
  const OperationPrices prices(c.job, c.plan);
  Seconds priced;
  for (const char* name : {"layer forward", "layer backward"}) {
    const Block& block = block_of(c, name);
    for (const Operation& operation : block.operations) {
      priced += prices.of(c.program, block, operation);
    }
  }
  Seconds expected;
  const Job& job = c.job.job;
  for (const Operator& op :
       layer_operators(job.model, job.training, layer_shard(c.plan), LayerKind{})) {
    const OperatorTime time = operator_time(job.cluster.device, job.training, op);
    expected += time.forward + time.input_gradient + time.weight_gradient;
  }
  expect_close(priced.value(), expected.value(), "layer");
}

TEST(ProgramAgreement, ALayerCostsWhatItsOperatorsCost) {
  for (const Case& c : cases()) expect_layer_costs_its_operators(c);
}

// Gradient norm and update on a rank of the last stage. The serial part of a sharded update is not
// an operation.
TEST(ProgramAgreement, TheOptimizerCostsWhatTheEstimateSays) {
  for (const Case& c : cases()) {
    const OperationPrices prices(c.job, c.plan);
    Seconds priced;
    for (const IssuedOperation issued : operations_of(c.program, c.plan.pipeline_parallel - 1)) {
      if (issued.tag().pass == StepPass::finish) {
        priced += prices.of(c.program, *issued.block, *issued.operation);
      }
    }
    std::vector<StageParameters> stages;
    stage_parameters(c.job, c.plan, stages);
    const Seconds expected = optimizer_time(c.job, c.plan, stages.back()) -
                             serial_update_time(c.job.job.training.stack, c.plan);
    expect_close(priced.value(), expected.value(), "optimizer");
  }
}

// ---- Communication ------------------------------------------------------------------------

// accounts_test checks on random plans what tensor- and data-parallel groups exchange.
TEST(ProgramAgreement, SendsCarryTheBytesOfTheTraffic) {
  for (const Case& c : cases()) {
    const PlanLinks links = unit_links(c.plan);
    Seconds sent;
    for_each_operation(c, [&](const IssuedOperation& issued) {
      const Operation& op = *issued.operation;
      if (op.kind != OperationKind::send) return;
      sent += collective_time(*collective_of(op.kind), links.pipeline, op.message, links);
    });
    const int boundaries = c.plan.pipeline_parallel * c.plan.virtual_stages - 1;
    const Seconds expected =
        pipeline_sends(c.job, c.plan, links).between * (2.0 * boundaries * c.plan.microbatches);
    expect_close(sent.value(), expected.value(), "pipeline");
  }
}

// Positions in a stage's list: the first and last kernel of a pass, and its messages.
struct PassPlace {
  int first_kernel = -1, last_kernel = -1, receive = -1, send = -1;
};

std::map<std::pair<StepPass, int>, PassPlace> places_of(const Case& c, int stage) {
  std::map<std::pair<StepPass, int>, PassPlace> places;
  int position = 0;
  for (const IssuedOperation issued : operations_of(c.program, stage)) {
    const Tag tag = issued.tag();
    PassPlace& place = places[{tag.pass, tag.microbatch}];
    const Operation& op = *issued.operation;
    if (op.kind == OperationKind::receive) place.receive = position;
    if (op.kind == OperationKind::send) place.send = position;
    if (op.part && op.stream == ProgramStream::compute) {
      if (place.first_kernel < 0) place.first_kernel = position;
      place.last_kernel = position;
    }
    ++position;
  }
  return places;
}

// In a pair, as in DualPipe's published implementation, both inputs are received before its kernels
// and both outputs are sent after them.
TEST(ProgramAgreement, PassesSideBySideReceiveBeforeBothAndSendBehindBoth) {
  PlanRequest request = degrees(1, 4, false);
  request.schedule = "dualpipe";
  const Case c = make_case(llama_8b_on_h100(), request);
  const PassList lists = c.plan.schedule->passes(pipeline_shape(c.plan));
  int pairs = 0;
  for (int stage = 0; stage < c.plan.pipeline_parallel; ++stage) {
    auto places = places_of(c, stage);
    const std::vector<Pass>& list = lists[static_cast<std::size_t>(stage)];
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].paired) continue;
      ++pairs;
      const PassPlace forward = places[{StepPass::forward, list[i].microbatch}];
      const PassPlace backward = places[{StepPass::backward, list[i + 1].microbatch}];
      EXPECT_LT(backward.receive, forward.first_kernel);
      if (forward.send >= 0) {
        EXPECT_GT(forward.send, backward.last_kernel);
      }
    }
  }
  EXPECT_GT(pairs, 0);
}

// ---- The sequence over several ranks --------------------------------------------------------

Case over_context(ContextAlgorithm algorithm, bool fused = true) {
  PlanRequest request = degrees(2, 1, true);
  request.context_parallel = 4;
  request.context_parallel_algorithm = algorithm;
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.flash_attention = fused;
  return make_case(std::move(job), request);
}

Seconds context_wire(const Case& c, const PlanLinks& links) {
  Seconds wire;
  for_each_operation(c, [&](const IssuedOperation& issued) {
    const Operation& op = *issued.operation;
    if (op.group != Group::context) return;
    wire += collective_time(*collective_of(op.kind), links.context, op.message, links);
  });
  return wire;
}

TEST(ProgramAgreement, ContextRanksExchangeTheBytesOfTheTraffic) {
  for (const auto algorithm :
       {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
    const Case c = over_context(algorithm);
    const PlanLinks links = unit_links(c.plan);
    const PassTraffic layer = layer_traffic(c.job, c.plan, links, {}, {}).context_parallel;
    const double times = c.job.job.model.layers * c.plan.microbatches;
    const Seconds expected = (layer.forward + layer.backward) * times;
    expect_close(context_wire(c, links).value(), expected.value(), "context");
  }
}

TEST(ProgramAgreement, ContextRanksShareTheFlopAndTheTime) {
  for (const auto algorithm :
       {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
    for (const bool fused : {true, false}) {
      const Case c = over_context(algorithm, fused);
      Flops flop;
      for_each_operation(
          c, [&](const IssuedOperation& issued) { flop += flop_of(*issued.operation); });
      expect_close((flop * c.plan.devices()).value(), c.job.model_flop.value(), "FLOP");
      expect_layer_costs_its_operators(c);
    }
  }
}

// Handbook §7: one score of 16 bits per query, head and key; the rows of a ring also keep a
// log-sum-exp.
TEST(ProgramAgreement, RingsWithoutAFusedKernelKeepTheScoresOfTheirBlocks) {
  const Case fused = over_context(ContextAlgorithm::ring);
  const Case unfused = over_context(ContextAlgorithm::ring, false);
  const Transformer& model = unfused.job.job.model;
  const auto keys = static_cast<double>(unfused.job.job.training.sequence_length);
  const double scores =
      unfused.plan.micro_batch * (keys / 4) * (model.attention_heads / 2.0) * keys;
  expect_close((kept_by_layer(unfused) - kept_by_layer(fused)).value(), 2 * scores, "scores");
}

}  // namespace
}  // namespace trainyard
