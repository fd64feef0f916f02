#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/interchange/toml_document.h"
#include "scenarios/interchange/torchtitan.h"
#include "scenarios/interchange/torchtitan_networks.h"

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
                                     "parallelism.module",
                                     "parallelism.fsdp"});

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
  for (const std::string& converter : options.words("model.converters")) {
    if (converter == "float8" || converter.starts_with("quantize.linear.float8")) precision = "fp8";
    if (converter == "mx" || converter.starts_with("quantize.linear.mx")) precision = "mxfp8";
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

// Without expert parallelism the experts are cut as everything else is.
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

// Chunks from the layers that begin them: "layers.4".
std::vector<int> layers_of_points(Options& options, int layers) {
  constexpr std::string_view kName = "parallelism.pipeline_parallel_split_points";
  std::vector<int> sizes;
  int before = 0;
  for (const std::string& point : options.words(kName)) {
    const std::string_view prefix = "layers.";
    Options number("");
    if (point.starts_with(prefix)) number.set("n", {{point.substr(prefix.size())}, ""});
    const auto begin = number.count("n", before + 1, layers - 1);
    if (!begin) {
      options.refuse(kName, fmt::format("layers.1 to layers.{}, rising", layers - 1));
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
  int chunks = 1;  // unless the points say another number
};
constexpr std::array kSchedules = {NamedSchedule{"1F1B", "1f1b"}, NamedSchedule{"GPipe", "gpipe"},
                                   NamedSchedule{"Interleaved1F1B", "interleaved-1f1b", 2},
                                   NamedSchedule{"ZBVZeroBubble", "zb-v", 2}};

void read_pipeline(Options& options, int layers, PlanRequest& plan) {
  plan.pipeline_parallel = options.degree("parallelism.pipeline_parallel_degree");
  const std::string name = options.has("parallelism.pipeline_parallel_schedule")
                               ? options.text("parallelism.pipeline_parallel_schedule")
                               : "1F1B";
  const auto* const schedule = std::ranges::find(kSchedules, name, &NamedSchedule::theirs);
  if (schedule == kSchedules.end()) {
    return options.refuse("parallelism.pipeline_parallel_schedule",
                          "1F1B, GPipe, Interleaved1F1B, ZBVZeroBubble");
  }
  const auto each = options.count("parallelism.pipeline_parallel_layers_per_stage", 1);
  const std::vector<int> points = layers_of_points(options, layers);
  if (plan.pipeline_parallel == 1) return;
  plan.schedule = schedule->ours;
  if (schedule->chunks > 1) plan.virtual_stages = schedule->chunks;
  std::size_t chunks = points.size();
  if (each && chunks == 0) chunks = static_cast<std::size_t>((layers + *each - 1) / *each);
  if (chunks == 0) return;
  if (chunks % static_cast<std::size_t>(plan.pipeline_parallel) != 0) {
    return options.refuse(points.empty() ? "parallelism.pipeline_parallel_layers_per_stage"
                                         : "parallelism.pipeline_parallel_split_points",
                          fmt::format("chunks in a multiple of {}", plan.pipeline_parallel));
  }
  plan.virtual_stages = static_cast<int>(chunks) / plan.pipeline_parallel;
  const bool even = std::ranges::all_of(points, [&](int size) { return size == points.front(); });
  if (!even) plan.layers_per_stage = points;
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

// Without a pipeline a pass takes the local batch; with one, the local batch is cut into passes.
void read_batch(Options& options, ScenarioDraft& draft) {
  PlanRequest& plan = draft.plan;
  const int local = options.degree("training.local_batch_size", 8);
  const auto global = options.count("training.global_batch_size", -1);
  const std::int64_t replicas = plan.data_parallel.value_or(1);
  const std::int64_t at_once = std::int64_t{local} * replicas;
  const int pass = options.degree("parallelism.pipeline_parallel_microbatch_size");
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
  read_experts(options, model->experts > 0, draft);
  read_torchtitan_context(options, plan);
  read_pipeline(options, model->layers, plan);
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
