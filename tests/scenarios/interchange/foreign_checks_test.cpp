// Options that change memory or time and are not modelled; pipeline splits that count the embedding
// and the loss; and exports that the target itself would refuse at its start. The quotations are
// from the sources named: Megatron-LM's megatron/training/arguments.py and megatron/core, DeepSpeed
// 0.17.6, Accelerate 1.11.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/interchange/accelerate.h"
#include "scenarios/interchange/deepspeed.h"
#include "scenarios/interchange/megatron/megatron.h"
#include "tests/scenarios/interchange/foreign.h"
#include "tests/scenarios/interchange/plans.h"

namespace trainyard {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Expected<Imported> megatron_read(const std::string& layers, const std::string& options) {
  return import_megatron(
      foreign("--hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
              "--global-batch-size 1024 --vocab-size 32000 --bf16 --num-layers " +
              layers + " " + options),
      {.node = "dgx-h100-80gb", .nodes = 16});
}
std::string megatron_line(const std::string& layers, const std::string& options) {
  const auto read = megatron_read(layers, options);
  return read ? "accepted" : line_of(read.error());
}
PlanRequest megatron_request(const std::string& layers, const std::string& options) {
  const auto read = megatron_read(layers, options);
  EXPECT_TRUE(read.has_value()) << line_of(read.error());
  return parse_scenario(read->document, "read").value().plan.value_or(PlanRequest{});
}

// --grad-reduce-in-bf16 halves the main gradients. The precision-aware optimizer sets the types of
// states; all of them are fp32 by default.
TEST(MegatronOptions, ThatNarrowWhatIsKeptAreRefusedByName) {
  for (const std::string flag :
       {"grad-reduce-in-bf16", "moe-pad-expert-input-to-capacity", "standalone-embedding-stage"}) {
    std::string name = flag;
    std::ranges::replace(name, '-', '_');
    EXPECT_THAT(megatron_line("32", "--" + flag), HasSubstr("found " + name + ", which changes"));
  }
  for (const std::string option :
       {"main-grads-dtype", "main-params-dtype", "exp-avg-dtype", "exp-avg-sq-dtype"}) {
    EXPECT_THAT(megatron_line("32", "--" + option + " bf16"), HasSubstr("\"bf16\"; allowed: fp32"));
    EXPECT_EQ(megatron_line("32", "--" + option + " fp32"), "accepted");
  }
}

// transformer_block.py, get_num_layers_to_build: (126 + 2)/8 = 16 layers per stage, 2 per chunk;
// (31 + 1)/4 = 8 per stage; (31 + 1)/8/2 = 2 per chunk.
TEST(MegatronSplit, CountsEmbeddingAndLossAsLayersWhereItIsTold) {
  const std::string loss = " --account-for-loss-in-pipeline-split";
  const std::string both = loss + " --account-for-embedding-in-pipeline-split";
  const PlanRequest deep = megatron_request(
      "126", "--pipeline-model-parallel-size 8 --num-layers-per-virtual-pipeline-stage 2" + both);
  EXPECT_EQ(deep.virtual_stages, 8);
  std::vector<int> chunks(64, 2);
  chunks.front() = chunks.back() = 1;
  Plan plan;
  plan.pipeline_parallel = 8;
  plan.virtual_stages = 8;
  plan.layers_per_stage = deep.layers_per_stage;
  EXPECT_EQ(LayersOfChunks(plan, 126).all(), chunks);
  EXPECT_EQ(megatron_request("31", "--pipeline-model-parallel-size 4" + loss).layers_per_stage,
            (std::vector<int>{8, 8, 8, 7}));
  std::vector<int> sixteen(16, 2);
  sixteen.back() = 1;
  EXPECT_EQ(megatron_request("31",
                             "--pipeline-model-parallel-size 8 "
                             "--num-virtual-stages-per-pipeline-rank 2" +
                                 loss)
                .layers_per_stage,
            sixteen);
  EXPECT_THAT(megatron_line("32", "--pipeline-model-parallel-size 4" + loss),
              HasSubstr("allowed: 33 layers, those that it counts among them, in 4 equal chunks"));
  EXPECT_THAT(megatron_line("31",
                            "--pipeline-model-parallel-size 4 "
                            "--decoder-first-pipeline-num-layers 7" +
                                loss),
              HasSubstr("allowed: none beside account_for_embedding_in_pipeline_split"));
}

std::string deepspeed_line(const std::string& text) {
  const auto read = import_deepspeed(foreign(text), {.node = "dgx-h100-80gb", .nodes = 1});
  return read ? "accepted" : line_of(read.error());
}

TEST(DeepspeedOptions, ThatChangeWhatIsKeptAreRefusedByName) {
  const auto with = [](const std::string& section) {
    return R"({"train_micro_batch_size_per_gpu": 1, )" + section + "}";
  };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {R"("data_types": {"grad_accum_dtype": "bf16"})", "data_types.grad_accum_dtype"},
      {R"("bf16": {"enabled": true, "bf16_master_weights_and_grads": true})",
       "bf16.bf16_master_weights_and_grads"},
      {R"("bf16": {"enabled": true, "bf16_optimizer_states": true})", "bf16.bf16_optimizer_states"},
      {R"("fp16": {"enabled": true, "fp16_master_weights_and_grads": true})",
       "fp16.fp16_master_weights_and_grads"},
      {R"("pipeline": {"stages": 4})", "pipeline.stages"},
      {R"("compile": {"deepcompile": true})", "compile.deepcompile"},
      {R"("moe": {"ep_size": 8})", "moe.ep_size"}};
  for (const auto& [section, name] : refused) {
    EXPECT_THAT(deepspeed_line(with(section)), HasSubstr("found " + name)) << section;
  }
  EXPECT_EQ(deepspeed_line(with(R"("data_types": {"grad_accum_dtype": null}, "pipeline":
      {"stages": "auto"}, "compile": {"deepcompile": false}, "moe": {"ep_size": 1})")),
            "accepted");
}

// The config.json of a network (Qwen-7B) is also a JSON object and contains "bf16": false.
TEST(ImportedFiles, AreOfTheToolThatIsNamed) {
  const std::string config =
      R"({"model_type": "qwen", "hidden_size": 4096, "bf16": false, "fp16": false})";
  EXPECT_THAT(deepspeed_line(config), HasSubstr("found no key of DeepSpeed's; allowed: one of"));
  const auto read = import_fsdp(foreign(config), {});
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(line_of(read.error()), HasSubstr("found no key of Accelerate's; allowed: compute"));
}

// ---- Exports ----------------------------------------------------------------------------------

struct ToMegatron {
  std::string model = "llama-3.1-8b";
  std::string precision = "bf16", optimizer = "adamw";
  int sequence_length = 4096, mtp_layers = 0;
  std::string inline_model;  // in the place of `model`
};

Expected<Exported> to_megatron(const PlanRequest& request, const ToMegatron& asked) {
  const std::string model =
      asked.inline_model.empty() ? "\"" + asked.model + "\"" : asked.inline_model;
  Scenario scenario =
      parse_scenario(R"({"trainyard": "scenario/1", "name": "n", "model": )" + model +
                         R"(, "cluster": {"node": "dgx-h100-80gb", "nodes": 2}, "training": {
          "global_batch": 256, "sequence_length": )" +
                         std::to_string(asked.sequence_length) + R"(, "precision": ")" +
                         asked.precision + R"(", "optimizer": ")" + asked.optimizer + R"("}})",
                     "n")
          .value();
  scenario.job.model.mtp_layers = asked.mtp_layers;
  const Job& job = scenario.job;
  const auto plan = make_plan(request, job.model, job.cluster, job.training).value();
  return export_megatron(scenario, plan);
}
std::string megatron_text(const PlanRequest& request, const ToMegatron& asked) {
  const auto exported = to_megatron(request, asked);
  return exported ? exported->files.front().text : line_of(exported.error());
}

// core/optimizer/distrib_optimizer.py: "Only Adam and HybridDeviceOptimizer currently supported";
// arguments.py: "When `--fp8-param-gather` is enabled, the optimizer cpu offload must be used in
// conjunction with `--fp8-recipe delayed`."
TEST(MegatronExports, HaveAnOptimizerThatMegatronCanShard) {
  EXPECT_EQ(megatron_text({}, {.optimizer = "sgd"}),
            "/plan/zero_stage: found 1 with the optimizer sgd; allowed in Megatron-LM: 0 with it");
  EXPECT_THAT(megatron_text({.zero_stage = 0}, {.optimizer = "sgd"}),
              AllOf(HasSubstr("--optimizer sgd"), Not(HasSubstr("--use-distributed-optimizer"))));
  const auto gather = HasSubstr("--fp8-param-gather");
  PlanRequest request{.zero_stage = 1};
  EXPECT_THAT(megatron_text(request, {.precision = "fp8"}), gather);
  request.offload.optimizer = OffloadTarget::host;
  const auto exported = to_megatron(request, {.precision = "fp8"});
  ASSERT_TRUE(exported.has_value()) << line_of(exported.error());
  EXPECT_THAT(exported->files.front().text, Not(gather));
  EXPECT_THAT(exported->notes, Contains(HasSubstr("with the optimizer on the hosts weights in 8")));
}

// arguments.py: "Currently GroupedGEMM for MoE only supports bf16 dtype.", "Expert parallelism is
// not supported with fp16 training."; transformer_config.py: "Please use --moe-router-pre-softmax
// when topk is 1.", "Bias in Moe is only supported when ETP==1".
TEST(MegatronExports, HaveExpertsThatMegatronCanRun) {
  const auto grouped = HasSubstr("--moe-grouped-gemm");
  PlanRequest request{.expert_parallel = 8};
  EXPECT_THAT(megatron_text(request, {.model = "mixtral-8x7b"}), grouped);
  EXPECT_THAT(megatron_text(request, {.model = "mixtral-8x7b", .precision = "fp32"}), Not(grouped));
  EXPECT_THAT(megatron_text({}, {.model = "mixtral-8x7b", .precision = "fp16"}), Not(grouped));
  EXPECT_THAT(megatron_text(request, {.model = "mixtral-8x7b", .precision = "fp16"}),
              HasSubstr("/training/precision: found \"fp16\" with expert_parallel 8; allowed in"));
  const auto before = HasSubstr("--moe-router-pre-softmax");
  const std::string small = R"({"layers": 8, "hidden_size": 1024, "attention_heads": 8,
      "vocabulary": 32000, "experts": 16, "experts_per_token": )";
  EXPECT_THAT(megatron_text({}, {.inline_model = small + "1}"}), before);
  EXPECT_THAT(megatron_text({}, {.inline_model = small + "2}"}), Not(before));
  request = {.tensor_parallel = 2, .expert_parallel = 4, .expert_tensor_parallel = 2};
  EXPECT_EQ(megatron_text(request, {.model = "gpt-oss-20b"}),
            "/plan/expert_tensor_parallel: found 2 of experts with biases; allowed in Megatron-LM: "
            "1 of them");
}

// arguments.py: `assert args.hidden_size % args.num_attention_heads == 0` where kv_channels is not
// said, and "seq-length should be a multiple of 2 * context-parallel-size".
TEST(MegatronExports, HaveSizesThatMegatronCanDivide) {
  const std::string latent = R"({"layers": 4, "hidden_size": 2048, "attention_heads": 20,
      "vocabulary": 154880, "q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 192,
      "qk_rope_head_dim": 64, "v_head_dim": 256})";
  const std::string text = megatron_text({}, {.inline_model = latent});
  EXPECT_THAT(text, HasSubstr("--kv-channels 256"));
  const auto read = import_megatron(foreign(text), {.node = "dgx-h100-80gb", .nodes = 2});
  ASSERT_TRUE(read.has_value()) << line_of(read.error());
  const ToMegatron odd{.sequence_length = 4098};
  EXPECT_EQ(megatron_text({.context_parallel = 2}, odd),
            "/training/sequence_length: found 4098 with context_parallel 2; allowed in "
            "Megatron-LM: a multiple of 4");
  EXPECT_THAT(megatron_text({}, odd), HasSubstr("--seq-length 4098"));
}

// transformer_config.py: "MTP layernum only supports 1 when enabling
// overlap_moe_expert_parallel_comm.", "Pipeline model parallel size must be larger than 1"; "is
// only supported with bf16 or fp16 model"; arguments.py: "Multi-Token Prediction (MTP) is not
// supported with learned_absolute position embedding type."
TEST(MegatronExports, PredictTokensAsMegatronCan) {
  PlanRequest request{.expert_parallel = 8};
  request.overlap.expert_parallel = true;
  ToMegatron asked{.model = "mixtral-8x7b", .mtp_layers = 1};
  EXPECT_THAT(megatron_text(request, asked), HasSubstr("found true with mtp_layers 1 on 1 stages"));
  request.pipeline_parallel = request.virtual_stages.emplace(2);
  EXPECT_THAT(megatron_text(request, asked), HasSubstr("--overlap-moe-expert-parallel-comm"));
  asked.mtp_layers = 2;
  EXPECT_THAT(megatron_text(request, asked), HasSubstr("found true with mtp_layers 2 on 2 stages"));
  EXPECT_THAT(megatron_text(request, {.model = "mixtral-8x7b", .precision = "fp32"}),
              HasSubstr("/plan/overlap/expert_parallel: found true in fp32"));
  EXPECT_EQ(megatron_text({}, {.model = "gpt2-124m", .mtp_layers = 1}),
            "/model/mtp_layers: found 1 with learned positions; allowed in Megatron-LM: 0 with "
            "them");
}

using WriteForeign = Expected<Exported> (*)(const Scenario&, const Plan&);
std::string text_of_export(WriteForeign write, const std::string& stack,
                           const PlanRequest& request) {
  const Scenario scenario = scenario_of("llama-3.1-8b", stack, 2);
  const Job& job = scenario.job;
  const auto plan = make_plan(request, job.model, job.cluster, job.training).value();
  const auto exported = write(scenario, plan);
  return exported ? exported->files.front().text : line_of(exported.error());
}

// runtime/engine.py: "the compatibility between 'autotp' and 'zero_stage = 3' has not been
// validated"; runtime/config.py divides train_batch_size by all ranks, tensor-parallel ones too.
TEST(DeepspeedExport, AgreesWithAutoTp) {
  PlanRequest request{.tensor_parallel = 2, .sequence_parallel = false, .zero_stage = 3};
  EXPECT_EQ(text_of_export(export_deepspeed, "deepspeed", request),
            "/plan/zero_stage: found 3 with tensor_parallel 2; allowed in DeepSpeed's JSON: 0, 1, "
            "2 with tensor parallelism");
  request.zero_stage = 1;
  const auto batch = HasSubstr("\"train_batch_size\"");
  EXPECT_THAT(text_of_export(export_deepspeed, "deepspeed", request), Not(batch));
  EXPECT_THAT(text_of_export(export_deepspeed, "deepspeed", {.zero_stage = 1}), batch);
}

// parallelism_config.py: "Tensor/Context parallelism (tp/cp_size > 1) cannot be used with pure data
// parallelism (dp_replicate_size > 1 and dp_shard_size == 1)."
TEST(AccelerateExport, ShardsBesideTensorParallelism) {
  PlanRequest request{.tensor_parallel = 2, .sequence_parallel = false, .zero_stage = 3};
  request.sharding_group = 1;
  EXPECT_EQ(text_of_export(export_fsdp, "fsdp", request),
            "/plan/sharding_group: found 1 with tensor_parallel 2 and context_parallel 1; allowed "
            "in Accelerate's YAML: a greater one with them");
  request.sharding_group = 2;
  EXPECT_THAT(text_of_export(export_fsdp, "fsdp", request), HasSubstr("dp_shard_size: 2"));
}

}  // namespace
}  // namespace trainyard
