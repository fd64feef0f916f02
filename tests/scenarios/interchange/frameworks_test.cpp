// DeepSpeed, torchtitan and Accelerate: imports of their files, impossible files, and round trips.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/interchange/accelerate.h"
#include "scenarios/interchange/deepspeed.h"
#include "scenarios/interchange/torchtitan/torchtitan.h"
#include "tests/scenarios/interchange/foreign.h"
#include "tests/scenarios/interchange/plans.h"

namespace trainyard {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

using Import = Expected<Imported> (*)(const ForeignFile&, const ImportSettings&);
using Export = Expected<Exported> (*)(const Scenario&, const Plan&);

const ImportSettings kEightNodes{.model = "llama-3.1-8b", .node = "dgx-h100-80gb", .nodes = 8};

Scenario scenario_from(const Expected<Imported>& read) {
  EXPECT_TRUE(read.has_value()) << line_of(read.error());
  return parse_scenario(read->document, "read").value();
}
Scenario read_by(Import import, const std::string& text) {
  return scenario_from(import(foreign(text), kEightNodes));
}
std::string refusal(Import import, const std::string& text) {
  const auto read = import(foreign(text), kEightNodes);
  return read ? "accepted: " + read->document : line_of(read.error());
}
Plan plan_of(const Scenario& scenario) {
  const Job& job = scenario.job;
  return make_plan(*scenario.plan, job.model, job.cluster, job.training).value();
}
std::string export_refusal(Export write, const PlanRequest& request,
                           const std::string& stack = "ideal") {
  const Scenario scenario = scenario_of("llama-3.1-8b", stack, 2);
  const Job& job = scenario.job;
  const auto plan = make_plan(request, job.model, job.cluster, job.training).value();
  const auto exported = write(scenario, plan);
  return exported ? "exported" : line_of(exported.error());
}

// The configuration with which the documentation of the Hugging Face Trainer begins.
const std::string kTrainerConfig = R"({
  "fp16": {"enabled": "auto", "loss_scale": 0},
  "bf16": {"enabled": "auto"},
  "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}},
  "zero_optimization": {"stage": 3,
    "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "offload_param": {"device": "none"},
    "overlap_comm": true, "reduce_bucket_size": "auto", "stage3_max_live_parameters": 1e9},
  "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "steps_per_print": 2000,
  "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
  "wall_clock_breakdown": false, "my_own_key": 1})";

TEST(DeepspeedImport, FillsAutoAsTheTrainerDoesAndSaysSo) {
  const auto read = import_deepspeed(foreign(kTrainerConfig), kEightNodes);
  const Scenario scenario = scenario_from(read);
  const Plan plan = plan_of(scenario);
  EXPECT_EQ(plan.zero_stage, 3);
  EXPECT_EQ(plan.micro_batch, 8);
  EXPECT_EQ(scenario.job.training.global_batch, 64 * 8);
  EXPECT_EQ(scenario.job.training.precision.name, "bf16");
  EXPECT_EQ(plan.offload.optimizer, OffloadTarget::host);
  EXPECT_EQ(plan.offload.parameters, OffloadTarget::none);
  EXPECT_THAT(read->assumptions, Contains(HasSubstr("bf16.enabled \"auto\": true")));
  EXPECT_THAT(read->assumptions, Contains(HasSubstr("train_micro_batch_size_per_gpu 8")));
  EXPECT_THAT(read->ignored, Contains(HasSubstr("my_own_key")));
}

// B = micro · accumulated · replicas (DeepSpeed's configuration, "Batch Size Related Parameters").
TEST(DeepspeedImport, FindsTheBatchSizeThatIsNotThere) {
  const Scenario scenario = read_by(import_deepspeed, R"({"train_micro_batch_size_per_gpu": 2,
      "gradient_accumulation_steps": 3, "fp16": {"enabled": true}})");
  EXPECT_EQ(scenario.job.training.global_batch, 2 * 3 * 64);
  const Scenario other = read_by(import_deepspeed, R"({"train_batch_size": 384,
      "gradient_accumulation_steps": 3, "bf16": {"enabled": true}})");
  EXPECT_EQ(other.plan->micro_batch, 2);
}

TEST(DeepspeedImport, RefusesWhatItDoesNotModelAndWhatCannotBe) {
  EXPECT_THAT(refusal(import_deepspeed, R"({"zero_optimization":
      {"stage": 3, "zero_quantized_weights": true}})"),
              HasSubstr("found zero_optimization.zero_quantized_weights \"true\", which changes"));
  EXPECT_THAT(refusal(import_deepspeed, R"({"zero_optimization": {"stage": 4}})"),
              HasSubstr("/zero_optimization/stage: found zero_optimization.stage \"4\"; allowed: a "
                        "whole number from 0 to 3"));
  EXPECT_THAT(refusal(import_deepspeed, "[1]"), HasSubstr("found a list of 1"));
  EXPECT_THAT(refusal(import_deepspeed, "{"), HasSubstr("allowed: JSON"));
  EXPECT_THAT(refusal(import_deepspeed, R"({"optimizer": {"type": "OneBitAdam"}})"),
              HasSubstr("allowed: Adam, AdamW"));
}

// A section is refused by its name, however deep its keys are. A ratio of 1 means the whole
// optimizer.
TEST(DeepspeedImport, RefusesCompressionAndTakesAWholeRatio) {
  EXPECT_THAT(refusal(import_deepspeed, R"({"compression_training": {"weight_quantization":
      {"shared_parameters": {"enabled": true}}}})"),
              HasSubstr("found compression_training.weight_quantization.shared_parameters.enabled, "
                        "which changes"));
  const auto with_ratio = [](const std::string& ratio) {
    return R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": )" +
           ratio + "}}}";
  };
  EXPECT_THAT(refusal(import_deepspeed, with_ratio("1.0")), HasSubstr("accepted: "));
  EXPECT_THAT(refusal(import_deepspeed, with_ratio("1")), HasSubstr("accepted: "));
  EXPECT_THAT(refusal(import_deepspeed, with_ratio("0.3")),
              HasSubstr("found zero_optimization.offload_optimizer.ratio \"0.3\", which changes"));
}

TEST(DeepspeedExport, RefusesByNameWhatItCannotSay) {
  EXPECT_EQ(export_refusal(export_deepspeed, {.pipeline_parallel = 4}),
            "/plan/pipeline_parallel: found 4; allowed in DeepSpeed's JSON: 1");
  EXPECT_THAT(export_refusal(export_deepspeed, {.tensor_parallel = 2, .sequence_parallel = true}),
              HasSubstr("/plan/sequence_parallel"));
  EXPECT_THAT(export_refusal(export_deepspeed, {.recompute = {RecomputeMode::full, 3}}),
              HasSubstr("/plan/recompute"));
  // deepspeed/runtime/engine.py asserts this if autotp_size is above 1.
  EXPECT_THAT(export_refusal(export_deepspeed,
                             {.tensor_parallel = 2, .sequence_parallel = false, .zero_stage = 3}),
              HasSubstr("/plan/zero_stage: found 3 with tensor_parallel 2"));
}

// torchtitan/models/llama3/train_configs/llama3_70b.toml, shortened.
const std::string kTitan = R"([job]
description = "Llama 3 70B training"
[model]
name = "llama3"
flavor = "70B"
converters = ["float8"]
[optimizer]
name = "AdamW"
lr = 1.5e-4
[training]
local_batch_size = 8
seq_len = 8192
steps = 1000
dataset = "c4"
compile = true
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
enable_async_tensor_parallel = true
[activation_checkpoint]
mode = "full"
[float8]
enable_fsdp_float8_all_gather = true
)";

TEST(TorchtitanImport, ReadsItsOwnConfiguration) {
  const auto read = import_torchtitan(foreign(kTitan), {.node = "dgx-h100-80gb", .nodes = 32});
  const Scenario scenario = scenario_from(read);
  const Plan plan = plan_of(scenario);
  EXPECT_EQ(scenario.name, "Llama 3 70B training");
  EXPECT_EQ(parameter_count(scenario.job.model, 8192), 70'553'706'496);  // handbook §2
  EXPECT_EQ(scenario.job.training.precision.name, "fp8");
  EXPECT_EQ(scenario.job.training.global_batch, 8 * 32);
  EXPECT_EQ(scenario.job.training.stack.name, "torchtitan");
  EXPECT_EQ(plan.tensor_parallel, 8);
  EXPECT_TRUE(plan.overlap.tensor_parallel);
  EXPECT_EQ(plan.zero_stage, 3);
  EXPECT_EQ(plan.sharding_group, 32);
  EXPECT_EQ(plan.recompute.mode, RecomputeMode::full);
}

// The split points cut 32 layers into four chunks on two stages: 6, 8, 10 and the 8 that are left.
TEST(TorchtitanImport, CutsThePipelineAtTheLayersItNames) {
  const Scenario scenario = read_by(import_torchtitan, R"([training]
local_batch_size = 16
[parallelism]
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_split_points = ["layers.6", "layers.14", "layers.24"]
[activation_checkpoint]
mode = "none"
)");
  EXPECT_EQ(scenario.plan->virtual_stages, 2);
  EXPECT_EQ(scenario.plan->layers_per_stage, (std::vector<int>{6, 8, 10, 8}));
  EXPECT_EQ(scenario.plan->micro_batch, 1);
  EXPECT_EQ(scenario.plan->zero_stage, 2);  // "default" keeps parameters under a pipeline
}

// Options that are not priced, and options that are compiled only in name.
TEST(TorchtitanImport, LooksAtWhatChangesMemoryAndTime) {
  EXPECT_THAT(refusal(import_torchtitan, "[training]\n[optimizer]\nstate_dtype = 'bfloat16'\n"),
              HasSubstr("found optimizer.state_dtype, which changes"));
  EXPECT_THAT(refusal(import_torchtitan, "[training]\nmixed_precision_reduce = 'bfloat16'\n"),
              HasSubstr("allowed: float32"));
  const auto stack = [](const std::string& components) {
    return read_by(import_torchtitan, "[training]\n[compile]\nenable = true\n" + components)
        .job.training.stack.name;
  };
  EXPECT_EQ(stack(""), "torchtitan");
  EXPECT_EQ(stack("components = ['model', 'loss']\n"), "torchtitan");
  EXPECT_EQ(stack("components = ['loss']\n"), "torchtitan-eager");
}

// A mixture with expert tensor parallelism of one: tensor-parallel ranks hold different experts,
// not slices.
TEST(TorchtitanImport, ReadsHowExpertsAreCut) {
  const std::string config = R"([model]
name = "qwen3"
flavor = "30B-A3B"
[parallelism]
tensor_parallel_degree = 4
data_parallel_shard_degree = 16
expert_parallel_degree = 8
)";
  const auto plan_by = [&](const std::string& more) {
    return *scenario_from(import_torchtitan(foreign(config + more), {})).plan;
  };
  EXPECT_EQ(plan_by("").expert_parallel, 8);
  EXPECT_EQ(plan_by("").expert_tensor_parallel, 1);
  EXPECT_EQ(plan_by("expert_tensor_parallel_degree = 4\n").expert_tensor_parallel, 4);
  const auto read = import_torchtitan(foreign(config + "expert_tensor_parallel_degree = 2\n"), {});
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(line_of(read.error()), HasSubstr("allowed: 1 or tensor_parallel_degree (4)"));
}

// An unknown network is refused, because another network in its place would be another question.
TEST(TorchtitanImport, RefusesANetworkThatItDoesNotKnow) {
  const ForeignFile config =
      foreign("[model]\nname = 'llama3'\nflavor = 'debugmodel'\n[training]\n");
  const auto read = import_torchtitan(config, {});
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(line_of(read.error()),
              HasSubstr("/model/flavor: found model.flavor \"debugmodel\"; allowed: llama3"));
  EXPECT_TRUE(import_torchtitan(config, {.model = "llama-3.1-8b"}).has_value());
}

TEST(TorchtitanImport, GivesOneLineForWhatCannotBe) {
  EXPECT_THAT(refusal(import_torchtitan, "[training\n"),
              HasSubstr("foreign: line 1: found text that is not TOML"));
  EXPECT_THAT(refusal(import_torchtitan, "[training]\nseq_len = 1979-05-27\n"),
              HasSubstr("line 2: found a date"));
  EXPECT_THAT(refusal(import_torchtitan, "[parallelism]\ntensor_parallel_degree = 'x'\n"),
              HasSubstr("/parallelism/tensor_parallel_degree: found"));
  EXPECT_THAT(refusal(import_torchtitan, "[parallelism]\npipeline_parallel_schedule = 'ZBH9'\n"),
              HasSubstr("allowed: 1F1B, GPipe"));
  EXPECT_THAT(refusal(import_torchtitan, "a = " + std::string(100'000, '[')),
              HasSubstr("found text that is not TOML"));
  EXPECT_THAT(refusal(import_torchtitan, std::string(2'000'000, '#')),
              HasSubstr("allowed: at most 1048576"));
}

// Only Megatron-LM orders its kernels by a single connection; FSDP's kernels run beside compute.
TEST(FrameworkExports, SayNothingOfConnections) {
  for (const auto& [write, stack] : {std::pair<Export, const char*>(export_deepspeed, "deepspeed"),
                                     {export_torchtitan, "torchtitan"},
                                     {export_fsdp, "fsdp"}}) {
    const Scenario scenario = scenario_of("llama-3.1-8b", stack, 2);
    const Job& job = scenario.job;
    const auto plan = make_plan({.zero_stage = 3}, job.model, job.cluster, job.training).value();
    const auto exported = write(scenario, plan);
    ASSERT_TRUE(exported.has_value()) << line_of(exported.error());
    EXPECT_THAT(exported->files.back().text, Not(HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS")));
  }
}

TEST(TorchtitanExport, RefusesByNameWhatItCannotSay) {
  EXPECT_EQ(
      export_refusal(export_torchtitan, {.pipeline_parallel = 2,
                                         .recompute_per_stage = {{RecomputeMode::full, 0}, {}}}),
      "/plan/recompute: found a policy for each stage; allowed in torchtitan: one for all "
      "stages");
  EXPECT_EQ(export_refusal(export_torchtitan, {.zero_stage = 1}),
            "/plan/zero_stage: found 1; allowed in torchtitan: 0, 2, 3");
  EXPECT_THAT(export_refusal(export_torchtitan,
                             {.pipeline_parallel = 4, .schedule = "zb-h1", .zero_stage = 3}),
              HasSubstr("/plan/schedule: found \"zb-h1\""));
  const Scenario scenario = scenario_of("gpt3-175b", "torchtitan", 2);
  const auto plan = make_plan({.tensor_parallel = 8}, scenario.job.model, scenario.job.cluster,
                              scenario.job.training)
                        .value();
  EXPECT_THAT(line_of(export_torchtitan(scenario, plan).error()), HasSubstr("/model: found"));
}

// accelerate's own example of FSDP 2 with context parallelism (docs, concept_guides).
const std::string kAccelerate = R"(compute_environment: LOCAL_MACHINE
distributed_type: FSDP
downcast_bf16: 'no'
fsdp_config:
  fsdp_activation_checkpointing: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_offload_params: false
  fsdp_reshard_after_forward: true
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_version: 2
mixed_precision: bf16
num_machines: 8
num_processes: 64
parallelism_config:
  parallelism_config_cp_comm_strategy: allgather
  parallelism_config_cp_size: 2
  parallelism_config_dp_replicate_size: 4
  parallelism_config_dp_shard_size: 8
  parallelism_config_tp_size: 1
same_network: true
)";

TEST(AccelerateImport, ReadsItsOwnConfiguration) {
  const Scenario scenario = read_by(import_fsdp, kAccelerate);
  const Plan plan = plan_of(scenario);
  EXPECT_EQ(plan.zero_stage, 3);
  EXPECT_EQ(plan.data_parallel, 32);
  EXPECT_EQ(plan.context_parallel, 2);
  EXPECT_EQ(plan.context_parallel_algorithm, ContextAlgorithm::all_gather);
  EXPECT_EQ(plan.sharding_group, 16);
  EXPECT_EQ(plan.recompute.mode, RecomputeMode::full);
  EXPECT_EQ(scenario.job.training.precision.name, "bf16");
}

// What `accelerate config` always writes, and what it writes for other engines.
TEST(AccelerateImport, RefusesWhatItDoesNotModelUnlessItIsOff) {
  const std::string usual = kAccelerate + R"(debug: false
dynamo_backend: 'NO'
machine_rank: 0
main_training_function: main
rdzv_backend: static
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
)";
  EXPECT_THAT(refusal(import_fsdp, usual), HasSubstr("accepted: "));
  EXPECT_THAT(refusal(import_fsdp, kAccelerate + "fp8_config: {backend: TE, fp8_format: E4M3}\n"),
              HasSubstr("accepted: "));
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"dynamo_config: {dynamo_backend: INDUCTOR}",
       "found dynamo_backend \"INDUCTOR\"; allowed: NO, no, false"},
      {"megatron_lm_config: {megatron_lm_tp_degree: 4}",
       "found megatron_lm_tp_degree, which changes"},
      {"fp8_config: {backend: MSAMP, opt_level: O2}", "found backend \"MSAMP\"; allowed: TE, AO"},
      {"ipex_config: {ipex: true}", "found ipex \"true\"; allowed: false"},
      {"tpu_use_cluster: true", "found tpu_use_cluster \"true\"; allowed: false"}};
  for (const auto& [text, error] : refused) {
    EXPECT_THAT(refusal(import_fsdp, kAccelerate + text + "\n"), HasSubstr(error));
  }
  EXPECT_THAT(refusal(import_fsdp, "parallelism_config_sp_size: 2\n"),
              HasSubstr("found parallelism_config_sp_size \"2\"; allowed: 1"));
}

// HYBRID_SHARD shards inside a node (torch.distributed.fsdp.ShardingStrategy): 8 devices of a DGX,
// 4 of a tray of GB200 NVL72.
TEST(AccelerateImport, ShardsInsideTheNodesThatTheUserNames) {
  const std::string hybrid = "fsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}\n";
  EXPECT_EQ(read_by(import_fsdp, hybrid).plan->sharding_group, 8);
  const auto read =
      import_fsdp(foreign(hybrid), {.model = "llama-3.1-8b", .node = "gb200-nvl72", .nodes = 4});
  EXPECT_EQ(scenario_from(read).plan->sharding_group, 4);
  EXPECT_THAT(read->assumptions, Contains(HasSubstr("sharding_group 4")));
}

TEST(AccelerateImport, ReadsTheStrategiesOfFsdp1) {
  const auto stage = [](const std::string& strategy) {
    return plan_of(
               read_by(import_fsdp, "fsdp_config: {fsdp_sharding_strategy: " + strategy + "}\n"))
        .zero_stage;
  };
  EXPECT_EQ(stage("FULL_SHARD"), 3);
  EXPECT_EQ(stage("SHARD_GRAD_OP"), 2);
  EXPECT_EQ(stage("NO_SHARD"), 0);
}

// A file in which an alias doubles eight times is refused at its first anchor, before anything
// grows.
TEST(AccelerateImport, RefusesAliasesAndOtherTrouble) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    const char before = static_cast<char>(c - 1);
    bomb += std::string(1, c) + ": &" + c + " [*" + before + ", *" + before + "]\n";
  }
  EXPECT_EQ(refusal(import_fsdp, bomb),
            "foreign: line 1: found an anchor; allowed: every value written out");
  EXPECT_THAT(refusal(import_fsdp, std::string(10'000, '[')), HasSubstr("foreign: line 1: "));
  EXPECT_THAT(refusal(import_fsdp, "a: 1\na: 2\n"), HasSubstr("line 2: found the key \"a\" twice"));
  EXPECT_THAT(refusal(import_fsdp, "a: !!python/object:os.system x\n"), HasSubstr("found a tag"));
  EXPECT_THAT(refusal(import_fsdp, "just text\n"), HasSubstr("allowed: a configuration"));
  EXPECT_THAT(refusal(import_fsdp, "a: [1\n"), HasSubstr("found text that is not YAML"));
  EXPECT_THAT(refusal(import_fsdp, "mixed_precision: int4\n"),
              HasSubstr("/mixed_precision: found mixed_precision \"int4\"; allowed: no, bf16"));
}

TEST(AccelerateExport, RefusesByNameWhatItCannotSay) {
  EXPECT_EQ(export_refusal(export_fsdp, {.pipeline_parallel = 2}),
            "/plan/pipeline_parallel: found 2; allowed in Accelerate's YAML: 1");
  EXPECT_THAT(export_refusal(export_fsdp, {.zero_stage = 1}),
              HasSubstr("/plan/zero_stage: found 1; allowed in Accelerate's YAML: 0, 2, 3"));
  EXPECT_THAT(export_refusal(export_fsdp,
                             {.tensor_parallel = 2, .sequence_parallel = false, .zero_stage = 0}),
              HasSubstr("/plan/tensor_parallel: found 2; allowed in Accelerate's YAML: 1 without"));
  EXPECT_THAT(export_refusal(export_fsdp, {.zero_stage = 0, .recompute = {RecomputeMode::full, 0}}),
              HasSubstr("/plan/recompute"));
}

// `accelerate config` calls plain DDP MULTI_GPU, and a single process NO.
TEST(AccelerateExport, SaysPlainDataParallelism) {
  const Scenario scenario = scenario_of("llama-3.1-8b", "fsdp", 8, 512);
  const Job& job = scenario.job;
  const Plan plan = make_plan({.zero_stage = 0}, job.model, job.cluster, job.training).value();
  const auto exported = export_fsdp(scenario, plan);
  ASSERT_TRUE(exported.has_value()) << exported.error().message;
  const std::string& text = exported->files.front().text;
  EXPECT_THAT(text, HasSubstr("distributed_type: 'MULTI_GPU'\n"));
  EXPECT_THAT(text, HasSubstr("num_machines: 8\nnum_processes: 64\n"));
  EXPECT_EQ(text.find("fsdp"), std::string::npos);
  const Plan back = plan_of(read_by(import_fsdp, text));
  EXPECT_EQ(back.zero_stage, 0);
  EXPECT_EQ(back.data_parallel, 64);
  EXPECT_EQ(plan_of(read_by(import_fsdp, "distributed_type: 'NO'\nnum_processes: 1\n")).zero_stage,
            0);
}

// ---- Round trips ------------------------------------------------------------------------------

void vary(Draw& draw, PlanRequest& request) {
  request.tensor_parallel = draw.power_of_two(3);
  request.context_parallel = draw.power_of_two(2);
  request.pipeline_parallel = draw.power_of_two(2);
  if (request.pipeline_parallel > 1) {
    constexpr const char* kNames[] = {"1f1b", "gpipe", "interleaved-1f1b", "zb-v"};
    request.schedule = kNames[draw.below(4)];
    if (draw.coin()) request.virtual_stages = 2;
  }
  request.expert_parallel = draw.power_of_two(2);
  request.expert_tensor_parallel = draw.coin() ? request.tensor_parallel : 1;
  request.micro_batch = draw.power_of_two(2);
  request.sequence_parallel = draw.coin();
  request.zero_stage = draw.below(4);
  if (draw.coin()) request.sharding_group = draw.power_of_two(4);
  constexpr ContextAlgorithm kContexts[] = {ContextAlgorithm::ring, ContextAlgorithm::all_gather,
                                            ContextAlgorithm::ulysses};
  request.context_parallel_algorithm = kContexts[draw.below(3)];
  request.recompute.mode = static_cast<RecomputeMode>(draw.below(3));
  request.overlap.data_parallel = draw.coin();
  request.overlap.tensor_parallel = draw.coin();
  constexpr OffloadTarget kTargets[] = {OffloadTarget::none, OffloadTarget::host,
                                        OffloadTarget::nvme};
  if (draw.coin()) {
    request.offload.optimizer = kTargets[draw.below(3)];
    request.offload.gradients = kTargets[draw.below(2)];
    request.offload.parameters = kTargets[draw.below(3)];
  }
}

struct Framework {
  const char* name;
  const char* stack;
  const char* model;
  Import import;
  Export write;
  bool says_batch = true, says_overlap = true;
};

class FrameworkRoundTrip : public ::testing::TestWithParam<Framework> {};

// Export and import give the same plan, key by key. What has no meaning or no words in the format
// is first set as in the plan: overlap and algorithm where there is one rank; batch and overlap for
// Accelerate.
TEST_P(FrameworkRoundTrip, IsTheIdentityOnPlansThatBothCanSay) {
  const Framework& framework = GetParam();
  const Scenario scenario = scenario_of(framework.model, framework.stack, 8, 512);
  const auto plans = random_plans(scenario, 40, vary, [&](const Plan& plan) {
    return (framework.says_batch || plan.micro_batch == 1) &&
           framework.write(scenario, plan).has_value();
  });
  ASSERT_EQ(plans.size(), 40u);
  for (const Plan& plan : plans) {
    const std::string text = framework.write(scenario, plan)->files.front().text;
    const auto read =
        framework.import(foreign(text), {.model = framework.model,
                                         .node = "dgx-h100-80gb",
                                         .nodes = 8,
                                         .sequence_length = scenario.job.training.sequence_length});
    ASSERT_TRUE(read.has_value()) << line_of(read.error()) << text;
    const Scenario back = scenario_from(read);
    Plan again = plan_of(back);
    if (plan.tensor_parallel == 1 || !std::string_view(framework.name).starts_with("torchtitan")) {
      again.overlap.tensor_parallel = plan.overlap.tensor_parallel;
    }
    if (plan.context_parallel == 1) {
      again.context_parallel_algorithm = plan.context_parallel_algorithm;
    }
    if (!framework.says_overlap) again.overlap.data_parallel = plan.overlap.data_parallel;
    EXPECT_EQ(text_of_plan(again), text_of_plan(plan)) << text;
    if (framework.says_batch) {
      EXPECT_EQ(back.job.training.global_batch, scenario.job.training.global_batch);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FrameworkRoundTrip,
    ::testing::Values(
        Framework{"deepspeed", "deepspeed", "llama-3.1-70b", import_deepspeed, export_deepspeed},
        Framework{"torchtitan", "torchtitan", "llama-3.1-70b", import_torchtitan, export_torchtitan,
                  true, false},
        Framework{"torchtitan_experts", "torchtitan", "qwen3-30b-a3b", import_torchtitan,
                  export_torchtitan, true, false},
        Framework{"fsdp", "fsdp", "llama-3.1-8b", import_fsdp, export_fsdp, false, false}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace trainyard
