#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/fields/documents.h"
#include "scenarios/interchange/documents/yaml.h"
#include "scenarios/interchange/megatron/keys.h"
#include "scenarios/interchange/megatron/megatron.h"
#include "scenarios/interchange/shell/text.h"

namespace trainyard {
namespace {

constexpr std::string_view kStack = "megatron-core";

// How a Transformer states which layers have a mark: leading layers without it, then a period.
struct Period {
  bool LayerKind::*mark;
  int Transformer::*leading;
  int Transformer::*every;
  int shortest;  // shortest period to try; 0: perhaps none
};
constexpr Period kExpertLayers{&LayerKind::moe, &Transformer::dense_layers, &Transformer::moe_every,
                               1};
constexpr Period kWindowLayers{&LayerKind::sliding, &Transformer::full_attention_layers,
                               &Transformer::full_attention_every, 0};

// Whether exactly the layers of the pattern have the mark.
bool has_pattern(const Transformer& model, const std::vector<int>& pattern, const Period& period) {
  for (int i = 0; i < model.layers; ++i) {
    const bool marked = pattern[static_cast<std::size_t>(i)] != 0;
    if (layer_kind(model, i).*period.mark != marked) return false;
  }
  return true;
}

// Finds leading layers and a period that make the pattern.
bool find_period(const std::vector<int>& pattern, const Period& period, Transformer& model) {
  const int leading = static_cast<int>(
      std::ranges::find_if(pattern, [](int marked) { return marked != 0; }) - pattern.begin());
  for (int every = period.shortest; every <= std::min(model.layers, 64); ++every) {
    for (const int first : {0, leading}) {
      model.*period.leading = first;
      model.*period.every = every;
      if (has_pattern(model, pattern, period)) return true;
    }
  }
  return false;
}

// `window_attn_skip_freq`: a number N for N − 1 layers with a window and then one without, or a
// list with 1 for every layer that has one (megatron/core/transformer/utils.py,
// is_layer_window_attention).
void read_window_layers(Options& options, Transformer& model) {
  const std::string text = options.text("window_attn_skip_freq");
  if (!text.starts_with('[') && !text.starts_with('(')) {
    model.full_attention_every = options.degree("window_attn_skip_freq", 0);
    return;
  }
  const auto pattern = parse_python_list(text);
  if (!pattern || pattern->size() != static_cast<std::size_t>(model.layers)) {
    return options.refuse("window_attn_skip_freq",
                          fmt::format("a list of 0 and 1 for {} layers", model.layers));
  }
  if (find_period(*pattern, kWindowLayers, model)) return;
  options.refuse("window_attn_skip_freq", "leading layers without a window, then each n-th");
}

void read_attention(Options& options, Transformer& model) {
  model.attention_heads = options.degree("num_attention_heads", 0);
  model.kv_heads = model.attention_heads;
  const auto groups = options.count("num_query_groups", 1);
  if (options.flag("group_query_attention")) model.kv_heads = static_cast<int>(groups.value_or(1));
  model.head_dim = options.degree("kv_channels", 0);
  if (options.flag("multi_latent_attention")) {
    model.latent_attention = LatentAttention{
        .query_rank = options.degree("q_lora_rank", 0),
        .kv_rank = options.degree("kv_lora_rank", 32),
        .nope_head_dim = options.degree("qk_head_dim", 128),
        .rope_head_dim = options.degree("qk_pos_emb_head_dim", 64),
        .value_head_dim = options.degree("v_head_dim", 128),
    };
    model.kv_heads = model.attention_heads;
    model.head_dim = 0;  // its heads have their own sizes, above
  }
  if (options.has("window_size")) {
    std::string text = options.text("window_size");  // "128,0" or "(128, 0)"
    std::erase_if(text, [](char c) { return c == '(' || c == ' '; });
    options.set("window_size", {{text.substr(0, text.find(','))}, options.file(), true});
    model.sliding_window = options.degree("window_size", 0);
    read_window_layers(options, model);
  }
  // Only backends that keep no scores; the default chooses one of them.
  constexpr auto kBackends = std::to_array<std::string_view>({"auto", "flash", "fused"});
  options.choice("attention_backend", kBackends, "auto");
  constexpr auto kSoftmax = std::to_array<std::string_view>({"vanilla", "learnable"});
  model.attention_sinks = options.choice("softmax_type", kSoftmax, "vanilla") == "learnable";
}

// A list with 1 for every layer with experts. `moe_layer_freq` is such a list, or a number N for
// one layer with experts and then N − 1 dense ones. None: refused.
std::optional<std::vector<int>> expert_pattern(Options& options, const std::string& text,
                                               int layers) {
  if (text.starts_with('[') || text.starts_with('(')) {
    const auto list = parse_python_list(text);
    if (list) return *list;
    options.refuse("moe_layer_freq", "a list that Python makes of 0 and 1");
    return std::nullopt;
  }
  const int every = options.degree("moe_layer_freq");
  std::vector<int> pattern;
  pattern.reserve(static_cast<std::size_t>(layers));
  for (int i = 0; i < layers; ++i) pattern.push_back(i % every == 0 ? 1 : 0);
  return pattern;
}

void read_expert_layers(Options& options, Transformer& model) {
  const std::string text = options.text("moe_layer_freq");
  if (text.empty() || text == "1") return;
  const auto pattern = expert_pattern(options, text, model.layers);
  if (!pattern) return;
  if (pattern->size() != static_cast<std::size_t>(model.layers)) {
    return options.refuse("moe_layer_freq", fmt::format("a pattern of {} layers", model.layers));
  }
  if (find_period(*pattern, kExpertLayers, model)) return;
  options.refuse("moe_layer_freq", "leading dense layers, then each n-th layer with experts");
}

void read_experts(Options& options, Transformer& model) {
  model.experts = options.degree("num_experts", 0);
  if (model.experts == 0) return;
  model.experts_per_token = options.degree("moe_router_topk", 2);
  model.expert_ffn_size = options.count("moe_ffn_hidden_size", 1).value_or(model.ffn_size);
  const auto shared = options.count("moe_shared_expert_intermediate_size", 1);
  model.shared_experts = shared ? 1 : 0;
  model.shared_expert_ffn_size = shared.value_or(0);
  model.router_correction_bias = options.flag("moe_router_enable_expert_bias");
  read_expert_layers(options, model);
}

void require(Options& options, std::string_view name) {
  if (!options.has(name)) options.refuse(name, "the arguments of a GPT that has it");
}

Transformer read_network(Options& options, const std::string& name, ScenarioDraft& draft) {
  for (const std::string_view key : {"num_layers", "hidden_size", "num_attention_heads"}) {
    require(options, key);
  }
  Transformer model;
  model.name = name;
  model.layers = static_cast<int>(options.count("num_layers", 1, 100'000).value_or(1));
  model.mtp_layers = static_cast<int>(options.count("mtp_num_layers", 0, 8).value_or(0));
  model.hidden_size = options.degree("hidden_size");
  const std::string activation = options.text("activation_func");
  model.gated_mlp = options.flag("swiglu") || options.flag("quick_geglu") ||
                    options.flag("gated_linear_unit") || activation == "swiglu";
  options.flag("squared_relu");
  model.ffn_size = options.count("ffn_hidden_size", 1).value_or(0);
  if (model.ffn_size == 0) {  // arguments.py: 4 h, or for SwiGLU 2/3 of it in multiples of 64
    const std::int64_t wide = 4 * std::int64_t{model.hidden_size};
    model.ffn_size = model.gated_mlp ? wide * 2 / 3 / 64 * 64 : wide;
  }
  constexpr auto kNorms = std::to_array<std::string_view>({"LayerNorm", "RMSNorm"});
  const bool rms = options.choice("normalization", kNorms, "LayerNorm") == "RMSNorm";
  model.norm = rms ? Norm::rms_norm : Norm::layer_norm;
  model.biases =
      !options.flag("disable_bias_linear") && options.said("add_bias_linear").value_or(true);
  model.qkv_biases = !model.biases && options.flag("add_qkv_bias");
  model.tied_embeddings = !options.flag("untie_embeddings_and_output_weights");
  constexpr auto kPositions =
      std::to_array<std::string_view>({"learned_absolute", "rope", "mrope", "yarn", "none"});
  const bool rotary = options.flag("use_rotary_position_embeddings");
  model.learned_positions =
      options.choice("position_embedding_type", kPositions, rotary ? "rope" : "learned_absolute") ==
      "learned_absolute";
  const bool head_norm = options.flag("qk_layernorm");
  read_attention(options, model);
  // There the flag builds latent attention's own norms.
  model.qk_norm = head_norm && !model.latent_attention;
  read_experts(options, model);
  const auto vocabulary = options.count("vocab_size", 1);
  const auto padded = options.count("padded_vocab_size", 1);
  const bool null_tokenizer = options.text("tokenizer_type") == "NullTokenizer";
  model.vocabulary = vocabulary ? *vocabulary + (null_tokenizer ? 1 : 0) : padded.value_or(50257);
  if (!vocabulary && !padded) {
    draft.assumptions.emplace_back("vocabulary 50257: the tokenizer's is not in the arguments");
  }
  return model;
}

std::string read_precision(Options& options, ScenarioDraft& draft) {
  const bool fp16 = options.flag("fp16");
  const bool bf16 = options.flag("bf16");
  std::string format = options.text("fp8_format");
  if (format.empty()) format = options.text("fp8");
  if (options.flag("fp8_hybrid") || options.flag("fp8_e4m3")) format = "hybrid";
  constexpr auto kRecipes =
      std::to_array<std::string_view>({"tensorwise", "delayed", "mxfp8", "blockwise"});
  const std::string recipe = options.choice("fp8_recipe", kRecipes, "delayed");
  if (options.has("fp4_format") || options.has("fp4")) {
    options.has("fp4_recipe");
    return "nvfp4";
  }
  if (!format.empty()) {
    if (recipe == "blockwise") {
      draft.assumptions.emplace_back("fp8_recipe blockwise is taken as fp8 scaled by tensors");
    }
    return recipe == "mxfp8" ? "mxfp8" : "fp8";
  }
  return bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
}

void read_training(Options& options, ScenarioDraft& draft) {
  Json& training = draft.training = Json::object();
  require(options, "seq_length");
  if (const auto batch = options.count("global_batch_size", 1)) training["global_batch"] = *batch;
  const std::int64_t length = options.count("seq_length", 1).value_or(1);
  training["sequence_length"] = length;
  training["precision"] = read_precision(options, draft);
  constexpr auto kOptimizers = std::to_array<std::string_view>({"adam", "sgd"});
  training["optimizer"] = options.choice("optimizer", kOptimizers, "adam");
  training["stack"] = std::string(kStack);
  const auto samples = options.count("train_samples", 1, 1'000'000'000'000);
  const auto iterations = options.count("train_iters", 1, 1'000'000'000);
  constexpr std::int64_t kMostTokens = 2'000'000'000'000'000'000;  // more than a document may have
  if (samples) training["tokens"] = product_up_to(kMostTokens, {*samples, length});
  if (!samples && iterations && training.contains("global_batch")) {
    training["tokens"] = product_up_to(
        kMostTokens, {*iterations, length, training["global_batch"].get<std::int64_t>()});
  }
  if (options.has("rampup_batch_size")) {
    draft.assumptions.emplace_back("rampup_batch_size: the step is one of the full batch");
  }
}

void read_recompute(Options& options, PlanRequest& plan) {
  constexpr auto kGranularities = std::to_array<std::string_view>({"full", "selective"});
  const bool selective = options.flag("recompute_activations");
  const std::string granularity =
      options.choice("recompute_granularity", kGranularities, selective ? "selective" : "none");
  constexpr auto kMethods = std::to_array<std::string_view>({"uniform", "block"});
  const std::string method = options.choice("recompute_method", kMethods, "uniform");
  const int layers = options.degree("recompute_num_layers");
  for (const std::string& module : options.words("recompute_modules")) {
    if (module != "core_attn") {
      options.refuse("recompute_modules", "core_attn alone, what \"selective\" means");
    }
  }
  if (granularity == "selective") plan.recompute.mode = RecomputeMode::selective;
  if (granularity != "full") return;
  plan.recompute.mode = RecomputeMode::full;
  // Method block: layers of each chunk. Uniform: all layers, saved every `layers`; only 1 is
  // priced.
  if (method == "block") {
    plan.recompute.full_layers =
        static_cast<int>(product_up_to(1'000'000, {layers, plan.virtual_stages.value_or(1)}));
  }
  if (method == "uniform" && layers > 1) {
    options.refuse("recompute_num_layers", "1 with the method uniform");
  }
}

// Whether the split counts the embedding, or the loss, as a layer (transformer_block.py,
// get_num_layers_to_build).
int counted_first(Options& options) {
  return options.flag("account_for_embedding_in_pipeline_split") ? 1 : 0;
}
int counted_last(Options& options) {
  return options.flag("account_for_loss_in_pipeline_split") ? 1 : 0;
}

// `layers`: including what counts as a layer.
void read_virtual_stages(Options& options, int layers, PlanRequest& plan) {
  const auto set = [&plan](int stages) {
    if (stages > 1) plan.virtual_stages = stages;
  };
  set(options.degree("num_virtual_stages_per_pipeline_rank"));
  options.count("microbatch_group_size_per_virtual_pipeline_stage", 1);
  const auto each = options.count("num_layers_per_virtual_pipeline_stage", 1);
  if (!each) return;
  const std::int64_t chunks = *each * plan.pipeline_parallel;
  if (layers % chunks != 0) {
    return options.refuse(
        "num_layers_per_virtual_pipeline_stage",
        fmt::format("a divisor of the {} layers of a stage", layers / plan.pipeline_parallel));
  }
  set(static_cast<int>(layers / chunks));
}

// The layers of every chunk if the embedding or the loss counts as one.
std::vector<int> read_counted(Options& options, int layers, const PlanRequest& plan) {
  const int first = counted_first(options);
  const int last = counted_last(options);
  const std::int64_t chunks =
      std::int64_t{plan.pipeline_parallel} * plan.virtual_stages.value_or(1);
  if (first + last == 0 || plan.pipeline_parallel == 1) return {};
  const int all = layers + first + last;
  if (all % chunks != 0) {
    options.refuse(
        first > 0 ? "account_for_embedding_in_pipeline_split"
                  : "account_for_loss_in_pipeline_split",
        fmt::format("{} layers, those that it counts among them, in {} equal chunks", all, chunks));
    return {};
  }
  std::vector<int> sizes(static_cast<std::size_t>(chunks), static_cast<int>(all / chunks));
  sizes.front() -= first;
  sizes.back() -= last;
  return sizes;
}

std::vector<int> refuse_ends(Options& options, bool first, std::string_view allowed) {
  options.refuse(first ? "decoder_first_pipeline_num_layers" : "decoder_last_pipeline_num_layers",
                 std::string(allowed));
  return {};
}

// The layers of every stage, given those of the first or the last.
std::vector<int> read_ends(Options& options, int layers, const PlanRequest& plan) {
  const auto first = options.count("decoder_first_pipeline_num_layers", 1);
  const auto last = options.count("decoder_last_pipeline_num_layers", 1);
  const int p = plan.pipeline_parallel;
  if ((!first && !last) || p < 2) return read_counted(options, layers, plan);
  if (counted_first(options) + counted_last(options) > 0) {
    return refuse_ends(options, first.has_value(),
                       "none beside account_for_embedding_in_pipeline_split and its like");
  }
  const std::int64_t between = p - std::int64_t{first.has_value()} - std::int64_t{last.has_value()};
  const std::int64_t rest = layers - first.value_or(0) - last.value_or(0);
  if (rest < 0 || (between > 0 ? rest % between != 0 : rest != 0)) {
    return refuse_ends(options, first.has_value(),
                       "one that leaves the other stages the same number of layers");
  }
  std::vector<int> stages(static_cast<std::size_t>(p),
                          static_cast<int>(between > 0 ? rest / between : 0));
  if (first) stages.front() = static_cast<int>(*first);
  if (last) stages.back() = static_cast<int>(*last);
  return stages;
}

// The layers of every chunk: from a layout, which also gives the chunks of a stage, else from the
// layers of the first and last stage, else from what counts as a layer.
std::vector<int> read_layers(Options& options, const Transformer& model, PlanRequest& plan) {
  const std::string layout = options.text("pipeline_model_parallel_layout");
  if (layout.empty()) return read_ends(options, model.layers, plan);
  const auto parsed = parse_pipeline_layout(layout, model.mtp_layers);
  if (parsed) {
    const auto chunks = static_cast<std::int64_t>(parsed->size());
    if (!plan.virtual_stages && chunks > plan.pipeline_parallel &&
        chunks % plan.pipeline_parallel == 0) {
      plan.virtual_stages = static_cast<int>(chunks / plan.pipeline_parallel);
    }
    return *parsed;
  }
  options.refuse("pipeline_model_parallel_layout",
                 parsed.error().message.substr(parsed.error().message.find("allowed: ") + 9));
  return read_ends(options, model.layers, plan);
}

int read_zero_stage(Options& options) {
  constexpr auto kStrategies =
      std::to_array<std::string_view>({"no_shard", "optim", "optim_grads", "optim_grads_params"});
  const bool distributed = options.flag("use_distributed_optimizer");
  const bool fsdp = options.flag("use_megatron_fsdp") || options.flag("use_custom_fsdp");
  const std::string strategy =
      options.choice("data_parallel_sharding_strategy", kStrategies, "no_shard");
  if (!fsdp) return distributed ? 1 : 0;
  return static_cast<int>(std::ranges::find(kStrategies, strategy) - kStrategies.begin());
}

void refuse_narrow_states(Options& options) {
  constexpr auto kPriced = std::to_array<std::string_view>({"fp32"});
  for (const std::string_view key : kMegatronStateTypes) options.choice(key, kPriced, "fp32");
}

void read_overlap(Options& options, PlanRequest& plan) {
  const bool tensor = options.flag("tp_comm_overlap");
  const bool experts = options.flag("overlap_moe_expert_parallel_comm");
  const bool pipeline = !options.flag("no_overlap_p2p_communication") &&
                        options.said("overlap_p2p_comm").value_or(true);
  plan.overlap.data_parallel = options.flag("overlap_grad_reduce");
  options.flag("overlap_param_gather");
  if (plan.tensor_parallel > 1) plan.overlap.tensor_parallel = tensor;
  if (plan.virtual_stages.value_or(1) > 1) plan.overlap.pipeline = pipeline;
  if (plan.expert_parallel > 1) plan.overlap.expert_parallel = experts;
}

void read_offload(Options& options, PlanRequest& plan) {
  if (options.flag("optimizer_cpu_offload")) {
    if (options.number("optimizer_offload_fraction").value_or(1) < 1) {
      options.refuse("optimizer_offload_fraction", "1: all of the optimizer or none");
    }
    plan.offload.optimizer = OffloadTarget::host;
  }
  options.flag("use_precision_aware_optimizer");
  const auto layers = options.count("cpu_offloading_num_layers", 0);
  if (!layers || *layers == 0) return;
  plan.offload.activations = OffloadTarget::host;
  plan.offload.activation_layers = static_cast<int>(*layers);
}

void read_context(Options& options, PlanRequest& plan) {
  plan.context_parallel = options.degree("context_parallel_size");
  constexpr auto kTypes =
      std::to_array<std::string_view>({"p2p", "all_gather", "allgather", "a2a"});
  const std::string type = options.choice("cp_comm_type", kTypes, "p2p");
  if (options.words("cp_comm_type").size() > 1) {
    options.refuse("cp_comm_type", "one for all layers");
  }
  plan.context_parallel_algorithm = type == "p2p"   ? ContextAlgorithm::ring
                                    : type == "a2a" ? ContextAlgorithm::ulysses
                                                    : ContextAlgorithm::all_gather;
}

void read_plan(Options& options, const Transformer& model, ScenarioDraft& draft) {
  PlanRequest& plan = draft.plan;
  plan.tensor_parallel = options.degree("tensor_model_parallel_size");
  plan.pipeline_parallel = options.degree("pipeline_model_parallel_size");
  const bool sequence = options.flag("sequence_parallel");
  if (plan.tensor_parallel > 1) plan.sequence_parallel = sequence;
  read_context(options, plan);
  read_virtual_stages(options, model.layers + counted_first(options) + counted_last(options), plan);
  plan.layers_per_stage = unless_default(read_layers(options, model, plan), model.layers, plan);
  plan.expert_parallel = options.degree("expert_model_parallel_size");
  const int expert_tensor = model.experts > 0 ? plan.tensor_parallel : 1;  // arguments.py's default
  plan.expert_tensor_parallel = options.degree("expert_tensor_parallel_size", expert_tensor);
  plan.micro_batch = options.degree("micro_batch_size");
  plan.zero_stage = read_zero_stage(options);
  if (options.flag("use_tp_pp_dp_mapping")) plan.rank_order = "tp-cp-ep-pp-dp";
  if (const auto factor = options.number("moe_expert_capacity_factor")) {
    if (*factor > 0) plan.capacity_factor = factor;
  }
  read_recompute(options, plan);
  read_overlap(options, plan);
  read_offload(options, plan);
  refuse_narrow_states(options);
}

// Optimizer instances split the ranks that hold the same parameters into sharding groups.
void read_sharding(Options& options, const ImportSettings& settings, ScenarioDraft& draft) {
  const int instances = options.degree("num_distributed_optimizer_instances");
  if (instances == 1) return;
  const PlanRequest& plan = draft.plan;
  const auto devices = planned_devices(draft, settings);
  if (!devices) return options.fail(devices.error());
  const int ranks = *devices / ranks_of({plan.tensor_parallel, plan.pipeline_parallel});
  if (ranks % instances != 0 || ranks < instances) {
    return options.refuse("num_distributed_optimizer_instances",
                          fmt::format("a divisor of the {} ranks of a shard", ranks));
  }
  draft.plan.sharding_group = ranks / instances;
}

void read_launch(Options& options, ScenarioDraft& draft) {
  const auto per_node = options.count("nproc_per_node", 1, 10'000);
  const auto nodes = options.count("nnodes", 1, 1'000'000);
  const auto world = options.count("world_size", 1, 16'777'216);
  draft.devices_per_node = static_cast<int>(per_node.value_or(0));
  if (world) draft.devices = static_cast<int>(*world);
  if (!world && per_node) {
    draft.devices =
        static_cast<int>(std::min<std::int64_t>(*per_node * nodes.value_or(1), 16'777'216));
  }
}

bool looks_like_yaml(std::string_view text) {
  while (!text.empty()) {
    const auto words = words_of(take_line(text));
    if (words.empty() || words.front().starts_with('#') || words.front() == "---") continue;
    return words.front().ends_with(':') && words.front() != ":";
  }
  return false;
}

Expected<Options> read_options(const ForeignFile& file) {
  if (!looks_like_yaml(file.text)) return parse_command_line(file);
  const auto tree = parse_yaml(file);
  if (!tree) return tl::unexpected(tree.error());
  Options options(file.name);
  options.set_tree(*tree, "");
  return options;
}

}  // namespace

Expected<Imported> import_megatron(const ForeignFile& file, const ImportSettings& settings) {
  auto options = read_options(file);
  if (!options) return tl::unexpected(options.error());
  ScenarioDraft draft{.name = file.stem};
  draft.assumptions = options->assumptions();
  Transformer model = read_network(*options, file.stem, draft);
  read_training(*options, draft);
  read_plan(*options, model, draft);
  read_launch(*options, draft);
  read_sharding(*options, settings, draft);
  if (options->error()) return tl::unexpected(*options->error());
  if (auto done = note_unread(*options, kChangingMegatronKeys, kNeutralMegatronKeys, draft);
      !done) {
    return tl::unexpected(done.error());
  }
  draft.model = model_section().write(model, Keys::said);
  return finish_draft(std::move(draft), settings, file.name);
}

}  // namespace trainyard
