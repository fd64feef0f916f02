#include "scenarios/interchange/megatron/megatron.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/interchange/foreign.h"
#include "tests/scenarios/interchange/plans.h"

namespace trainyard {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const ImportSettings kTwoNodes{.node = "dgx-h100-80gb", .nodes = 2};

// Llama-3.1-8B as a script of Megatron-LM's examples writes it: variables, an array, comments.
const std::string kScript = R"(#!/bin/bash
# examples/llama/train_llama3_8b_h100_fp8.sh, shortened
TP_SIZE=2
CP_SIZE=1
LAYERS="32"
MODEL_ARGS=(
    --use-mcore-models
    --num-layers "$LAYERS"   # as published
    --hidden-size 4096 --ffn-hidden-size=14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8
    --kv-channels 128 --seq-length 8192 --max-position-embeddings 8192
    --position-embedding-type rope --rotary-base 1000000 --normalization RMSNorm
    --swiglu --disable-bias-linear --untie-embeddings-and-output-weights
    --tokenizer-type NullTokenizer --vocab-size 128255
)
torchrun --nproc_per_node 8 --nnodes ${NUM_NODES:-2} pretrain_gpt.py \
    "${MODEL_ARGS[@]}" \
    --micro-batch-size 1 --global-batch-size 128 --bf16 --fp8-format hybrid --fp8-recipe delayed \
    --tensor-model-parallel-size $TP_SIZE --context-parallel-size ${CP_SIZE} --sequence-parallel \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
    --recompute-granularity full --recompute-method block --recompute-num-layers 4 \
    --lr 1.5e-4 --new-option-of-a-fork 3
)";

Expected<Imported> imported(const std::string& text, const ImportSettings& settings = {}) {
  return import_megatron(foreign(text), settings);
}
std::string megatron_refusal(const std::string& text) {
  const auto read = imported(text);
  return read ? "accepted: " + read->document : line_of(read.error());
}
Scenario scenario_from(const Imported& read) {
  return parse_scenario(read.document, "read").value();
}

std::string with(const std::string& options) {
  return "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
         "--global-batch-size 64 --vocab-size 32000 --bf16 " +
         options;
}

TEST(MegatronImport, ReadsAScriptWithVariablesAndArrays) {
  const auto read = imported(kScript);
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  const Scenario scenario = scenario_from(*read);
  // The published count of Llama-3.1-8B (handbook §2).
  EXPECT_EQ(parameter_count(scenario.job.model, 8192), 8'030'261'248);
  EXPECT_EQ(scenario.job.training.sequence_length, 8192);
  EXPECT_EQ(scenario.job.training.precision.name, "fp8");
  EXPECT_EQ(scenario.job.cluster.devices(), 16);
  const PlanRequest& plan = *scenario.plan;
  EXPECT_EQ(plan.tensor_parallel, 2);
  EXPECT_EQ(plan.sequence_parallel, true);
  EXPECT_EQ(plan.zero_stage, 1);
  EXPECT_EQ(plan.recompute, (Recompute{RecomputeMode::full, 4}));
  EXPECT_THAT(read->ignored, ElementsAre(HasSubstr("lr"), HasSubstr("new_option_of_a_fork")));
}

// The keys of examples/gpt3/gpt_config.yaml.
TEST(MegatronImport, ReadsYaml) {
  const auto read = imported(R"(language_model:
  num_layers: 24
  hidden_size: 1024
  num_attention_heads: 16
  ffn_hidden_size: null
  add_bias_linear: True
  normalization: LayerNorm
model_parallel:
  tensor_model_parallel_size: 2
  sequence_parallel: True
  pipeline_model_parallel_size: 2
seq_length: 1024
global_batch_size: 16
micro_batch_size: 2
bf16: true
vocab_size: 50304
)",
                             kTwoNodes);
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  const Scenario scenario = scenario_from(*read);
  EXPECT_EQ(scenario.job.model.layers, 24);
  EXPECT_TRUE(scenario.job.model.biases);
  EXPECT_EQ(scenario.job.model.ffn_size, 4096);
  EXPECT_EQ(scenario.plan->pipeline_parallel, 2);
  EXPECT_EQ(scenario.plan->micro_batch, 2);
}

// Two processes on each of two machines are not one machine with four.
TEST(MegatronImport, TakesOfANodeTheDevicesThatTheFileStarts) {
  const auto read = imported("torchrun --nproc_per_node 2 --nnodes 2 x " + with(""));
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  const Cluster& cluster = scenario_from(*read).job.cluster;
  EXPECT_EQ(cluster.devices_per_node, 2);
  EXPECT_EQ(cluster.nodes, 2);
  EXPECT_THAT(read->assumptions,
              Contains(HasSubstr("2 of the 8 devices of a node: as many as the file starts")));
}

// examples/gpt3/gpt_config.yaml of Megatron-LM, shortened: it names everything, most of it off.
TEST(MegatronImport, ReadsItsOwnYamlWhereMostIsOff) {
  const auto read = imported(R"(# experimental
language_model:
  num_layers: 24
  hidden_size: 1024
  num_attention_heads: 16
  num_query_groups: null
  fp32_residual_connection: False
  distribute_saved_activations: null
  add_bias_linear: False
  activation_func: swiglu
  normalization: "LayerNorm"  # or "RMSNorm"
  moe_router_topk: 2
model_parallel:
  sequence_parallel: True
  bf16: True
use_legacy_models: False
spec: null
micro_batch_size: 2
global_batch_size: 128
rampup_batch_size: [32, 32, 65324160]
position_embedding_type: rope
untie_embeddings_and_output_weights: True
swiglu: True
seq_length: 4096
)");
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  const Transformer& model = scenario_from(*read).job.model;
  EXPECT_TRUE(model.gated_mlp);
  EXPECT_EQ(model.experts, 0);
  EXPECT_EQ(model.norm, Norm::layer_norm);
}

TEST(MegatronImport, RefusesWhatItDoesNotModel) {
  EXPECT_THAT(megatron_refusal(with("--encoder-num-layers 1")),
              HasSubstr("found encoder_num_layers, which changes"));
  EXPECT_THAT(megatron_refusal(with("--cpu-offloading-weights")),
              HasSubstr("found cpu_offloading_weights, which changes"));
  EXPECT_THAT(megatron_refusal(with("--attention-output-gate")),
              HasSubstr("found attention_output_gate, which changes"));
  EXPECT_THAT(megatron_refusal(with("--attention-backend unfused")),
              HasSubstr("found attention_backend \"unfused\"; allowed: auto, flash, fused"));
  // Scripts of Megatron-DeepSpeed keep such options in a string.
  EXPECT_THAT(megatron_refusal("DS=\" --zero-stage=3\"\nrun " + with("$DS")),
              HasSubstr("found zero_stage, which changes"));
  EXPECT_THAT(
      megatron_refusal(with("--recompute-granularity selective --recompute-modules core_attn mlp")),
      HasSubstr("line 1: found recompute_modules \"core_attn mlp\"; allowed: core_attn"));
  EXPECT_THAT(megatron_refusal(with("--optimizer muon")),
              HasSubstr("found optimizer \"muon\"; allowed: adam"));
}

TEST(MegatronImport, GivesOneLineForWhatCannotBe) {
  EXPECT_THAT(megatron_refusal(""), HasSubstr("found no num_layers"));
  EXPECT_THAT(megatron_refusal(with("--tensor-model-parallel-size $UNKNOWN")),
              HasSubstr("found tensor_model_parallel_size \"$UNKNOWN\"; allowed: a whole number"));
  EXPECT_THAT(megatron_refusal(with("--micro-batch-size -1")),
              HasSubstr("found micro_batch_size \"-1\""));
  EXPECT_THAT(megatron_refusal(with("--tensor-model-parallel-size 3")),
              HasSubstr("/plan/tensor_parallel"));
  EXPECT_THAT(megatron_refusal(with("--data-path 'open")),
              HasSubstr("found a quote without its end"));
  EXPECT_THAT(megatron_refusal("a: &x [1, 2]\nb: *x\n"), HasSubstr("line 1: found an anchor"));
}

// $A doubled 64 times would have 2^64 letters.
TEST(MegatronImport, DoesNotLetVariablesGrow) {
  std::string script = "A=aaaaaaaaaaaaaaaa\n";
  for (int i = 0; i < 64; ++i) script += "A=\"$A$A\"\n";
  EXPECT_THAT(megatron_refusal(script), HasSubstr("more text than a command line has"));
}

TEST(MegatronLists, AreWhatPythonMakesOfThem) {
  EXPECT_EQ(parse_python_list("([0]*2+[1]*3)").value(), (std::vector<int>{0, 0, 1, 1, 1}));
  EXPECT_EQ(parse_python_list("[0, 1]*2").value(), (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(parse_python_list(python_list({0, 0, 1})).value(), (std::vector<int>{0, 0, 1}));
  EXPECT_FALSE(parse_python_list("[1]*1000000*1000000").has_value());
  EXPECT_FALSE(parse_python_list("__import__('os')").has_value());
  EXPECT_FALSE(parse_python_list(std::string(100'000, '(')).has_value());
}

// The example of pipeline_parallel_layer_layout.py without its multi-token prediction.
TEST(MegatronLayouts, AreLayersOfEachChunk) {
  EXPECT_EQ(parse_pipeline_layout("Ettt|(tt|)*2L").value(), (std::vector<int>{3, 2, 2, 0}));
  EXPECT_EQ(parse_pipeline_layout("Et*3|t*4|t*3L").value(), (std::vector<int>{3, 4, 3}));
  EXPECT_EQ(parse_pipeline_layout(pipeline_layout({1, 0, 2})).value(), (std::vector<int>{1, 0, 2}));
  EXPECT_FALSE(parse_pipeline_layout("Ettt|m|L").has_value());
  EXPECT_FALSE(parse_pipeline_layout("tE|L").has_value());
  EXPECT_FALSE(parse_pipeline_layout("Et*99999999999999999999|L").has_value());
}

// The same with multi-token prediction, and the layout of DeepSeek-V3 on 16 stages in
// Megatron-Bridge (recipes/deepseek).
TEST(MegatronLayouts, EndWithTheLayersOfMultiTokenPrediction) {
  EXPECT_EQ(parse_pipeline_layout("Ettt|(tt|)*2mL", 1).value(), (std::vector<int>{3, 2, 2, 0}));
  std::vector<int> layers(16, 4);
  layers.back() = 1;
  EXPECT_EQ(parse_pipeline_layout("Et*4|(t*4|)*14tmL", 1).value(), layers);
  EXPECT_EQ(parse_pipeline_layout(pipeline_layout(layers, 1), 1).value(), layers);
  EXPECT_FALSE(parse_pipeline_layout("Ettt|m|L", 1).has_value());
  EXPECT_FALSE(parse_pipeline_layout("Ettt|ttL", 1).has_value());
  EXPECT_FALSE(parse_pipeline_layout("Ettt|ttmmL", 1).has_value());
}

// Sixteen stages with 4, 4, … and 1 layers, and the multi-token-prediction layer after the last.
TEST(MegatronExport, SaysMultiTokenPredictionAndReadsItBack) {
  Scenario scenario = scenario_of("deepseek-v3", "megatron-core", 2);
  scenario.job.model.mtp_layers = 1;
  std::vector<int> layers(16, 4);
  layers.back() = 1;
  const PlanRequest request{.pipeline_parallel = 16, .layers_per_stage = layers};
  const Plan plan =
      make_plan(request, scenario.job.model, scenario.job.cluster, scenario.job.training).value();
  const auto exported = export_megatron(scenario, plan);
  ASSERT_TRUE(exported.has_value()) << line_of(exported.error());
  const std::string& text = exported->files.front().text;
  EXPECT_THAT(text, HasSubstr("--mtp-num-layers 1"));
  EXPECT_THAT(text, HasSubstr("mL"));
  const auto read = imported(text, kTwoNodes);
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  const Scenario back = scenario_from(*read);
  EXPECT_EQ(back.job.model.mtp_layers, 1);
  EXPECT_EQ(back.plan.value_or(PlanRequest{}).layers_per_stage, layers);
}

// From the fourth layer on, DeepSeek-V3 has experts: ([0]*3+[1]*58).
TEST(MegatronExport, SaysEveryNetworkOfItsKindAndReadsItBack) {
  for (const char* name : {"llama-3.1-8b", "deepseek-v3", "mixtral-8x7b", "gpt3-175b", "qwen2.5-7b",
                           "qwen3-30b-a3b", "gpt-oss-20b"}) {
    const Scenario scenario = scenario_of(name, "megatron-core", 2);
    const Plan plan =
        make_plan({}, scenario.job.model, scenario.job.cluster, scenario.job.training).value();
    const auto exported = export_megatron(scenario, plan);
    ASSERT_TRUE(exported.has_value()) << name << line_of(exported.error());
    const auto read = imported(exported->files.front().text, kTwoNodes);
    ASSERT_TRUE(read.has_value()) << name << line_of(read.error());
    const Transformer model = scenario_from(*read).job.model;
    EXPECT_EQ(parameter_count(model, 4096), parameter_count(scenario.job.model, 4096)) << name;
    EXPECT_EQ(active_parameter_count(model, 4096), active_parameter_count(scenario.job.model, 4096))
        << name;
    EXPECT_EQ(model.sliding_window, scenario.job.model.sliding_window);
    EXPECT_EQ(model.full_attention_every, scenario.job.model.full_attention_every);
  }
}

void vary_megatron(Draw& draw, PlanRequest& request) {
  request.tensor_parallel = draw.power_of_two(3);
  request.context_parallel = draw.power_of_two(1);
  request.pipeline_parallel = 1 + draw.below(6);
  const int chunks = 1 + draw.below(3);
  request.virtual_stages = chunks;
  request.expert_parallel = draw.power_of_two(3);
  request.expert_tensor_parallel = draw.power_of_two(1);
  request.micro_batch = draw.power_of_two(2);
  request.sequence_parallel = draw.coin();
  request.zero_stage = draw.below(4);
  if (draw.coin()) request.sharding_group = draw.power_of_two(3);
  if (draw.coin()) request.rank_order = "tp-cp-ep-pp-dp";
  if (draw.coin()) request.capacity_factor = 1.25;
  constexpr ContextAlgorithm kContexts[] = {ContextAlgorithm::ring, ContextAlgorithm::all_gather,
                                            ContextAlgorithm::ulysses};
  request.context_parallel_algorithm = kContexts[draw.below(3)];
  request.recompute.mode = static_cast<RecomputeMode>(draw.below(3));
  if (request.recompute.mode == RecomputeMode::full) {
    request.recompute.full_layers = chunks * draw.below(3);
  }
  request.overlap.data_parallel = draw.coin();
  request.overlap.tensor_parallel = draw.coin();
  if (chunks > 1) request.overlap.pipeline = draw.coin();
  if (request.expert_parallel > 1) request.overlap.expert_parallel = draw.coin();
  if (draw.coin()) request.offload.optimizer = OffloadTarget::host;
}

// megatron/core/parallel_state.py: unless the order ends with pp, expert_data_parallel_size must be
// data_parallel_size. arguments.py: the expert_tensor_parallel_size of a dense network is
// tensor_model_parallel_size.
bool numbers_pipelines_before_replicas(const Plan& plan, const Transformer& model) {
  const int of_stage = plan.tensor_parallel * plan.context_parallel * plan.data_parallel;
  const int expert_tensor = model.experts > 0 ? plan.expert_tensor_parallel : plan.tensor_parallel;
  return of_stage / (expert_tensor * plan.expert_parallel) == plan.data_parallel;
}

class MegatronRoundTrip : public ::testing::TestWithParam<const char*> {};

// Export and import give the same plan, key by key. What is not stated because it has no meaning
// (tensor overlap of one rank, an algorithm for one context rank) is first set as in the plan.
TEST_P(MegatronRoundTrip, IsTheIdentityOnPlansThatBothCanSay) {
  const Scenario scenario = scenario_of(GetParam(), "megatron-core", 12, 2 * 3 * 4 * 5 * 64);
  const auto plans = random_plans(scenario, 60, vary_megatron, [&](const Plan& plan) {
    const bool capacity = scenario.job.model.experts == 0 && plan.capacity_factor > 0;
    return !capacity && export_megatron(scenario, plan).has_value();
  });
  ASSERT_EQ(plans.size(), 60u);
  for (const Plan& plan : plans) {
    const auto exported = export_megatron(scenario, plan).value();
    const auto read = imported(exported.files.front().text, {.node = "dgx-h100-80gb", .nodes = 12});
    ASSERT_TRUE(read.has_value()) << line_of(read.error()) << exported.files.front().text;
    const Scenario back = scenario_from(*read);
    Plan again = make_plan(*back.plan, back.job.model, back.job.cluster, back.job.training).value();
    if (plan.tensor_parallel == 1) again.overlap.tensor_parallel = plan.overlap.tensor_parallel;
    if (plan.context_parallel == 1) {
      again.context_parallel_algorithm = plan.context_parallel_algorithm;
    }
    const bool only_placed =
        plan.pipeline_parallel == 1 || !numbers_pipelines_before_replicas(plan, scenario.job.model);
    if (only_placed) {  // by the hostfile
      EXPECT_EQ(again.rank_order, PlanRequest().rank_order);
      again.rank_order = plan.rank_order;
    }
    EXPECT_EQ(text_of_plan(again), text_of_plan(plan)) << exported.files.front().text;
    EXPECT_EQ(back.job.training.global_batch, scenario.job.training.global_batch);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, MegatronRoundTrip,
                         ::testing::Values("llama-3.1-70b", "mixtral-8x7b", "llama-3.1-405b"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

std::string export_refusal(const PlanRequest& request, const std::string& stack = "ideal") {
  const Scenario scenario = scenario_of("llama-3.1-8b", stack, 2);
  const Job& job = scenario.job;
  const auto plan = make_plan(request, job.model, job.cluster, job.training).value();
  const auto exported = export_megatron(scenario, plan);
  return exported ? "exported" : line_of(exported.error());
}

Exported exported_to_megatron(const std::string& model, PlanRequest request) {
  const Scenario scenario = scenario_of(model, "megatron-core", 2);
  const Job& job = scenario.job;
  request.rank_order = "tp-cp-ep-pp-dp";
  const Plan plan = make_plan(request, job.model, job.cluster, job.training).value();
  return export_megatron(scenario, plan).value();
}

// The options follow how the stack is priced: DeepEP sends a token to a rank once, all-to-all once
// per expert (megatron/core/transformer/moe/token_dispatcher.py); fused cross-entropy is off by
// default.
TEST(MegatronExport, SaysHowTheStackSendsTokensAndComputesTheLoss) {
  const auto exported = [](int expert_parallel, bool deduplicated) {
    Scenario scenario = scenario_of("mixtral-8x7b", "megatron-core", 2);
    scenario.job.training.stack.deduplicated_dispatch = deduplicated;
    scenario.job.training.stack.fused_cross_entropy = deduplicated;
    const Job& job = scenario.job;
    PlanRequest request;
    request.expert_parallel = expert_parallel;
    const Plan plan = make_plan(request, job.model, job.cluster, job.training).value();
    return export_megatron(scenario, plan).value().files.front().text;
  };
  const auto deepep = HasSubstr("--moe-enable-deepep");
  EXPECT_THAT(exported(8, true), AllOf(HasSubstr("--moe-token-dispatcher-type flex"), deepep,
                                       HasSubstr("--cross-entropy-loss-fusion")));
  for (const std::string& text : {exported(8, false), exported(1, true)}) {
    EXPECT_THAT(text, AllOf(HasSubstr("--moe-token-dispatcher-type alltoall"), Not(deepep)));
  }
  EXPECT_THAT(exported(8, false), Not(HasSubstr("--cross-entropy-loss-fusion")));
}

// 16 ranks with t 2 · c 2 · p 2 · D 2. Megatron counts a dense network's experts on t ranks, which
// have four replicas. Mixtral's experts with e = 4 have two, as the rest has.
TEST(MegatronExport, NumbersPipelinesBeforeReplicasWhereMegatronCoreDoes) {
  const auto flag = HasSubstr("--use-tp-pp-dp-mapping");
  const auto placed = Contains(HasSubstr("rank_order tp-cp-ep-pp-dp is in the hostfile alone"));
  PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 2};
  Exported exported = exported_to_megatron("llama-3.1-8b", request);
  EXPECT_THAT(exported.files.front().text, flag);
  EXPECT_THAT(exported.notes, Not(placed));
  request.context_parallel = 2;
  exported = exported_to_megatron("llama-3.1-8b", request);
  EXPECT_THAT(exported.files.front().text, Not(flag));
  EXPECT_THAT(exported.notes, placed);
  // Megatron's rank 4 begins its second replica, whose first stage comes after both stages of the
  // first replica.
  EXPECT_THAT(exported.files[1].text, HasSubstr("\n0 3\n1 0\n1 1\n1 2\n1 3\n0 4\n"));
  exported = exported_to_megatron("mixtral-8x7b", request);
  EXPECT_THAT(exported.files.front().text, Not(flag));
  request.expert_parallel = 4;
  exported = exported_to_megatron("mixtral-8x7b", request);
  EXPECT_THAT(exported.files.front().text, flag);
  EXPECT_THAT(exported.notes, Not(placed));
}

std::string arguments_of(const std::string& model, const PlanRequest& request,
                         const std::string& stack = "megatron-core") {
  const Scenario scenario = scenario_of(model, stack, 2);
  const Job& job = scenario.job;
  const auto plan = make_plan(request, job.model, job.cluster, job.training).value();
  return export_megatron(scenario, plan).value().files.front().text;
}

// arguments.py: "No more than one of the following arguments can be set at the same time". The
// chunks per stage are the layout's chunks over the stages.
TEST(MegatronExport, SaysChunksByTheirNumberOrByALayout) {
  const auto number = HasSubstr("--num-virtual-stages-per-pipeline-rank");
  const auto layout = HasSubstr("--pipeline-model-parallel-layout");
  EXPECT_THAT(arguments_of("llama-3.1-8b", {.pipeline_parallel = 4, .virtual_stages = 2}),
              AllOf(number, Not(layout)));
  const std::string uneven =  // 32 layers in 12 chunks
      arguments_of("llama-3.1-8b", {.pipeline_parallel = 4, .virtual_stages = 3});
  EXPECT_THAT(uneven, AllOf(layout, Not(number)));
  const auto read = imported(uneven, kTwoNodes);
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  EXPECT_EQ(scenario_from(*read).plan.value_or(PlanRequest{}).virtual_stages, 3);
}

// Megatron-LM's defaults are 0.1.
TEST(MegatronExport, SaysTheDropoutOfTheStack) {
  EXPECT_THAT(arguments_of("llama-3.1-8b", {}),
              AllOf(HasSubstr("--attention-dropout 0\n"), HasSubstr("--hidden-dropout 0\n")));
  EXPECT_THAT(arguments_of("llama-3.1-8b", {}, "megatron-2022"),
              AllOf(HasSubstr("--attention-dropout 0.1\n"), HasSubstr("--hidden-dropout 0.1\n")));
}

// megatron/training/arguments.py: weights in 8 bits need the distributed optimizer, and those of
// mxfp8 a gather into the buffer of the gradients.
TEST(MegatronExport, KeepsWeightsInEightBitsWhereTheOptimizerIsDistributed) {
  const auto exported = [](const char* recipe, int zero_stage) {
    Scenario scenario = scenario_of("llama-3.1-8b", "megatron-core", 2, 256, "dgx-b200");
    scenario.job.training.precision = *find_precision_recipe(recipe);
    const Job& job = scenario.job;
    const auto plan = make_plan({.zero_stage = zero_stage}, job.model, job.cluster, job.training);
    return export_megatron(scenario, plan.value()).value();
  };
  const auto gather = HasSubstr("--fp8-param-gather\n");
  const auto into_gradients = HasSubstr("--reuse-grad-buf-for-mxfp8-param-ag\n");
  const auto beside = Contains(HasSubstr("2 bytes more a parameter"));
  EXPECT_THAT(exported("fp8", 1).files.front().text, AllOf(gather, Not(into_gradients)));
  EXPECT_THAT(exported("mxfp8", 1).files.front().text, AllOf(gather, into_gradients));
  EXPECT_THAT(exported("bf16", 1).files.front().text, Not(gather));
  EXPECT_THAT(exported("fp8", 0).files.front().text, Not(gather));
  EXPECT_THAT(exported("fp8", 0).notes, beside);
  EXPECT_THAT(exported("fp8", 1).notes, Not(beside));
}

// gpt_layer_specs.py builds the norms of the latent queries, keys and values if this flag is set.
TEST(MegatronExport, AsksForTheNormsOfLatentAttention) {
  EXPECT_THAT(arguments_of("deepseek-v3", {}), HasSubstr("--qk-layernorm"));
  EXPECT_THAT(arguments_of("llama-3.1-8b", {}), Not(HasSubstr("--qk-layernorm")));
}

std::string launch_of(const std::string& node, const PlanRequest& request,
                      const std::string& model = "llama-3.1-8b") {
  const Scenario scenario =
      parse_scenario(fmt::format(R"({{"trainyard": "scenario/1", "name": "n", "model": "{}",
        "cluster": {{"node": "{}", "nodes": 2}},
        "training": {{"global_batch": 256, "sequence_length": 4096, "stack": "megatron-core"}}}})",
                                 model, node),
                     "n")
          .value();
  const Job& job = scenario.job;
  const auto plan = make_plan(request, job.model, job.cluster, job.training).value();
  return export_megatron(scenario, plan).value().files.back().text;
}

// arguments.py: one connection with tensor or context parallelism before Blackwell, more than one
// with Megatron-FSDP ("FSDP always requires CUDA_DEVICE_MAX_CONNECTIONS value large than one") and
// for the exchange of experts' tokens beside compute.
TEST(MegatronExport, AsksForOneConnectionWhereMegatronDoes) {
  const auto one = HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS:-1}");
  EXPECT_THAT(launch_of("dgx-h100-80gb", {.tensor_parallel = 2, .zero_stage = 1}), one);
  EXPECT_THAT(launch_of("dgx-h100-80gb", {.context_parallel = 2, .zero_stage = 1}), one);
  EXPECT_THAT(launch_of("dgx-h100-80gb", {.zero_stage = 1}), Not(one));
  EXPECT_THAT(launch_of("dgx-h100-80gb", {.tensor_parallel = 2, .zero_stage = 3}), Not(one));
  EXPECT_THAT(launch_of("dgx-b200", {.tensor_parallel = 2, .zero_stage = 1}), Not(one));
  PlanRequest experts{.tensor_parallel = 2, .expert_parallel = 8, .zero_stage = 1};
  EXPECT_THAT(launch_of("dgx-h100-80gb", experts, "mixtral-8x7b"), one);
  experts.overlap.expert_parallel = true;
  EXPECT_THAT(launch_of("dgx-h100-80gb", experts, "mixtral-8x7b"), Not(one));
}

// PaLM has one group of keys and values on eight ranks. Since 0.16 Megatron-Core gathers and cuts
// it.
TEST(MegatronExport, SaysWhichMegatronSharesQueryGroups) {
  Scenario scenario = scenario_of("palm-62b", "megatron-core", 2);
  const auto exported = [&](int tensor_parallel) {
    const Job& job = scenario.job;
    const auto plan =
        make_plan({.tensor_parallel = tensor_parallel}, job.model, job.cluster, job.training)
            .value();
    return export_megatron(scenario, plan);
  };
  const auto later = Contains(HasSubstr("Megatron-Core 0.16 or later"));
  EXPECT_THAT(exported(8).value().notes, later);
  EXPECT_THAT(exported(1).value().notes, Not(later));
}

// transformer_config.py: "CPU offloading can be done only for layers less than 32", nor under a
// pipeline or beside recomputation.
TEST(MegatronExport, RefusesActivationsOnTheHostThatMegatronDoes) {
  PlanRequest request{.zero_stage = 3, .offload = {.activations = OffloadTarget::host}};
  const std::string all =
      "/plan/offload/activation_layers: found all 32 layers; allowed in Megatron-LM: 1 to 31";
  EXPECT_EQ(export_refusal(request), all);
  request.offload.activation_layers = 32;
  EXPECT_EQ(export_refusal(request), all);
  request.offload.activation_layers = 31;
  EXPECT_EQ(export_refusal(request), "exported");
  request.recompute = {RecomputeMode::full, 0};
  EXPECT_EQ(export_refusal(request),
            "/plan/offload/activations: found \"host\" with recomputation; allowed in "
            "Megatron-LM: none with it");
  request = {.pipeline_parallel = 2,
             .zero_stage = 1,
             .offload = {.activations = OffloadTarget::host, .activation_layers = 4}};
  EXPECT_EQ(export_refusal(request),
            "/plan/offload/activations: found \"host\" with pipeline_parallel 2; allowed in "
            "Megatron-LM: none with a pipeline");
}

// For all-to-all, Transformer Engine asserts num_gqa_groups % cp_size == 0 on the groups of a rank:
// two of Llama-3.1-8B's eight groups on four ranks.
TEST(MegatronExport, RefusesUlyssesBeyondTheKeyValueHeadsOfARank) {
  PlanRequest request{.tensor_parallel = 4,
                      .context_parallel = 2,
                      .context_parallel_algorithm = ContextAlgorithm::ulysses};
  EXPECT_EQ(export_refusal(request), "exported");
  request.context_parallel = 4;
  EXPECT_EQ(
      export_refusal(request),
      "/plan/context_parallel: found 4 by ulysses; allowed in Megatron-LM: a divisor of the 2 "
      "key-value heads of a rank");
}

// "pipeline-model-parallel size should be greater than 2 to avoid having multiple p2p sends and
// recvs between same 2 ranks", if they are not overlapped.
TEST(MegatronExport, RefusesTwoInterleavedStagesWithoutOverlap) {
  const PlanRequest two{.pipeline_parallel = 2, .virtual_stages = 2};
  EXPECT_EQ(export_refusal(two, "megatron-2022"),
            "/plan/overlap/pipeline: found false with 2 stages and virtual_stages 2; allowed in "
            "Megatron-LM: true, or 3 stages or more");
  EXPECT_EQ(export_refusal(two, "megatron-core"), "exported");
  EXPECT_EQ(export_refusal({.pipeline_parallel = 4, .virtual_stages = 2}, "megatron-2022"),
            "exported");
}

// The combined schedule of the experts' exchange (overlap_moe_expert_parallel_comm) needs chunks
// and refuses full recomputation.
TEST(MegatronExport, RefusesWhatTheOverlapOfExpertsCannotHave) {
  const Scenario scenario = scenario_of("mixtral-8x7b", "megatron-core", 2);
  const auto refusal = [&scenario](const PlanRequest& request) {
    const Job& job = scenario.job;
    const auto plan = make_plan(request, job.model, job.cluster, job.training).value();
    const auto exported = export_megatron(scenario, plan);
    return exported ? "exported" : line_of(exported.error());
  };
  PlanRequest request{.pipeline_parallel = 2, .expert_parallel = 8};
  request.overlap.expert_parallel = true;
  EXPECT_EQ(refusal(request),
            "/plan/overlap/expert_parallel: found true in a pipeline without virtual_stages; "
            "allowed in Megatron-LM: false, or virtual_stages from 2");
  request.virtual_stages = 2;
  EXPECT_EQ(refusal(request), "exported");
  request.recompute = {RecomputeMode::full, 0};
  EXPECT_EQ(refusal(request),
            "/plan/overlap/expert_parallel: found true with full recomputation; allowed in "
            "Megatron-LM: false with it");
}

TEST(MegatronExport, RefusesByNameWhatMegatronCannotSay) {
  EXPECT_EQ(export_refusal({.zero_stage = 0, .offload = {.optimizer = OffloadTarget::host}}),
            "/plan/offload/optimizer: found \"host\" with zero_stage 0; allowed in Megatron-LM: a "
            "zero_stage from 1");
  EXPECT_EQ(export_refusal(
                {.pipeline_parallel = 2, .recompute_per_stage = {{RecomputeMode::full, 0}, {}}}),
            "/plan/recompute: found a policy for each stage; allowed in Megatron-LM: one for all "
            "stages");
  EXPECT_EQ(export_refusal({.pipeline_parallel = 4, .schedule = "zb-h1"}),
            "/plan/schedule: found \"zb-h1\"; allowed in Megatron-LM: 1f1b, interleaved-1f1b");
  EXPECT_THAT(export_refusal({.offload = {.parameters = OffloadTarget::nvme}}),
              HasSubstr("/plan/offload/parameters: found \"nvme\""));
  EXPECT_THAT(export_refusal({.collective = "ring"}), HasSubstr("/plan/collective"));
}

}  // namespace
}  // namespace trainyard
