#include "scenarios/interchange/accelerate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/interchange/documents/yaml.h"
#include "scenarios/interchange/plan_refusals.h"

namespace trainyard {
namespace {

constexpr auto kChangingAccelerateKeys = std::to_array<std::string_view>({"megatron_lm_"});
constexpr auto kNeutralAccelerateKeys = std::to_array<std::string_view>({"commands",
                                                                         "command_file",
                                                                         "compute_environment",
                                                                         "debug",
                                                                         "deepspeed_",
                                                                         "downcast_bf16",
                                                                         "dynamo_",
                                                                         "enable_cpu",
                                                                         "fp8_",
                                                                         "fsdp_auto_wrap",
                                                                         "fsdp_backward",
                                                                         "fsdp_cpu_ram",
                                                                         "fsdp_forward",
                                                                         "fsdp_min_num",
                                                                         "fsdp_state_dict",
                                                                         "fsdp_sync",
                                                                         "fsdp_transformer",
                                                                         "fsdp_use_orig",
                                                                         "gpu_ids",
                                                                         "machine_rank",
                                                                         "main_process",
                                                                         "main_training",
                                                                         "mpirun",
                                                                         "rdzv",
                                                                         "same_network",
                                                                         "tpu_",
                                                                         "use_cpu",
                                                                         "num_cpu_threads",
                                                                         "env",
                                                                         "tee",
                                                                         "monitor",
                                                                         "max_restarts",
                                                                         "log_dir",
                                                                         "mixed_precision"});

// Beginnings of Accelerate's keys; each of its files has a key with one of them.
constexpr auto kOwnBeginnings = std::to_array<std::string_view>(
    {"compute_environment", "distributed_type", "mixed_precision", "num_machines", "num_processes",
     "fsdp_", "parallelism_config"});

bool is_of_accelerate(const Json& tree) {
  for (const auto& [key, value] : tree.items()) {
    const bool own = std::ranges::any_of(kOwnBeginnings, [&name = key](std::string_view beginning) {
      return name.starts_with(beginning);
    });
    if (own) return true;
  }
  return false;
}

// The ZeRO stage of FSDP 1's strategy or of FSDP 2's setting. A hybrid strategy sets the sharding
// group.
int read_strategy(Options& options, const ImportSettings& settings, ScenarioDraft& draft) {
  constexpr auto kStrategies =
      std::to_array<std::string_view>({"NO_SHARD", "NONE", "SHARD_GRAD_OP", "FULL_SHARD",
                                       "HYBRID_SHARD", "HYBRID_SHARD_ZERO2", "1", "2", "3", "4"});
  const int version = options.degree("fsdp_version");
  const std::string strategy = options.choice("fsdp_sharding_strategy", kStrategies, "FULL_SHARD");
  const auto reshard = options.text("fsdp_reshard_after_forward");
  if (version >= 2) return reshard == "false" ? 2 : 3;
  std::string name = strategy;
  if (reshard == "SHARD_GRAD_OP" || reshard == "NO_SHARD") name = reshard;
  const bool hybrid = name.starts_with("HYBRID") || name == "4";
  if (hybrid) {
    const auto of_node = devices_of_node(settings);
    if (!of_node) options.fail(of_node.error());
    draft.plan.sharding_group = of_node.value_or(1);
    draft.assumptions.push_back(fmt::format(
        "sharding_group {}: the devices of a node (HYBRID_SHARD)", *draft.plan.sharding_group));
  }
  if (name == "NO_SHARD" || name == "NONE" || name == "3") return 0;
  return name == "SHARD_GRAD_OP" || name == "2" || name == "HYBRID_SHARD_ZERO2" ? 2 : 3;
}

void read_parallelism(Options& options, PlanRequest& plan) {
  const int replicas = options.degree("parallelism_config_dp_replicate_size");
  const auto shards = options.count("parallelism_config_dp_shard_size", 1, 1'000'000);
  plan.tensor_parallel = options.degree("parallelism_config_tp_size");
  plan.context_parallel = options.degree("parallelism_config_cp_size");
  constexpr auto kRotate = std::to_array<std::string_view>({"allgather", "alltoall"});
  const bool gathers =
      options.choice("parallelism_config_cp_comm_strategy", kRotate, "allgather") == "allgather";
  if (plan.context_parallel > 1 && gathers) {
    plan.context_parallel_algorithm = ContextAlgorithm::all_gather;
  }
  if (plan.tensor_parallel > 1) plan.sequence_parallel = false;
  if (!shards) return;
  plan.data_parallel = static_cast<int>(product_up_to(1'000'000, {*shards, replicas}));
  if (replicas > 1) plan.sharding_group = ranks_of({*shards, plan.context_parallel});
}

std::string read_precision(Options& options) {
  constexpr auto kNames = std::to_array<std::string_view>({"no", "bf16", "fp16", "fp8", "false"});
  const std::string name = options.choice("mixed_precision", kNames, "no");
  return name == "no" || name == "false" ? "fp32" : name;
}

// Refuses options that are not priced, unless they are off. Of the engines for fp8 those that scale
// by tensors are priced.
void refuse_unpriced(Options& options) {
  constexpr auto kNoCompiler = std::to_array<std::string_view>({"NO", "no", "false"});
  constexpr auto kEngines = std::to_array<std::string_view>({"TE", "AO"});
  constexpr auto kOff = std::to_array<std::string_view>({"false"});
  constexpr auto kOne = std::to_array<std::string_view>({"1"});
  options.choice("dynamo_backend", kNoCompiler, "NO");
  options.choice("backend", kEngines, "TE");  // engine of fp8_config
  options.choice("ipex", kOff, "false");
  options.choice("tpu_use_cluster", kOff, "false");
  options.choice("parallelism_config_sp_size", kOne, "1");
}

void read_rest(Options& options, PlanRequest& plan) {
  if (options.flag("fsdp_activation_checkpointing")) plan.recompute.mode = RecomputeMode::full;
  if (!options.flag("fsdp_offload_params")) return;
  plan.offload.parameters = plan.offload.gradients = plan.offload.optimizer = OffloadTarget::host;
}

// Refuses everything but replicas, which is all that plain DDP has.
void check_ddp(const Plan& plan, Refusals& refusals) {
  const auto refuse_degree = [&refusals](const char* key, int degree) {
    if (degree > 1) {
      refusals.add(key, fmt::format("{}", degree), "1 without sharding, or zero_stage 2, 3");
    }
  };
  refuse_degree("/plan/tensor_parallel", plan.tensor_parallel);
  refuse_degree("/plan/context_parallel", plan.context_parallel);
  if (plan.recompute.mode == RecomputeMode::full) {
    refusals.add("/plan/recompute", "\"full\"", "none without sharding, or zero_stage 2, 3");
  }
  if (plan.offload.parameters != OffloadTarget::none) {
    refusals.add("/plan/offload", "the states", "none without sharding, or zero_stage 2, 3");
  }
  if (plan.sharding_group != plan.data_parallel * plan.context_parallel) {
    refusals.add("/plan/sharding_group", "one without ZeRO", "zero_stage 2 or 3");
  }
}

void check_accelerate(const Scenario& scenario, const Plan& plan, Refusals& refusals) {
  const Training& training = scenario.job.training;
  refuse_pipeline(plan, refusals);
  refuse_experts(plan, refusals);
  refuse_common(scenario, plan, refusals);
  refuse_capacity_and_passes(plan, refusals);
  refuse_names(refusals, "/training/precision", training.precision.name,
               {"bf16", "fp16", "fp32", "fp8"});
  if (plan.sequence_parallel) refusals.add("/plan/sequence_parallel", "true", "false");
  if (plan.zero_stage == 1) refusals.add("/plan/zero_stage", "1", "0, 2, 3");
  if (plan.zero_stage == 0) check_ddp(plan, refusals);
  if (plan.sharding_group % plan.context_parallel != 0) {
    refusals.add("/plan/sharding_group", fmt::format("{}", plan.sharding_group),
                 fmt::format("a multiple of context_parallel ({})", plan.context_parallel));
  }
  // parallelism_config.py: no tensor or context parallelism with replicas that are not sharded.
  const int model_ranks = plan.tensor_parallel * plan.context_parallel;
  const int shards = plan.sharding_group / plan.context_parallel;
  if (plan.zero_stage > 0 && model_ranks > 1 && shards == 1 && plan.data_parallel > 1) {
    refusals.add("/plan/sharding_group",
                 fmt::format("{} with tensor_parallel {} and context_parallel {}",
                             plan.sharding_group, plan.tensor_parallel, plan.context_parallel),
                 "a greater one with them");
  }
  if (plan.context_parallel > 1 && plan.context_parallel_algorithm == ContextAlgorithm::ulysses) {
    refusals.add("/plan/context_parallel_algorithm", "\"ulysses\"", "ring, all-gather");
  }
  const bool partly =
      plan.recompute.mode == RecomputeMode::selective || plan.recompute.full_layers > 0;
  if (partly) refusals.add("/plan/recompute", "a part of the layers", "none, full");
  const Offload& offload = plan.offload;
  const bool together =
      offload.parameters == offload.gradients && offload.gradients == offload.optimizer &&
      offload.optimizer != OffloadTarget::nvme && offload.activations == OffloadTarget::none;
  if (!together) {
    refusals.add("/plan/offload", "a part", "parameters, gradients and optimizer together to host");
  }
}

std::string_view accelerate_precision(const Scenario& scenario) {
  const std::string_view precision = scenario.job.training.precision.name;
  return precision == "fp32" ? "no" : precision;
}

int machines_of(const Scenario& scenario, const Plan& plan) {
  const int per_node = scenario.job.cluster.devices_per_node;
  return (plan.devices() + per_node - 1) / per_node;
}

// A single process is not a distributed run.
std::string ddp_yaml(const Scenario& scenario, const Plan& plan) {
  return fmt::format(
      R"(compute_environment: LOCAL_MACHINE
distributed_type: '{}'
mixed_precision: '{}'
num_machines: {}
num_processes: {}
)",
      plan.devices() > 1 ? "MULTI_GPU" : "NO", accelerate_precision(scenario),
      machines_of(scenario, plan), plan.devices());
}

// Every value is a number, a flag or one of our own names, so no text of a user needs quotes.
std::string yaml_of(const Scenario& scenario, const Plan& plan) {
  if (plan.zero_stage == 0) return ddp_yaml(scenario, plan);
  const int shards = plan.sharding_group / plan.context_parallel;
  return fmt::format(
      R"(compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: {}
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_activation_checkpointing: {}
  fsdp_offload_params: {}
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_cpu_ram_efficient_loading: true
mixed_precision: '{}'
num_machines: {}
num_processes: {}
parallelism_config:
  parallelism_config_dp_replicate_size: {}
  parallelism_config_dp_shard_size: {}
  parallelism_config_tp_size: {}
  parallelism_config_cp_size: {}
  parallelism_config_cp_comm_strategy: {}
)",
      plan.zero_stage == 3, plan.recompute.mode == RecomputeMode::full,
      plan.offload.parameters == OffloadTarget::host, accelerate_precision(scenario),
      machines_of(scenario, plan), plan.devices(), plan.data_parallel / shards, shards,
      plan.tensor_parallel, plan.context_parallel,
      plan.context_parallel_algorithm == ContextAlgorithm::all_gather ? "allgather" : "alltoall");
}

}  // namespace

Expected<Imported> import_fsdp(const ForeignFile& file, const ImportSettings& settings) {
  const auto tree = parse_yaml(file);
  if (!tree) return tl::unexpected(tree.error());
  if (!tree->is_object()) {
    return file.error(
        fmt::format("found {}; allowed: a configuration of Accelerate", shown(*tree)));
  }
  if (!is_of_accelerate(*tree)) {
    return file.error(
        "found no key of Accelerate's; allowed: compute_environment, distributed_type, "
        "mixed_precision, num_machines, num_processes, fsdp_config or parallelism_config");
  }
  Options options(file.name);
  options.set_tree(*tree, "");
  ScenarioDraft draft{.name = file.stem, .training = Json::object()};
  PlanRequest& plan = draft.plan;
  constexpr auto kTypes = std::to_array<std::string_view>({"FSDP", "MULTI_GPU", "NO"});
  const std::string type = options.choice("distributed_type", kTypes, "FSDP");
  read_parallelism(options, plan);
  const int stage = read_strategy(options, settings, draft);
  plan.zero_stage = type == "FSDP" ? stage : 0;
  read_rest(options, plan);
  refuse_unpriced(options);
  draft.training["precision"] = read_precision(options);
  draft.training["optimizer"] = "adamw";
  draft.training["stack"] = "fsdp";
  draft.devices = options.degree("num_processes", 0);
  const auto machines = static_cast<int>(options.count("num_machines", 1, 1'000'000).value_or(1));
  if (draft.devices % machines == 0) draft.devices_per_node = draft.devices / machines;
  draft.assumptions.emplace_back("micro-batch 1, one accumulated, adamw: the file has no batch");
  if (options.error()) return tl::unexpected(*options.error());
  if (auto done = note_unread(options, kChangingAccelerateKeys, kNeutralAccelerateKeys, draft);
      !done) {
    return tl::unexpected(done.error());
  }
  return finish_draft(std::move(draft), settings, file.name);
}

Expected<Exported> export_fsdp(const Scenario& scenario, const Plan& plan) {
  Refusals refusals("Accelerate's YAML");
  check_accelerate(scenario, plan, refusals);
  if (refusals.error()) return tl::unexpected(*refusals.error());
  // Accelerate's mesh, outermost first: dp_replicate, dp_shard, cp, tp.
  const auto devices = rank_devices(plan, scenario.job.model, "tp-cp-ep-dp-pp");
  if (!devices) return tl::unexpected(devices.error());
  constexpr const char* kAccelerateLaunch =
      "exec accelerate launch --config_file accelerate.yaml --machine_rank \"$RANK\" "
      "--num_machines \"$WORLD_SIZE\" --num_processes \"$WORLD_SIZE\" "
      "--gpu_ids \"$LOCAL_RANK\" --main_process_ip \"$MASTER_ADDR\" "
      "--main_process_port \"$MASTER_PORT\" \"$@\"";
  const Launch launch{
      .framework = "Accelerate 1.11",
      .program = {"bash", "-c", kAccelerateLaunch, "accelerate", "train.py",
                  "--per_device_train_batch_size", fmt::format("{}", plan.micro_batch),
                  "--gradient_accumulation_steps", fmt::format("{}", plan.microbatches)},
      .extra = " \"$@\""};
  return Exported{
      {{"accelerate.yaml", yaml_of(scenario, plan)},
       hostfile(*devices, scenario.job.cluster.devices_per_node),
       sbatch_script(scenario, plan, launch)},
      {fmt::format("micro-batch {} and {} accumulations: arguments of train.py in launch.sbatch",
                   plan.micro_batch, plan.microbatches),
       fmt::format("optimizer {}, the network, its data and the sequence length: train.py",
                   scenario.job.training.optimizer.name)}};
}

}  // namespace trainyard
