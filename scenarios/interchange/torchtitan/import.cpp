#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/interchange/documents/toml.h"
#include "scenarios/interchange/torchtitan/networks.h"
#include "scenarios/interchange/torchtitan/torchtitan.h"

namespace trainyard {
namespace {

constexpr auto kChangingTorchtitanKeys =
    std::to_array<std::string_view>({"parallelism.pipeline_parallel_schedule_csv", "training.dtype",
                                     "optimizer.state_dtype", "optimizer.early_step_in_backward"});
constexpr auto kNeutralTorchtitanKeys =
    std::to_array<std::string_view>({"activation_checkpoint.per_op",
                                     "activation_checkpoint.early_stop",
                                     "checkpoint.",
                                     "comm.",
                                     "compile.",
                                     "debug.",
                                     "experimental.",
                                     "fault_tolerance.",
                                     "float8.",
                                     "job.",
                                     "lr_scheduler.",
                                     "memory_estimation.",
                                     "metrics.",
                                     "model.",
                                     "mx.",
                                     "optimizer.",
                                     "parallelism.disable_loss",
                                     "parallelism.enable_compiled",
                                     "profiling.",
                                     "quantize.",
                                     "training.",
                                     "validation.",
                                     "parallelism.fsdp"});

struct EarlierName {
  std::string_view earlier, name;
};
// Where files had the parallelism before the section [parallelism] existed (early 2025).
constexpr auto kEarlierNames = std::to_array<EarlierName>(
    {{"training.batch_size", "training.local_batch_size"},
     {"training.data_parallel_degree", "parallelism.data_parallel_shard_degree"},
     {"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
     {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
     {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
     {"training.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
     {"experimental.context_parallel_degree", "parallelism.context_parallel_degree"},
     {"experimental.context_parallel_rotate_method", "parallelism.context_parallel_rotate_method"},
     {"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
     {"experimental.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"},
     {"experimental.pipeline_parallel_schedule_csv", "parallelism.pipeline_parallel_schedule_csv"},
     {"experimental.pipeline_parallel_split_points", "parallelism.pipeline_parallel_split_points"},
     {"experimental.pipeline_parallel_microbatches", "parallelism.pipeline_parallel_microbatches"},
     {"experimental.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel"}});

// Reads these names. Such files cut a local batch into as many passes as the pipeline has ranks,
// unless they give a number.
void read_earlier_names(Options& options, ScenarioDraft& draft) {
  constexpr std::string_view kPasses = "parallelism.pipeline_parallel_microbatches";
  const std::string ranks = options.text("experimental.pipeline_parallel_degree");
  for (const EarlierName& key : kEarlierNames) options.rename(key.earlier, key.name);
  if (ranks.empty() || options.has(kPasses)) return;
  options.set(std::string(kPasses), {{ranks}, options.file()});
  if (ranks == "1") return;
  draft.assumptions.push_back(fmt::format("{} passes: as many as ranks in a pipeline", ranks));
}

Expected<Transformer> network(const std::string& name) {
  const Document settings{"--model", std::filesystem::current_path() / "-", nullptr};
  Transformer model;
  auto done = read_reference(model_section(), Json(name), model, {&settings, ""});
  return done ? Expected<Transformer>(model) : tl::unexpected(done.error());
}

void read_model(Options& options, const ImportSettings& settings, ScenarioDraft& draft) {
  const std::string name = options.text("model.name");
  const std::string flavour = options.text("model.flavor");
  for (const TorchtitanNetwork& known : kTorchtitanNetworks) {
    if (known.name == name && known.flavour == flavour) draft.model = std::string(known.model);
  }
  if (draft.model.is_null() && !name.empty() && settings.model.empty()) {
    options.refuse(flavour.empty() ? "model.name" : "model.flavor",
                   "llama3, deepseek_v3 and qwen3 in their published sizes, or --model NAME");
  }
}

std::string torchtitan_precision(Options& options) {
  constexpr auto kTypes = std::to_array<std::string_view>({"bfloat16", "float32"});
  const bool half =
      options.choice("training.mixed_precision_param", kTypes, "bfloat16") == "bfloat16";
  constexpr auto kReduced = std::to_array<std::string_view>({"float32"});
  options.choice("training.mixed_precision_reduce", kReduced, "float32");
  std::string precision = half ? "bf16" : "fp32";
  // A key from before the converters.
  if (options.flag("float8.enable_float8_linear")) precision = "fp8";
  for (const std::string& converter : options.words("model.converters")) {
    if (converter == "float8" || converter.ends_with(".float8")) precision = "fp8";
    if (converter == "mx" || converter.ends_with(".mx")) precision = "mxfp8";
  }
  return precision;
}

void read_torchtitan_training(Options& options, ScenarioDraft& draft) {
  Json& training = draft.training = Json::object();
  training["sequence_length"] = options.count("training.seq_len", 1).value_or(2048);
  training["precision"] = torchtitan_precision(options);
  std::string optimizer = options.has("optimizer.name") ? options.text("optimizer.name") : "AdamW";
  if (optimizer != "Adam" && optimizer != "AdamW") options.refuse("optimizer.name", "Adam, AdamW");
  training["optimizer"] = optimizer == "Adam" ? "adam" : "adamw";
  const std::vector<std::string> parts = options.words("compile.components");  // absent: all
  const bool network = parts.empty() || std::ranges::find(parts, "model") != parts.end();
  const bool compiled =
      options.flag("training.compile") || (options.flag("compile.enable") && network);
  training["stack"] = compiled ? "torchtitan" : "torchtitan-eager";
}

// Notes what a precision recipe assumes: torchtitan has separate converters for linear layers and
// experts, while a recipe has both.
void note_precision(Options& options, bool experts, ScenarioDraft& draft) {
  const std::vector<std::string> converters = options.words("model.converters");
  const auto named = [&](std::string_view beginning) {
    return std::ranges::any_of(
        converters, [&](const std::string& name) { return name.starts_with(beginning); });
  };
  const bool of_experts = named("quantize.grouped_mm.");
  const bool of_linear = named("quantize.linear.") || named("float8") || named("mx");
  if (!experts || of_experts == of_linear) return;
  draft.assumptions.push_back(fmt::format(
      "precision {}: of linear layers and experts, where the file has it of {} alone",
      draft.training["precision"].get<std::string>(), of_experts ? "experts" : "linear layers"));
}

// Reads how experts are cut: without expert parallelism, over the tensor-parallel ranks.
void read_experts(Options& options, bool experts, ScenarioDraft& draft) {
  constexpr std::string_view kKey = "parallelism.expert_tensor_parallel_degree";
  PlanRequest& plan = draft.plan;
  plan.expert_parallel = options.degree("parallelism.expert_parallel_degree");
  const bool said = options.has(kKey);
  const int degree = options.degree(kKey);
  if (!experts) return;
  plan.expert_tensor_parallel = plan.expert_parallel == 1 ? plan.tensor_parallel : degree;
  if (plan.expert_parallel == 1 || plan.tensor_parallel == 1) return;
  if (degree != 1 && degree != plan.tensor_parallel) {
    return options.refuse(kKey,
                          fmt::format("1 or tensor_parallel_degree ({})", plan.tensor_parallel));
  }
  if (!said) {
    draft.assumptions.emplace_back("expert_tensor_parallel_degree 1: torchtitan's default");
  }
}

void read_torchtitan_context(Options& options, PlanRequest& plan) {
  plan.context_parallel = options.degree("parallelism.context_parallel_degree");
  constexpr auto kRotate = std::to_array<std::string_view>({"allgather", "alltoall"});
  const bool gathers = options.choice("parallelism.context_parallel_rotate_method", kRotate,
                                      "allgather") == "allgather";
  if (plan.context_parallel == 1) return;
  plan.context_parallel_algorithm = gathers ? ContextAlgorithm::all_gather : ContextAlgorithm::ring;
}

constexpr std::string_view kModules = "parallelism.module_fqns_per_model_part";
// A key of 0.1.
constexpr std::string_view kSplitPoints = "parallelism.pipeline_parallel_split_points";

// The layers of chunks, given the layers that begin them: "layers.4".
std::vector<int> layers_of_points(Options& options, int layers) {
  std::vector<int> sizes;
  int before = 0;
  for (const std::string& point : options.words(kSplitPoints)) {
    const std::string_view prefix = "layers.";
    Options number("");
    if (point.starts_with(prefix)) number.set("n", {{point.substr(prefix.size())}, ""});
    const auto begin = number.count("n", before + 1, layers - 1);
    if (!begin) {
      options.refuse(kSplitPoints, fmt::format("layers.1 to layers.{}, rising", layers - 1));
      return {};
    }
    sizes.push_back(static_cast<int>(*begin) - before);
    before = static_cast<int>(*begin);
  }
  if (!sizes.empty()) sizes.push_back(layers - before);
  return sizes;
}

struct NamedSchedule {
  std::string_view theirs, ours;
  int chunks = 1;  // default number of chunks
};
constexpr std::array kSchedules = {NamedSchedule{"1F1B", "1f1b"}, NamedSchedule{"GPipe", "gpipe"},
                                   NamedSchedule{"Interleaved1F1B", "interleaved-1f1b", 2},
                                   NamedSchedule{"ZBVZeroBubble", "zb-v", 2}};

// The modules of all chunks, one after the other; contains a word that is no module if `parts` is
// not a list of lists.
std::vector<std::string> modules_of(const Json& parts, std::vector<std::size_t>& sizes) {
  std::vector<std::string> modules;
  for (const Json& part : parts.is_array() ? parts : Json::array({0})) {
    if (!part.is_array()) return {"no list"};
    sizes.push_back(part.size());
    for (const Json& module : part) {
      modules.push_back(module.is_string() ? module.get<std::string>() : "no name");
    }
  }
  return modules;
}

std::vector<std::string> modules_of_network(int layers) {
  std::vector<std::string> modules = {"tok_embeddings"};
  modules.reserve(static_cast<std::size_t>(layers) + 3);
  for (int layer = 0; layer < layers; ++layer) modules.push_back(fmt::format("layers.{}", layer));
  modules.insert(modules.end(), {"norm", "output"});
  return modules;
}

// The layers of chunks, given their modules: embedding, layers, norm and head, each in one chunk.
std::vector<int> layers_of_modules(Options& options, const Json& tree, int layers) {
  if (!options.has(kModules)) return {};
  const auto section = tree.find("parallelism");
  const Json parts = section != tree.end() && section->is_object()
                         ? section->value("module_fqns_per_model_part", Json())
                         : Json();
  std::vector<std::size_t> modules;
  if (modules_of(parts, modules) == modules_of_network(layers)) {
    std::vector<int> sizes;
    sizes.reserve(modules.size());
    int first = 0;
    for (const std::size_t size : modules) {
      const int end = first + static_cast<int>(size);
      sizes.push_back(std::max(0, std::min(end, layers + 1) - std::max(first, 1)));
      first = end;
    }
    return sizes;
  }
  options.refuse(kModules, fmt::format("lists of tok_embeddings, layers.0 to layers.{}, norm and "
                                       "output, in this order",
                                       layers - 1));
  return {};
}

// distributed/pipeline_parallel.py, generate_llm_fqn_per_model_part: the embedding counts as
// `first` layers and the head as `last`; remaining layers go to the first chunks. None: a chunk
// would have fewer layers than that.
std::vector<int> layers_by_torchtitan(int layers, int chunks, int first, int last) {
  const int all = layers + first + last;
  const int each = all / chunks;
  if (chunks < 2 || each < std::max({1, first, last})) return {};
  std::vector<int> sizes(static_cast<std::size_t>(chunks), each);
  for (int chunk = 0; chunk < all % chunks; ++chunk) ++sizes[static_cast<std::size_t>(chunk)];
  sizes.front() -= first;
  sizes.back() -= last;
  return sizes;
}

constexpr std::string_view kLayersOfChunk = "parallelism.pipeline_parallel_layers_per_stage";

void read_chunks(Options& options, const Json& tree, int layers, PlanRequest& plan) {
  constexpr std::string_view kFirst = "parallelism.pipeline_parallel_first_stage_less_layers";
  constexpr std::string_view kLast = "parallelism.pipeline_parallel_last_stage_less_layers";
  const auto first = static_cast<int>(options.count(kFirst, 0, 1000).value_or(1));
  const auto last = static_cast<int>(options.count(kLast, 0, 1000).value_or(1));
  const auto each = options.count(kLayersOfChunk, 1);
  std::vector<int> sizes = layers_of_modules(options, tree, layers);
  if (sizes.empty()) sizes = layers_of_points(options, layers);
  if (plan.pipeline_parallel == 1 || options.error()) return;
  const int stages = plan.pipeline_parallel;
  std::int64_t chunks = std::int64_t{stages} * plan.virtual_stages.value_or(1);
  if (each) chunks = (layers + first + last + *each - 1) / *each;
  if (!sizes.empty()) chunks = static_cast<std::int64_t>(sizes.size());
  if (chunks % stages != 0) {
    return options.refuse(sizes.empty()           ? kLayersOfChunk
                          : options.has(kModules) ? kModules
                                                  : kSplitPoints,
                          fmt::format("chunks in a multiple of {}", stages));
  }
  if (sizes.empty()) {
    sizes = layers_by_torchtitan(layers, static_cast<int>(chunks), first, last);
  }
  if (sizes.empty()) {
    return options.refuse("parallelism.pipeline_parallel_degree",
                          fmt::format("fewer than {} chunks of {} layers, the embedding counted as "
                                      "{} and the head as {}",
                                      chunks, layers, first, last));
  }
  if (chunks > stages) plan.virtual_stages = static_cast<int>(chunks / stages);
  plan.layers_per_stage = unless_default(std::move(sizes), layers, plan);
}

void read_pipeline(Options& options, const Json& tree, int layers, PlanRequest& plan) {
  plan.pipeline_parallel = options.degree("parallelism.pipeline_parallel_degree");
  const std::string name = options.has("parallelism.pipeline_parallel_schedule")
                               ? options.text("parallelism.pipeline_parallel_schedule")
                               : "1F1B";
  const auto* const schedule = std::ranges::find(kSchedules, name, &NamedSchedule::theirs);
  if (schedule == kSchedules.end()) {
    return options.refuse("parallelism.pipeline_parallel_schedule",
                          "1F1B, GPipe, Interleaved1F1B, ZBVZeroBubble");
  }
  if (plan.pipeline_parallel > 1) {
    plan.schedule = schedule->ours;
    if (schedule->chunks > 1) plan.virtual_stages = schedule->chunks;
  }
  read_chunks(options, tree, layers, plan);
}

void read_sharding(Options& options, int devices, PlanRequest& plan) {
  const int replicas = options.degree("parallelism.data_parallel_replicate_degree");
  const std::int64_t said =
      options.count("parallelism.data_parallel_shard_degree", -1).value_or(-1);
  const int shards =
      said > 0 ? static_cast<int>(said) : std::max(1, devices / model_ranks_of(plan) / replicas);
  constexpr auto kPolicies = std::to_array<std::string_view>({"default", "always", "never"});
  const std::string policy =
      options.choice("parallelism.fsdp_reshard_after_forward", kPolicies, "default");
  const bool keeps = policy == "never" || (policy == "default" && plan.pipeline_parallel > 1);
  plan.data_parallel = static_cast<int>(product_up_to(1'000'000, {replicas, shards}));
  const int group = ranks_of({shards, plan.context_parallel});
  const bool sharded = group > 1;
  plan.zero_stage = !sharded ? 0 : keeps ? 2 : 3;
  if (sharded && replicas > 1) plan.sharding_group = group;
  if (!options.flag("training.enable_cpu_offload")) return;
  plan.offload.parameters = plan.offload.gradients = plan.offload.optimizer = OffloadTarget::host;
}

void read_recompute(Options& options, int layers, ScenarioDraft& draft) {
  constexpr auto kNames = std::to_array<std::string_view>({"none", "full", "selective"});
  const std::string mode = options.choice("activation_checkpoint.mode", kNames, "selective");
  const std::string option = options.text("activation_checkpoint.selective_ac_option");
  Recompute& recompute = draft.plan.recompute;
  if (mode == "none") return;
  recompute.mode =
      mode == "full" || option != "op" ? RecomputeMode::full : RecomputeMode::selective;
  if (mode == "full" || option == "op") return;
  const int every = options.degree("activation_checkpoint.selective_ac_option", 2);
  recompute.full_layers = std::max(1, layers / draft.plan.pipeline_parallel / every);
  draft.assumptions.push_back(
      fmt::format("recompute: {} layers of a stage, every {}th", recompute.full_layers, every));
}

// The sequences of a pass. With a pipeline the local batch is cut into passes of a given size or,
// in earlier files, into a given number of passes.
int read_pass(Options& options, int local) {
  const int size = options.degree("parallelism.pipeline_parallel_microbatch_size");
  constexpr std::string_view kPasses = "parallelism.pipeline_parallel_microbatches";
  const auto passes = options.count(kPasses, 1);
  if (!passes) return size;
  if (local % *passes != 0) {
    options.refuse(kPasses, fmt::format("a divisor of the local batch of {}", local));
    return size;
  }
  return static_cast<int>(local / *passes);
}

// Reads the batch. Without a pipeline, a pass takes the whole local batch.
void read_batch(Options& options, ScenarioDraft& draft) {
  PlanRequest& plan = draft.plan;
  const int local = options.degree("training.local_batch_size", 8);
  const auto global = options.count("training.global_batch_size", -1);
  const std::int64_t replicas = plan.data_parallel.value_or(1);
  const std::int64_t at_once = std::int64_t{local} * replicas;
  const int pass = read_pass(options, local);
  plan.micro_batch = plan.pipeline_parallel > 1 ? pass : local;
  const std::int64_t batch = global.value_or(-1) > 0 ? *global : at_once;
  draft.training["global_batch"] = batch;
  if (plan.pipeline_parallel > 1 && batch != at_once) {
    options.refuse("training.global_batch_size",
                   fmt::format("with a pipeline local_batch_size · {} replicas", replicas));
  }
}

}  // namespace

Expected<Imported> import_torchtitan(const ForeignFile& file, const ImportSettings& settings) {
  const auto tree = parse_toml(file);
  if (!tree) return tl::unexpected(tree.error());
  if (!tree->contains("training") && !tree->contains("parallelism")) {
    return file.error("found neither [training] nor [parallelism]; allowed: one of them at least");
  }
  Options options(file.name);
  options.set_tree(*tree, ".");
  ScenarioDraft draft{.name = file.stem};
  read_earlier_names(options, draft);
  const std::string description = options.text("job.description");
  if (!description.empty() && description.find_first_of("\r\n") == std::string::npos) {
    draft.name = description;
  }
  read_model(options, settings, draft);
  if (options.error()) return tl::unexpected(*options.error());
  read_torchtitan_training(options, draft);
  const auto model = network(!settings.model.empty()   ? settings.model
                             : draft.model.is_string() ? draft.model.get<std::string>()
                                                       : std::string(kDefaultModel));
  if (!model) return tl::unexpected(model.error());
  PlanRequest& plan = draft.plan;
  plan.tensor_parallel = options.degree("parallelism.tensor_parallel_degree");
  const bool async = options.flag("parallelism.enable_async_tensor_parallel");
  if (plan.tensor_parallel > 1) {
    plan.sequence_parallel = true;
    plan.overlap.tensor_parallel = async;
  }
  note_precision(options, model->experts > 0, draft);
  read_experts(options, model->experts > 0, draft);
  read_torchtitan_context(options, plan);
  read_pipeline(options, *tree, model->layers, plan);
  const auto devices = planned_devices(draft, settings);
  if (!devices) return tl::unexpected(devices.error());
  read_sharding(options, *devices, plan);
  read_recompute(options, model->layers, draft);
  read_batch(options, draft);
  if (options.error()) return tl::unexpected(*options.error());
  if (auto done = note_unread(options, kChangingTorchtitanKeys, kNeutralTorchtitanKeys, draft);
      !done) {
    return tl::unexpected(done.error());
  }
  return finish_draft(std::move(draft), settings, file.name);
}

}  // namespace trainyard
