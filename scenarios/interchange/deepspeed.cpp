#include "scenarios/interchange/deepspeed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "model/schedule/schedule.h"
#include "scenarios/interchange/plan_refusals.h"

namespace trainyard {
namespace {

constexpr std::int64_t kTrainerMicroBatch = 8;  // per_device_train_batch_size of TrainingArguments

// Keys that change time or memory in a way that is not priced.
constexpr auto kChangingDeepspeedKeys =
    std::to_array<std::string_view>({"zero_optimization.zero_hpz_partition_size",
                                     "zero_optimization.zero_quantized_weights",
                                     "zero_optimization.zero_quantized_gradients",
                                     "zero_optimization.zero_quantized_nontrainable_weights",
                                     "zero_optimization.offload_optimizer.ratio",
                                     "activation_checkpointing.partition_activations",
                                     "activation_checkpointing.cpu_checkpointing",
                                     "torch_autocast.enabled",
                                     "amp.enabled",
                                     "progressive_layer_drop.enabled",
                                     "sparse_attention.mode",
                                     "data_efficiency.enabled",
                                     "curriculum_learning.enabled",
                                     "elasticity.enabled",
                                     "autotuning.enabled",
                                     "communication_data_type",
                                     "data_types.grad_accum_dtype",
                                     "bf16.bf16_master_weights_and_grads",
                                     "bf16.bf16_optimizer_states",
                                     "fp16.fp16_master_weights_and_grads",
                                     "pipeline.stages",
                                     "compile.deepcompile",
                                     "moe.ep_size"});
constexpr auto kChangingDeepspeedSections =
    std::to_array<std::string_view>({"compression_training."});
constexpr auto kNeutralDeepspeedKeys = std::to_array<std::string_view>({"activation_checkpointing.",
                                                                        "aio.",
                                                                        "amp.",
                                                                        "autotuning.",
                                                                        "bf16.",
                                                                        "checkpoint",
                                                                        "comms_logger",
                                                                        "csv_monitor",
                                                                        "curriculum",
                                                                        "data_",
                                                                        "disable_allgather",
                                                                        "dump_state",
                                                                        "elasticity.",
                                                                        "flops_profiler",
                                                                        "fp16.",
                                                                        "fp32_allreduce",
                                                                        "gradient_clipping",
                                                                        "gradient_predivide",
                                                                        "hybrid_engine",
                                                                        "memory_breakdown",
                                                                        "optimizer.",
                                                                        "pipeline.",
                                                                        "prescale_gradients",
                                                                        "scheduler.",
                                                                        "seed",
                                                                        "sparse_gradients",
                                                                        "steps_per_print",
                                                                        "tensor_parallel.",
                                                                        "tensorboard",
                                                                        "timers",
                                                                        "torch_autocast.",
                                                                        "use_node_local",
                                                                        "wall_clock",
                                                                        "wandb",
                                                                        "zero_allow",
                                                                        "zero_force",
                                                                        "zero_optimization.",
                                                                        "hf_",
                                                                        "monitor_config",
                                                                        "dataloader_drop",
                                                                        "nebula"});

// Keys that identify a file of DeepSpeed: each configuration has one of them.
constexpr auto kOwnKeys = std::to_array<const char*>(
    {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
     "zero_optimization", "optimizer", "activation_checkpointing", "tensor_parallel",
     "sequence_parallel_size", "compression_training"});

// Refuses keys that change time or memory, unless they are off: false, or a ratio or group of 1.
void refuse_what_is_not_modelled(Options& options) {
  constexpr auto kOff = std::to_array<std::string_view>({"", "false", "1", "1.0", "null", "auto"});
  for (const std::string_view name : kChangingDeepspeedKeys) {
    const std::string text = options.text(name);
    if (std::ranges::find(kOff, text) != kOff.end()) continue;
    options.fail({options.file(),
                  fmt::format("found {} {}, which changes time or memory in a way that is not "
                              "modelled; allowed: a configuration without it",
                              name, shown(std::string_view(text)))});
  }
}

// The value of a key of the batch; none if it is absent or "auto".
std::optional<std::int64_t> batch_key(Options& options, std::string_view name) {
  return options.text(name) == "auto" ? std::nullopt : options.count(name, 1);
}

bool enabled(Options& options, std::string_view section, ScenarioDraft& draft) {
  const std::string name = fmt::format("{}.enabled", section);
  if (options.text(name) != "auto") return options.flag(name);
  const bool bf16 = section == "bf16";
  draft.assumptions.push_back(
      fmt::format("{} \"auto\": {}", name, bf16 ? "true, as most recipes train" : "false"));
  return bf16;
}

std::string read_deepspeed_precision(Options& options, ScenarioDraft& draft) {
  const bool fp16 = enabled(options, "fp16", draft);
  if (fp16) return "fp16";
  return enabled(options, "bf16", draft) ? "bf16" : "fp32";
}

std::string read_optimizer(Options& options, ScenarioDraft& draft) {
  std::string name = options.text("optimizer.type");
  if (name.empty() || name == "auto") {
    draft.assumptions.emplace_back("optimizer adamw: the file names none");
    return "adamw";
  }
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  constexpr auto kKnown = std::to_array<std::string_view>({"adam", "adamw", "lion", "muon", "sgd"});
  if (std::ranges::find(kKnown, name) != kKnown.end()) return name;
  options.refuse("optimizer.type", "Adam, AdamW, Lion, Muon, SGD");
  return "adam";
}

OffloadTarget read_offload_target(Options& options, std::string_view section, bool old_flag) {
  constexpr auto kDevices = std::to_array<std::string_view>({"none", "cpu", "nvme"});
  const std::string device = options.choice(fmt::format("zero_optimization.{}.device", section),
                                            kDevices, old_flag ? "cpu" : "none");
  return device == "cpu"    ? OffloadTarget::host
         : device == "nvme" ? OffloadTarget::nvme
                            : OffloadTarget::none;
}

// With the optimizer on the host, ZeRO 2 and 3 move gradients there as they are reduced.
void read_zero(Options& options, PlanRequest& plan) {
  plan.zero_stage = static_cast<int>(options.count("zero_optimization.stage", 0, 3).value_or(0));
  plan.overlap.data_parallel =
      options.said("zero_optimization.overlap_comm").value_or(*plan.zero_stage == 3);
  const bool old = options.flag("zero_optimization.cpu_offload");
  plan.offload.optimizer = read_offload_target(options, "offload_optimizer", old);
  plan.offload.parameters = read_offload_target(
      options, "offload_param", options.flag("zero_optimization.cpu_offload_params"));
  const bool gradients = plan.offload.optimizer != OffloadTarget::none && *plan.zero_stage >= 2;
  if (gradients) plan.offload.gradients = OffloadTarget::host;
  if (const auto group = options.count("zero_optimization.mics_shard_size", -1);
      group && *group > 0) {
    plan.sharding_group = static_cast<int>(*group);
    if (*plan.zero_stage != 3) options.refuse("zero_optimization.mics_shard_size", "with stage 3");
  }
}

void read_recompute(Options& options, PlanRequest& plan, ScenarioDraft& draft) {
  if (!options.count("activation_checkpointing.number_checkpoints", 1)) return;
  plan.recompute.mode = RecomputeMode::full;
  draft.assumptions.emplace_back(
      "recompute full: activation_checkpointing has number_checkpoints; the model's code decides");
}

// The devices that follow if all three sizes of a batch are given.
void read_devices(const std::optional<std::int64_t>& batch, std::int64_t of_replica,
                  ScenarioDraft& draft) {
  if (!batch || of_replica == 0 || *batch % of_replica != 0) return;
  const int devices = ranks_of({*batch / of_replica, model_ranks_of(draft.plan)});
  if (devices <= 16'777'216) draft.devices = devices;
}

void read_batch(Options& options, const ImportSettings& settings, ScenarioDraft& draft) {
  PlanRequest& plan = draft.plan;
  const auto batch = batch_key(options, "train_batch_size");
  auto micro = batch_key(options, "train_micro_batch_size_per_gpu");
  auto accumulated = batch_key(options, "gradient_accumulation_steps");
  const int model_ranks = model_ranks_of(plan);
  read_devices(batch, micro.value_or(0) * accumulated.value_or(0), draft);
  if (batch && accumulated && !micro) {
    const auto devices = planned_devices(draft, settings);
    if (!devices) return options.fail(devices.error());
    micro =
        std::max<std::int64_t>(1, *batch / (*accumulated * std::max(1, *devices / model_ranks)));
    draft.assumptions.push_back(
        fmt::format("micro-batch {}: what {} devices leave", *micro, *devices));
  }
  if (!micro) {
    micro = batch ? 1 : kTrainerMicroBatch;
    draft.assumptions.push_back(
        fmt::format("train_micro_batch_size_per_gpu {}: {}", *micro,
                    batch ? "the file leaves it open" : "the Trainer's default for \"auto\""));
  }
  if (!accumulated && !batch) {
    accumulated = 1;
    draft.assumptions.emplace_back(
        "gradient_accumulation_steps 1: the Trainer's default for \"auto\"");
  }
  plan.micro_batch = static_cast<int>(std::min<std::int64_t>(*micro, 1'000'000));
  draft.accumulation = static_cast<int>(std::min<std::int64_t>(accumulated.value_or(1), 1'000'000));
  if (batch) draft.training["global_batch"] = *batch;
}

Json offload_section(OffloadTarget target) {
  Json section = {{"device", target == OffloadTarget::host ? "cpu" : "nvme"}, {"pin_memory", true}};
  if (target == OffloadTarget::nvme) section["nvme_path"] = "/local_nvme";
  return section;
}

Json zero_section(const Plan& plan) {
  Json zero = {{"stage", plan.zero_stage},
               {"overlap_comm", plan.overlap.data_parallel},
               {"contiguous_gradients", true}};
  if (plan.sharding_group != plan.data_parallel * plan.context_parallel) {
    zero["mics_shard_size"] = plan.sharding_group;
  }
  if (plan.offload.optimizer != OffloadTarget::none) {
    zero["offload_optimizer"] = offload_section(plan.offload.optimizer);
  }
  if (plan.offload.parameters != OffloadTarget::none) {
    zero["offload_param"] = offload_section(plan.offload.parameters);
  }
  return zero;
}

std::string type_of(std::string_view optimizer) {
  if (optimizer == "adamw") return "AdamW";
  if (optimizer == "sgd") return "SGD";
  std::string name(optimizer);
  name.front() = static_cast<char>(name.front() - 'a' + 'A');
  return name;
}

Json config_of(const Scenario& scenario, const Plan& plan) {
  const Training& training = scenario.job.training;
  Json config = {
      {"train_micro_batch_size_per_gpu", plan.micro_batch},
      {"gradient_accumulation_steps", plan.microbatches},
      {"gradient_clipping", 1.0},
      {"zero_optimization", zero_section(plan)},
      {"optimizer", {{"type", type_of(training.optimizer.name)}, {"params", {{"lr", 1e-4}}}}},
      {"bf16", {{"enabled", training.precision.name == "bf16"}}},
      {"fp16", {{"enabled", training.precision.name == "fp16"}}}};
  if (plan.tensor_parallel > 1) {
    config["tensor_parallel"] = {{"autotp_size", plan.tensor_parallel}};
  } else {
    // DeepSpeed compares it with the micro-batches of all ranks, also of tensor-parallel ones.
    config["train_batch_size"] = training.global_batch;
  }
  if (plan.context_parallel > 1) config["sequence_parallel_size"] = plan.context_parallel;
  if (plan.recompute.mode == RecomputeMode::full) {
    config["activation_checkpointing"] = {{"partition_activations", false},
                                          {"number_checkpoints", scenario.job.model.layers}};
  }
  return config;
}

void check_deepspeed(const Scenario& scenario, const Plan& plan, Refusals& refusals) {
  const Training& training = scenario.job.training;
  refuse_pipeline(plan, refusals);
  refuse_experts(plan, refusals);
  refuse_common(scenario, plan, refusals);
  refuse_capacity_and_passes(plan, refusals);
  refuse_names(refusals, "/training/precision", training.precision.name, {"bf16", "fp16", "fp32"});
  refuse_names(refusals, "/training/optimizer", training.optimizer.name,
               {"adam", "adamw", "lion", "muon", "sgd"});
  if (plan.sequence_parallel) refusals.add("/plan/sequence_parallel", "true", "false");
  if (plan.context_parallel > 1 && plan.context_parallel_algorithm != ContextAlgorithm::ulysses) {
    refusals.add("/plan/context_parallel_algorithm", "another than ulysses", "ulysses");
  }
  // runtime/engine.py: "the compatibility between 'autotp' and 'zero_stage = 3' has not been
  // validated".
  if (plan.tensor_parallel > 1 && plan.zero_stage == 3) {
    refusals.add("/plan/zero_stage", fmt::format("3 with tensor_parallel {}", plan.tensor_parallel),
                 "0, 1, 2 with tensor parallelism");
  }
  const bool grouped = plan.sharding_group != plan.data_parallel * plan.context_parallel;
  if (grouped && plan.zero_stage != 3) {
    refusals.add("/plan/sharding_group",
                 fmt::format("{} with zero_stage {}", plan.sharding_group, plan.zero_stage),
                 "zero_stage 3 (MiCS)");
  }
  const bool follows = plan.offload.optimizer != OffloadTarget::none && plan.zero_stage >= 2;
  if ((plan.offload.gradients == OffloadTarget::host) != follows ||
      plan.offload.gradients == OffloadTarget::nvme) {
    refusals.add("/plan/offload/gradients", "another place than the optimizer's",
                 "host where the optimizer is not on the device and zero_stage is 2 or 3");
  }
  if (plan.offload.parameters != OffloadTarget::none && plan.zero_stage != 3) {
    refusals.add("/plan/offload/parameters", fmt::format("with zero_stage {}", plan.zero_stage),
                 "zero_stage 3");
  }
  if (plan.offload.activations != OffloadTarget::none) {
    refusals.add("/plan/offload/activations", "host or nvme", "none");
  }
  const bool partly =
      plan.recompute.mode == RecomputeMode::selective || plan.recompute.full_layers > 0;
  if (partly) refusals.add("/plan/recompute", "a part of the layers", "none, full");
}

}  // namespace

Expected<Imported> import_deepspeed(const ForeignFile& file, const ImportSettings& settings) {
  const auto tree = parse_json(file.text);
  if (!tree) {
    return failure(fmt::format("{}: {}", file.name, tree.error().where), tree.error().message);
  }
  if (!tree->is_object()) {
    return file.error(fmt::format("found {}; allowed: a DeepSpeed configuration", shown(*tree)));
  }
  if (std::ranges::none_of(kOwnKeys, [&](const char* key) { return tree->contains(key); })) {
    return file.error(fmt::format("found no key of DeepSpeed's; allowed: one of {} at least",
                                  fmt::join(kOwnKeys, ", ")));
  }
  Options options(file.name);
  options.set_tree(*tree, ".");
  ScenarioDraft draft{.name = file.stem, .training = Json::object()};
  draft.training["precision"] = read_deepspeed_precision(options, draft);
  draft.training["optimizer"] = read_optimizer(options, draft);
  draft.training["stack"] = "deepspeed";
  PlanRequest& plan = draft.plan;
  plan.tensor_parallel = options.degree("tensor_parallel.autotp_size");
  plan.context_parallel = options.degree("sequence_parallel_size");
  if (plan.context_parallel > 1) plan.context_parallel_algorithm = ContextAlgorithm::ulysses;
  read_zero(options, plan);
  read_recompute(options, plan, draft);
  read_batch(options, settings, draft);
  refuse_what_is_not_modelled(options);
  if (options.error()) return tl::unexpected(*options.error());
  if (auto done = note_unread(options, kChangingDeepspeedSections, kNeutralDeepspeedKeys, draft);
      !done)
    return tl::unexpected(done.error());
  return finish_draft(std::move(draft), settings, file.name);
}

Expected<Exported> export_deepspeed(const Scenario& scenario, const Plan& plan) {
  Refusals refusals("DeepSpeed's JSON");
  check_deepspeed(scenario, plan, refusals);
  if (refusals.error()) return tl::unexpected(*refusals.error());
  // DeepSpeed lays out tensor parallel ranks next to each other, then sequence, then data.
  const auto devices = rank_devices(plan, scenario.job.model, "tp-cp-ep-dp-pp");
  if (!devices) return tl::unexpected(devices.error());
  const Launch launch{.framework = "DeepSpeed 0.17",
                      .program = {"python", "train.py", "--deepspeed", "deepspeed.json"},
                      .extra = " \"$@\""};
  return Exported{{{"deepspeed.json", text_of(config_of(scenario, plan))},
                   hostfile(*devices, scenario.job.cluster.devices_per_node),
                   sbatch_script(scenario, plan, launch)},
                  {"the network, its data and the sequence length: train.py and the arguments of "
                   "launch.sbatch"}};
}

}  // namespace trainyard
