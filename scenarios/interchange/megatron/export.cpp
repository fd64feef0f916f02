#include <fmt/format.h>

#include <algorithm>

#include "model/cost/sharding/gradient_buckets.h"
#include "model/schedule/schedule.h"
#include "scenarios/interchange/megatron/megatron.h"
#include "scenarios/interchange/plan_refusals.h"
#include "scenarios/interchange/refusal.h"
#include "scenarios/interchange/shell/text.h"

namespace trainyard {
namespace {

constexpr std::string_view kOrder = "tp-cp-ep-dp-pp";
constexpr std::string_view kPipelineFirst = "tp-cp-ep-pp-dp";  // --use-tp-pp-dp-mapping

// Whether the pipeline-first order is exported. Megatron-Core refuses it if its
// expert_data_parallel_size differs from its data_parallel_size; a dense network has for it experts
// of tensor_model_parallel_size ranks (megatron/core/parallel_state.py: initialize_model_parallel).
bool numbers_pipeline_first(const Plan& plan, const Transformer& model) {
  const int ranks = plan.tensor_parallel * plan.context_parallel;
  const int of_experts =
      model.experts > 0 ? plan.expert_parallel * plan.expert_tensor_parallel : plan.tensor_parallel;
  return plan.rank_order == kPipelineFirst && plan.pipeline_parallel > 1 && of_experts == ranks;
}

bool overlaps_experts(const Plan& plan) {
  return plan.overlap.expert_parallel && plan.expert_parallel > 1;
}

bool groups_queries(const Transformer& model) {
  return !model.latent_attention && model.kv_heads != model.attention_heads;
}

// megatron/training/arguments.py requires one connection for tensor or context parallelism on
// devices before Blackwell, except with Megatron-FSDP, which requires more, and with the overlap of
// experts' exchange, which runs faster with more.
bool needs_one_connection(const Plan& plan, const Device& device) {
  return plan.tensor_parallel * plan.context_parallel > 1 && plan.zero_stage < 2 &&
         !overlaps_experts(plan) && device.generation != DeviceGeneration::blackwell;
}

class Arguments {
 public:
  void flag(std::string name, bool set = true) {
    if (set) lines_.push_back({std::move(name)});
  }
  template <typename Value>
  void add(std::string name, const Value& value) {
    lines_.push_back({std::move(name), fmt::format("{}", value)});
  }

  std::vector<std::string> words() const {
    std::vector<std::string> all;
    for (const auto& line : lines_) all.insert(all.end(), line.begin(), line.end());
    return all;
  }
  // One option on each line; values that a shell would interpret are quoted.
  std::string text() const {
    std::string text;
    for (const auto& line : lines_) {
      text += line.front();
      if (line.size() > 1) text += " " + (plain(line[1]) ? line[1] : shell_quoted(line[1]));
      text += "\n";
    }
    return text;
  }

 private:
  static bool plain(std::string_view word) {
    return !word.empty() && std::ranges::all_of(word, [](char c) {
      return std::string_view("()[]*|'\"$`\\ \t\n;&<>#~!{}?").find(c) == std::string_view::npos;
    });
  }
  std::vector<std::vector<std::string>> lines_;
};

// ---- What Megatron-LM cannot express ----------------------------------------------------------

void check_schedule(const Plan& plan, Refusals& refusals) {
  const std::string_view name = plan.schedule->name;
  if (plan.passes)
    return refusals.add("/plan/schedule", "a pass list of its own", "1f1b, interleaved-1f1b");
  if (name != "1f1b" && name != "interleaved-1f1b") {
    refusals.add("/plan/schedule", fmt::format("\"{}\"", name), "1f1b, interleaved-1f1b");
  }
}

void check_offload(const Plan& plan, Refusals& refusals) {
  const auto refuse = [&](std::string_view key, OffloadTarget target, bool host) {
    const bool fits = target == OffloadTarget::none || (host && target == OffloadTarget::host);
    if (!fits) {
      refusals.add(fmt::format("/plan/offload/{}", key),
                   target == OffloadTarget::host ? "\"host\"" : "\"nvme\"",
                   host ? "none, host" : "none");
    }
  };
  refuse("parameters", plan.offload.parameters, false);
  refuse("gradients", plan.offload.gradients, false);
  refuse("optimizer", plan.offload.optimizer, true);
  refuse("activations", plan.offload.activations, true);
  // Offloading runs in the precision-aware optimizer, which is a distributed one.
  if (plan.offload.optimizer == OffloadTarget::host && plan.zero_stage == 0) {
    refusals.add("/plan/offload/optimizer", "\"host\" with zero_stage 0", "a zero_stage from 1");
  }
}

// megatron/core/transformer/transformer_config.py: activations of whole layers can be in the host's
// memory only for fewer layers than the network has, without a pipeline and without recomputation.
void check_activation_offload(const Plan& plan, int layers, Refusals& refusals) {
  if (plan.offload.activations != OffloadTarget::host) return;
  if (plan.pipeline_parallel > 1) {
    refusals.add("/plan/offload/activations",
                 fmt::format("\"host\" with pipeline_parallel {}", plan.pipeline_parallel),
                 "none with a pipeline");
  }
  if (plan.recompute.mode != RecomputeMode::none) {
    refusals.add("/plan/offload/activations", "\"host\" with recomputation", "none with it");
  }
  const int away = plan.offload.activation_layers;
  if (away == 0 || away >= layers) {
    refusals.add("/plan/offload/activation_layers", fmt::format("all {} layers", layers),
                 fmt::format("1 to {}", layers - 1));
  }
}

void check_overlap(const Plan& plan, const StackOverlap& usual, Refusals& refusals) {
  const bool alone = plan.tensor_parallel > 1 && !plan.sequence_parallel;
  if (plan.overlap.tensor_parallel && alone) {
    refusals.add("/plan/overlap/tensor_parallel", "true without sequence_parallel", "with it");
  }
  const bool context =
      plan.context_parallel > 1 && plan.overlap.context_parallel != usual.context_parallel;
  if (context) {
    refusals.add("/plan/overlap/context_parallel", plan.overlap.context_parallel ? "true" : "false",
                 "as the stack has it");
  }
  if (plan.virtual_stages > 1 && plan.pipeline_parallel <= 2 && !plan.overlap.pipeline) {
    refusals.add("/plan/overlap/pipeline",
                 fmt::format("false with {} stages and virtual_stages {}", plan.pipeline_parallel,
                             plan.virtual_stages),
                 "true, or 3 stages or more");
  }
}

// Megatron-LM overlaps the exchange of experts' tokens (overlap_moe_expert_parallel_comm) between
// chunks, and without recomputing their layers.
void check_expert_overlap(const Scenario& scenario, const Plan& plan, Refusals& refusals) {
  if (!overlaps_experts(plan)) return;
  if (plan.pipeline_parallel > 1 && plan.virtual_stages == 1) {
    refusals.add("/plan/overlap/expert_parallel", "true in a pipeline without virtual_stages",
                 "false, or virtual_stages from 2");
  }
  if (plan.recompute.mode == RecomputeMode::full) {
    refusals.add("/plan/overlap/expert_parallel", "true with full recomputation", "false with it");
  }
  if (scenario.job.training.precision.name == "fp32") {
    refusals.add("/plan/overlap/expert_parallel", "true in fp32", "false in it");
  }
  const int predicting = scenario.job.model.mtp_layers;
  if (predicting > 1 || (predicting == 1 && plan.pipeline_parallel == 1)) {
    refusals.add(
        "/plan/overlap/expert_parallel",
        fmt::format("true with mtp_layers {} on {} stages", predicting, plan.pipeline_parallel),
        "false, or mtp_layers 1 on 2 stages or more");
  }
}

// megatron/core/transformer/transformer_config.py and megatron/training/arguments.py.
void check_network(const Scenario& scenario, const Plan& plan, Refusals& refusals) {
  const Transformer& model = scenario.job.model;
  if (model.experts > 0 && model.biases && plan.expert_tensor_parallel > 1) {
    refusals.add("/plan/expert_tensor_parallel",
                 fmt::format("{} of experts with biases", plan.expert_tensor_parallel),
                 "1 of them");
  }
  if (plan.expert_parallel > 1 && scenario.job.training.precision.name == "fp16") {
    refusals.add("/training/precision",
                 fmt::format("\"fp16\" with expert_parallel {}", plan.expert_parallel),
                 "bf16, fp32, fp8, mxfp8, nvfp4 with it");
  }
  if (model.mtp_layers > 0 && model.learned_positions) {
    refusals.add("/model/mtp_layers", fmt::format("{} with learned positions", model.mtp_layers),
                 "0 with them");
  }
  const std::int64_t length = scenario.job.training.sequence_length;
  const int halves = 2 * plan.context_parallel;
  if (plan.context_parallel > 1 && length % halves != 0) {
    refusals.add("/training/sequence_length",
                 fmt::format("{} with context_parallel {}", length, plan.context_parallel),
                 fmt::format("a multiple of {}", halves));
  }
}

// Transformer Engine's all-to-all splits the key-value heads of a rank like its query heads
// (transformer_engine/pytorch/attention: num_gqa_groups % cp_size == 0). If there are fewer heads
// than tensor-parallel ranks, each rank has a copy of one.
void check_context(const Plan& plan, const Transformer& model, Refusals& refusals) {
  if (plan.context_parallel == 1 || plan.context_parallel_algorithm != ContextAlgorithm::ulysses) {
    return;
  }
  const int all = model.latent_attention ? model.attention_heads : model.kv_heads;
  const int heads = std::max(1, all / plan.tensor_parallel);
  if (heads % plan.context_parallel == 0) return;
  refusals.add("/plan/context_parallel", fmt::format("{} by ulysses", plan.context_parallel),
               fmt::format("a divisor of the {} key-value heads of a rank", heads));
}

void check_training(const Scenario& scenario, const Plan& plan, Refusals& refusals) {
  const std::string_view optimizer = scenario.job.training.optimizer.name;
  if (optimizer != "adam" && optimizer != "adamw" && optimizer != "sgd") {
    refusals.add("/training/optimizer", fmt::format("\"{}\"", optimizer), "adam, adamw, sgd");
  }
  // megatron/core/optimizer/distrib_optimizer.py: "Only Adam and HybridDeviceOptimizer".
  if (optimizer == "sgd" && plan.zero_stage > 0) {
    refusals.add("/plan/zero_stage", fmt::format("{} with the optimizer sgd", plan.zero_stage),
                 "0 with it");
  }
}

void check_rest(const Scenario& scenario, const Plan& plan, Refusals& refusals) {
  refuse_common(scenario, plan, refusals);
  if (plan.zero_stage >= 2 && plan.pipeline_parallel > 1) {
    refusals.add(
        "/plan/zero_stage",
        fmt::format("{} with pipeline_parallel {}", plan.zero_stage, plan.pipeline_parallel),
        "0, 1 with a pipeline");
  }
  const bool by_chunk = plan.recompute.full_layers % plan.virtual_stages != 0;
  if (by_chunk) {
    refusals.add("/plan/recompute/full", fmt::format("{}", plan.recompute.full_layers),
                 fmt::format("a multiple of virtual_stages ({})", plan.virtual_stages));
  }
  const bool sharded_in_groups =
      plan.zero_stage == 0 && plan.sharding_group != plan.data_parallel * plan.context_parallel;
  if (sharded_in_groups) {
    refusals.add("/plan/sharding_group", fmt::format("{} with zero_stage 0", plan.sharding_group),
                 "a zero_stage from 1");
  }
}

// ---- The network ------------------------------------------------------------------------------

// A list with 1 for every layer that has the mark.
std::vector<int> layer_pattern(const Transformer& model, bool LayerKind::*mark) {
  std::vector<int> pattern;
  pattern.reserve(static_cast<std::size_t>(model.layers));
  for (int i = 0; i < model.layers; ++i) pattern.push_back(layer_kind(model, i).*mark ? 1 : 0);
  return pattern;
}

void add_windows(const Transformer& model, Arguments& arguments) {
  arguments.add("--window-size", fmt::format("{},0", model.sliding_window));
  if (model.full_attention_layers > 0) {
    arguments.add("--window-attn-skip-freq",
                  python_list(layer_pattern(model, &LayerKind::sliding)));
  } else if (model.full_attention_every > 0) {
    arguments.add("--window-attn-skip-freq", model.full_attention_every);
  }
}

void add_attention(const Transformer& model, Arguments& arguments) {
  arguments.add("--num-attention-heads", model.attention_heads);
  if (const auto& latent = model.latent_attention) {
    arguments.flag("--multi-latent-attention");
    if (latent->query_rank > 0) arguments.add("--q-lora-rank", latent->query_rank);
    arguments.add("--kv-lora-rank", latent->kv_rank);
    arguments.add("--qk-head-dim", latent->nope_head_dim);
    arguments.add("--qk-pos-emb-head-dim", latent->rope_head_dim);
    arguments.add("--v-head-dim", latent->value_head_dim);
  } else if (groups_queries(model)) {
    arguments.flag("--group-query-attention");
    arguments.add("--num-query-groups", model.kv_heads);
  }
  if (!model.latent_attention && model.head_dim * model.attention_heads != model.hidden_size) {
    arguments.add("--kv-channels", model.head_dim);
  }
  // Latent attention does not use it, but without it arguments.py divides and fails.
  if (model.latent_attention && model.hidden_size % model.attention_heads != 0) {
    arguments.add("--kv-channels", model.latent_attention->value_head_dim);
  }
  // The flag also builds the norms behind latent attention's down-projections.
  arguments.flag("--qk-layernorm", model.qk_norm || model.latent_attention.has_value());
  if (model.sliding_window > 0) add_windows(model, arguments);
  if (model.attention_sinks) arguments.add("--softmax-type", "learnable");
}

// With DeepEP (in the flex dispatcher) a token goes to a rank once, otherwise once for each expert.
void add_dispatcher(const Stack& stack, const Plan& plan, Arguments& arguments) {
  const bool deduplicated = stack.deduplicated_dispatch && plan.expert_parallel > 1;
  arguments.add("--moe-token-dispatcher-type", deduplicated ? "flex" : "alltoall");
  arguments.flag("--moe-enable-deepep", deduplicated);
}

// arguments.py: "Currently GroupedGEMM for MoE only supports bf16 dtype".
bool groups_experts(const Training& training) {
  return training.precision.name != "fp16" && training.precision.name != "fp32";
}

void add_experts(const Scenario& scenario, const Plan& plan, Arguments& arguments) {
  const Transformer& model = scenario.job.model;
  if (model.experts == 0) return;
  arguments.add("--num-experts", model.experts);
  arguments.add("--moe-router-topk", model.experts_per_token);
  arguments.add("--moe-ffn-hidden-size", model.expert_ffn_size);
  if (model.shared_experts > 0) {
    arguments.add("--moe-shared-expert-intermediate-size", shared_expert_width(model));
  }
  const std::vector<int> pattern = layer_pattern(model, &LayerKind::moe);
  if (std::ranges::find(pattern, 0) != pattern.end()) {
    arguments.add("--moe-layer-freq", python_list(pattern));
  }
  arguments.flag("--moe-router-enable-expert-bias", model.router_correction_bias);
  if (model.router_correction_bias) arguments.add("--moe-router-score-function", "sigmoid");
  const bool picks_first = model.experts_per_token == 1 && !model.router_correction_bias;
  // After the softmax, a single expert has no gradient.
  arguments.flag("--moe-router-pre-softmax", picks_first);
  arguments.flag("--moe-grouped-gemm", groups_experts(scenario.job.training));
  add_dispatcher(scenario.job.training.stack, plan, arguments);
  if (plan.capacity_factor > 0) {
    arguments.add("--moe-expert-capacity-factor", plan.capacity_factor);
  }
}

// The null tokenizer adds one token to the vocabulary: the end of a document.
void add_network(const Scenario& scenario, const Plan& plan, Arguments& arguments) {
  const Transformer& model = scenario.job.model;
  const std::int64_t length = scenario.job.training.sequence_length;
  arguments.add("--num-layers", model.layers);
  if (model.mtp_layers > 0) arguments.add("--mtp-num-layers", model.mtp_layers);
  arguments.add("--hidden-size", model.hidden_size);
  arguments.add("--ffn-hidden-size", model.ffn_size);
  add_attention(model, arguments);
  add_experts(scenario, plan, arguments);
  arguments.add("--seq-length", length);
  arguments.add("--max-position-embeddings", length);
  arguments.add("--position-embedding-type", model.learned_positions ? "learned_absolute" : "rope");
  arguments.add("--normalization", model.norm == Norm::rms_norm ? "RMSNorm" : "LayerNorm");
  arguments.flag("--swiglu", model.gated_mlp);
  arguments.flag("--disable-bias-linear", !model.biases);
  arguments.flag("--add-qkv-bias", model.qkv_biases && !model.biases);
  arguments.flag("--untie-embeddings-and-output-weights", !model.tied_embeddings);
  const Stack& stack = scenario.job.training.stack;
  arguments.flag("--cross-entropy-loss-fusion", stack.fused_cross_entropy);
  for (const char* dropout : {"--attention-dropout", "--hidden-dropout"}) {
    arguments.add(dropout, stack.dropout ? 0.1 : 0.0);
  }
  arguments.add("--tokenizer-type", "NullTokenizer");
  arguments.add("--vocab-size", model.vocabulary - 1);
}

// ---- Training and plan ------------------------------------------------------------------------

void add_precision(std::string_view recipe, Arguments& arguments) {
  arguments.flag("--fp16", recipe == "fp16");
  arguments.flag("--bf16", recipe != "fp16" && recipe != "fp32");
  if (recipe == "fp8" || recipe == "mxfp8") {
    arguments.add("--fp8-format", recipe == "fp8" ? "hybrid" : "e4m3");
    arguments.add("--fp8-recipe", recipe == "fp8" ? "tensorwise" : "mxfp8");
  } else if (recipe == "nvfp4") {
    arguments.add("--fp4-format", "e2m1");
    arguments.add("--fp4-recipe", "nvfp4");
  }
}

bool casts_to_8_bits(const Training& training) {
  return training.precision.name == "fp8" || training.precision.name == "mxfp8";
}

// Whether weights are gathered in 8 bits. Transformer Engine reads them by rows and by columns. In
// place of the 16-bit weights these two take the same memory, which the plan counts; beside them
// they would take it again. With an optimizer on the hosts, arguments.py accepts them only for the
// delayed recipe.
bool gathers_8_bits(const Training& training, const Plan& plan) {
  return casts_to_8_bits(training) && plan.zero_stage == 1 &&
         plan.offload.optimizer == OffloadTarget::none;
}
void add_weights_in_8_bits(const Training& training, const Plan& plan, Arguments& arguments) {
  if (!gathers_8_bits(training, plan)) return;
  arguments.flag("--fp8-param-gather");
  arguments.flag("--reuse-grad-buf-for-mxfp8-param-ag", training.precision.name == "mxfp8");
}

void add_recompute(const Plan& plan, Arguments& arguments) {
  if (plan.recompute.mode == RecomputeMode::selective) {
    arguments.add("--recompute-granularity", "selective");
  } else if (plan.recompute.mode == RecomputeMode::full) {
    const bool all = plan.recompute.full_layers == 0;
    arguments.add("--recompute-granularity", "full");
    arguments.add("--recompute-method", all ? "uniform" : "block");
    arguments.add("--recompute-num-layers",
                  all ? 1 : plan.recompute.full_layers / plan.virtual_stages);
  }
}

void add_sharding(const Plan& plan, Arguments& arguments) {
  arguments.flag("--overlap-grad-reduce", plan.overlap.data_parallel);
  if (plan.zero_stage == 0) return;
  arguments.flag("--use-distributed-optimizer");
  arguments.flag("--overlap-param-gather", plan.overlap.data_parallel);
  const int instances = plan.data_parallel * plan.context_parallel / plan.sharding_group;
  if (instances > 1) arguments.add("--num-distributed-optimizer-instances", instances);
  if (plan.zero_stage == 1) return;
  arguments.flag("--use-megatron-fsdp");
  arguments.add("--data-parallel-sharding-strategy",
                plan.zero_stage == 2 ? "optim_grads" : "optim_grads_params");
  arguments.flag("--no-gradient-accumulation-fusion");
  arguments.add("--ckpt-format", "fsdp_dtensor");
}

void add_pipeline(const Plan& plan, const Transformer& model, Arguments& arguments) {
  arguments.add("--pipeline-model-parallel-size", plan.pipeline_parallel);
  const bool chunks = plan.virtual_stages > 1;
  const std::vector<int> list = LayersOfChunks(plan, model.layers).all();
  const bool even = std::ranges::all_of(list, [&](int count) { return count == list.front(); });
  // It also gives the chunks of a stage: Megatron-LM takes only one of the two options.
  if (!even) {
    arguments.add("--pipeline-model-parallel-layout", pipeline_layout(list, model.mtp_layers));
  } else if (chunks) {
    arguments.add("--num-virtual-stages-per-pipeline-rank", plan.virtual_stages);
  }
  arguments.flag("--no-overlap-p2p-communication", chunks && !plan.overlap.pipeline);
}

void add_plan(const Plan& plan, const Transformer& model, Arguments& arguments) {
  arguments.add("--tensor-model-parallel-size", plan.tensor_parallel);
  arguments.flag("--sequence-parallel", plan.sequence_parallel && plan.tensor_parallel > 1);
  arguments.flag("--tp-comm-overlap", plan.overlap.tensor_parallel && plan.tensor_parallel > 1);
  add_pipeline(plan, model, arguments);
  arguments.add("--context-parallel-size", plan.context_parallel);
  if (plan.context_parallel_algorithm != ContextAlgorithm::ring) {
    const bool ulysses = plan.context_parallel_algorithm == ContextAlgorithm::ulysses;
    arguments.add("--cp-comm-type", ulysses ? "a2a" : "all_gather");
  }
  if (model.experts > 0) {
    arguments.add("--expert-model-parallel-size", plan.expert_parallel);
    arguments.add("--expert-tensor-parallel-size", plan.expert_tensor_parallel);
    arguments.flag("--overlap-moe-expert-parallel-comm", overlaps_experts(plan));
  }
  arguments.flag("--use-tp-pp-dp-mapping", numbers_pipeline_first(plan, model));
  add_sharding(plan, arguments);
  add_recompute(plan, arguments);
  if (plan.offload.optimizer == OffloadTarget::host) {
    arguments.flag("--optimizer-cpu-offload");
    arguments.flag("--use-precision-aware-optimizer");
  }
  if (plan.offload.activations == OffloadTarget::host) {
    arguments.add("--cpu-offloading-num-layers", plan.offload.activation_layers);
  }
}

Arguments arguments_of(const Scenario& scenario, const Plan& plan) {
  const Training& training = scenario.job.training;
  Arguments arguments;
  add_network(scenario, plan, arguments);
  arguments.add("--micro-batch-size", plan.micro_batch);
  arguments.add("--global-batch-size", training.global_batch);
  if (training.tokens > 0) {
    arguments.add("--train-samples",
                  static_cast<std::int64_t>(training.tokens) / training.sequence_length);
  }
  add_precision(training.precision.name, arguments);
  arguments.add("--optimizer", training.optimizer.name == "sgd" ? "sgd" : "adam");
  add_plan(plan, scenario.job.model, arguments);
  if (uses_buckets(training, plan)) {
    const double size = std::clamp(bucket_limit(training.stack, plan, {}), 1.0, 1e18);
    arguments.add("--ddp-bucket-size", static_cast<std::int64_t>(size));
  }
  add_weights_in_8_bits(training, plan, arguments);
  return arguments;
}

void add_notes(const Scenario& scenario, const Plan& plan, std::vector<std::string>& notes) {
  const Transformer& model = scenario.job.model;
  if (groups_queries(model) && model.kv_heads < plan.tensor_parallel) {
    notes.push_back(
        fmt::format("tensor_parallel {} above the {} query groups: Megatron-Core 0.16 or later",
                    plan.tensor_parallel, model.kv_heads));
  }
  const Training& training = scenario.job.training;
  if (casts_to_8_bits(training) && plan.zero_stage < 2 && !gathers_8_bits(training, plan)) {
    notes.push_back(
        fmt::format("{} weights in 8 bits lie beside those in 16: 2 bytes more a parameter of the "
                    "layers than the plan's memory has",
                    plan.zero_stage == 0 ? "without the distributed optimizer"
                                         : "with the optimizer on the hosts"));
  }
  if (model.experts > 0 && !groups_experts(training)) {
    notes.emplace_back(
        "experts are computed one by one: Megatron-LM groups their products in bf16 alone");
  }
  if (plan.load_imbalance > 1) {
    notes.emplace_back("load_imbalance is what the data does, not a setting");
  }
}

}  // namespace

Expected<Exported> export_megatron(const Scenario& scenario, const Plan& plan) {
  Refusals refusals("Megatron-LM");
  check_schedule(plan, refusals);
  check_offload(plan, refusals);
  check_activation_offload(plan, scenario.job.model.layers, refusals);
  check_overlap(plan, scenario.job.training.stack.overlap, refusals);
  check_expert_overlap(scenario, plan, refusals);
  check_context(plan, scenario.job.model, refusals);
  check_training(scenario, plan, refusals);
  check_network(scenario, plan, refusals);
  check_rest(scenario, plan, refusals);
  if (refusals.error()) return tl::unexpected(*refusals.error());
  const bool pipeline_first = numbers_pipeline_first(plan, scenario.job.model);
  const auto devices =
      rank_devices(plan, scenario.job.model, pipeline_first ? kPipelineFirst : kOrder);
  if (!devices) return tl::unexpected(devices.error());
  const Arguments arguments = arguments_of(scenario, plan);
  Launch launch{.framework = "Megatron-LM (commit 000c4ac or later)",
                .program = {"python", "pretrain_gpt.py"},
                .extra = scenario.job.training.tokens > 0
                             ? " \"$@\""
                             : " --mock-data --train-iters \"${TRAIN_ITERS:-50}\" --lr 1e-4 \"$@\"",
                .one_connection = needs_one_connection(plan, scenario.job.cluster.device)};
  const std::vector<std::string> words = arguments.words();
  launch.program.insert(launch.program.end(), words.begin(), words.end());
  Exported exported{{{"megatron-arguments.txt", arguments.text()},
                     hostfile(*devices, scenario.job.cluster.devices_per_node),
                     sbatch_script(scenario, plan, launch)},
                    {"data, tokenizer, learning rate and checkpoints: arguments of launch.sbatch"}};
  if (!std::ranges::is_sorted(*devices)) {
    exported.notes.push_back(
        fmt::format("rank_order {} is in the hostfile alone: by the arguments ranks lie {}",
                    plan.rank_order, pipeline_first ? kPipelineFirst : kOrder));
  }
  add_notes(scenario, plan, exported.notes);
  return exported;
}

}  // namespace trainyard
