#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "model/schedule/schedule.h"
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/interchange/documents/toml.h"
#include "scenarios/interchange/plan_refusals.h"
#include "scenarios/interchange/torchtitan/networks.h"
#include "scenarios/interchange/torchtitan/torchtitan.h"

namespace trainyard {
namespace {

Json shape_of(Transformer model) {
  model.name.clear();
  return model_section().write(model);
}

const TorchtitanNetwork* network_of(const Transformer& model) {
  const Document asker{"the catalog", std::filesystem::current_path() / "-", nullptr};
  const Json wanted = shape_of(model);
  for (const TorchtitanNetwork& known : kTorchtitanNetworks) {
    Transformer candidate;
    const auto read =
        read_reference(model_section(), Json(std::string(known.model)), candidate, {&asker, ""});
    if (read && shape_of(candidate) == wanted) return &known;
  }
  return nullptr;
}

bool offloads(const Offload& offload, OffloadTarget target) {
  return offload.parameters == target && offload.gradients == target && offload.optimizer == target;
}

std::vector<int> chunks_of(const Plan& plan, int layers) {
  const LayersOfChunks of_chunks(plan, layers);
  const int count = plan.pipeline_parallel * plan.virtual_stages;
  std::vector<int> chunks;
  chunks.reserve(static_cast<std::size_t>(count));
  for (int chunk = 0; chunk < count; ++chunk) {
    chunks.push_back(of_chunks[chunk]);
  }
  return chunks;
}

void check_pipeline(const Plan& plan, int layers, Refusals& refusals) {
  if (plan.pipeline_parallel == 1 || plan.passes) return;
  refuse_names(refusals, "/plan/schedule", plan.schedule->name,
               {"1f1b", "gpipe", "interleaved-1f1b", "zb-v"});
  // The first and last chunk have embedding and head.
  const std::vector<int> chunks = chunks_of(plan, layers);
  if (std::find(chunks.begin() + 1, chunks.end() - 1, 0) != chunks.end() - 1) {
    refusals.add("/plan/layers_per_stage", "a chunk without layers", "one layer or more");
  }
}

void check_sharding(const Plan& plan, Refusals& refusals) {
  const int ranks = plan.data_parallel * plan.context_parallel;
  if (plan.zero_stage == 1) refusals.add("/plan/zero_stage", "1", "0, 2, 3");
  if (plan.zero_stage == 0 && plan.context_parallel > 1) {
    refusals.add("/plan/zero_stage",
                 fmt::format("0 with context_parallel {}", plan.context_parallel), "2, 3 with it");
  }
  // models/llama3/infra/parallelize.py: "DDP has not supported > 1D parallelism".
  const int model_ranks = plan.tensor_parallel * plan.pipeline_parallel;
  if (plan.zero_stage == 0 && plan.data_parallel > 1 && model_ranks > 1) {
    refusals.add("/plan/zero_stage",
                 fmt::format("0 with tensor_parallel {} and pipeline_parallel {}",
                             plan.tensor_parallel, plan.pipeline_parallel),
                 "2, 3 with more than data parallelism");
  }
  const bool too_few = plan.zero_stage > 0 && ranks > 1 && plan.sharding_group == 1;
  if (plan.zero_stage > 0 && (plan.sharding_group % plan.context_parallel != 0 || too_few)) {
    refusals.add("/plan/sharding_group", fmt::format("{}", plan.sharding_group),
                 fmt::format("a multiple of context_parallel ({}) above 1", plan.context_parallel));
  }
  if (plan.zero_stage > 0 && ranks == 1) {
    refusals.add("/plan/zero_stage", fmt::format("{} on one rank", plan.zero_stage), "0 on one");
  }
  if (plan.zero_stage == 0 && plan.sharding_group != ranks) {
    refusals.add("/plan/sharding_group", "one without ZeRO", "zero_stage 2 or 3");
  }
}

// torchtitan/distributed/parallel_dims.py: experts are spread over the ranks that shard and, with
// expert_tensor_parallel 1, over the tensor-parallel ranks too; their group consists of whole
// context groups.
void check_experts(const Plan& plan, bool experts, Refusals& refusals) {
  if (!experts) return;
  const bool cut = plan.expert_tensor_parallel == plan.tensor_parallel;
  if (!cut && (plan.expert_parallel == 1 || plan.expert_tensor_parallel != 1)) {
    refusals.add("/plan/expert_tensor_parallel", fmt::format("{}", plan.expert_tensor_parallel),
                 fmt::format("tensor_parallel ({}){}", plan.tensor_parallel,
                             plan.expert_parallel == 1 ? "" : " or 1"));
  }
  if (plan.expert_parallel == 1) return;
  const int ranks = plan.context_parallel * (cut ? 1 : plan.tensor_parallel);
  const int shards = plan.zero_stage > 0 ? plan.sharding_group : plan.context_parallel;
  const int most = shards * (cut ? 1 : plan.tensor_parallel);
  if (plan.expert_parallel % ranks != 0 || most % plan.expert_parallel != 0) {
    refusals.add(
        "/plan/expert_parallel", fmt::format("{}", plan.expert_parallel),
        fmt::format("a multiple of {} that divides the {} ranks of the sharding", ranks, most));
  }
}

bool compiles(const Training& training) { return training.stack.name != "torchtitan-eager"; }

// Checks what torchtitan requires at its start for 8 bits and for exchanges of tensor parallelism
// beside GEMMs: distributed/tensor_parallel.py and components/quantization/.
void check_compiled(const Scenario& scenario, const Plan& plan, Refusals& refusals) {
  const Training& training = scenario.job.training;
  const std::string_view precision = training.precision.name;
  if (plan.tensor_parallel > 1 && plan.overlap.tensor_parallel && !compiles(training)) {
    refusals.add("/plan/overlap/tensor_parallel", "true with the stack torchtitan-eager",
                 "false, or the stack torchtitan");
  }
  if (precision == "mxfp8" && plan.tensor_parallel > 1 && compiles(training)) {
    refusals.add("/training/precision",
                 fmt::format("\"mxfp8\" with tensor_parallel {}", plan.tensor_parallel),
                 "bf16, fp32, fp8, or the stack torchtitan-eager");
  }
  const bool alone = plan.pipeline_parallel == 1 && plan.context_parallel == 1;
  if (precision == "fp8" && scenario.job.model.experts > 0 && !alone) {
    refusals.add("/training/precision",
                 "\"fp8\" of experts with pipeline_parallel or context_parallel",
                 "bf16, fp32, mxfp8 with them");
  }
}

void check_torchtitan(const Scenario& scenario, const Plan& plan, Refusals& refusals) {
  const Training& training = scenario.job.training;
  refuse_common(scenario, plan, refusals);
  refuse_capacity_and_passes(plan, refusals);
  refuse_names(refusals, "/training/precision", training.precision.name,
               {"bf16", "fp32", "fp8", "mxfp8"});
  refuse_names(refusals, "/training/optimizer", training.optimizer.name, {"adam", "adamw"});
  check_pipeline(plan, scenario.job.model.layers, refusals);
  check_sharding(plan, refusals);
  check_experts(plan, scenario.job.model.experts > 0, refusals);
  check_compiled(scenario, plan, refusals);
  if (plan.tensor_parallel > 1 && !plan.sequence_parallel) {
    refusals.add("/plan/sequence_parallel", "false", "true with tensor_parallel");
  }
  if (plan.context_parallel > 1 && plan.context_parallel_algorithm == ContextAlgorithm::ulysses) {
    refusals.add("/plan/context_parallel_algorithm", "\"ulysses\"", "ring, all-gather");
  }
  if (plan.recompute.full_layers > 0) {
    refusals.add("/plan/recompute", "full for some layers", "none, selective, full");
  }
  const bool all_or_none =
      offloads(plan.offload, OffloadTarget::host) || offloads(plan.offload, OffloadTarget::none);
  if (!all_or_none || plan.offload.activations != OffloadTarget::none) {
    refusals.add("/plan/offload", "a part", "parameters, gradients and optimizer together to host");
  }
}

Json training_section_of(const Scenario& scenario, const Plan& plan) {
  const Training& training = scenario.job.training;
  const bool pipeline = plan.pipeline_parallel > 1;
  return {{"seq_len", training.sequence_length},
          {"global_batch_size", training.global_batch},
          {"local_batch_size",
           pipeline ? training.global_batch / plan.data_parallel : plan.micro_batch},
          {"mixed_precision_param", training.precision.name == "fp32" ? "float32" : "bfloat16"},
          {"enable_cpu_offload", offloads(plan.offload, OffloadTarget::host)}};
}

// The modules of each chunk: the embedding is in the first, the norm and the head in the last.
Json modules_of(const std::vector<int>& chunks) {
  Json parts = Json::array();
  int layer = 0;
  for (const int size : chunks) {
    Json& modules = parts.emplace_back(Json::array());
    if (parts.size() == 1) modules.push_back("tok_embeddings");
    for (int i = 0; i < size; ++i) modules.push_back(fmt::format("layers.{}", layer++));
  }
  parts.back().push_back("norm");
  parts.back().push_back("output");
  return parts;
}

void add_pipeline(const Plan& plan, int layers, Json& section) {
  if (plan.pipeline_parallel == 1) return;
  const std::string_view name = plan.schedule->name;
  section["pipeline_parallel_schedule"] = name == "gpipe"              ? "GPipe"
                                          : name == "interleaved-1f1b" ? "Interleaved1F1B"
                                          : name == "zb-v"             ? "ZBVZeroBubble"
                                                                       : "1F1B";
  section["pipeline_parallel_microbatch_size"] = plan.micro_batch;
  section["module_fqns_per_model_part"] = modules_of(chunks_of(plan, layers));
}

Json parallelism_section(const Scenario& scenario, const Plan& plan) {
  const bool sharded = plan.zero_stage > 0;
  const int shards = sharded ? plan.sharding_group / plan.context_parallel : 1;
  const bool gathers = plan.context_parallel_algorithm == ContextAlgorithm::all_gather;
  Json section = {
      {"data_parallel_replicate_degree", plan.data_parallel / shards},
      {"data_parallel_shard_degree", shards},
      {"fsdp_reshard_after_forward", plan.zero_stage == 2 ? "never" : "always"},
      {"tensor_parallel_degree", plan.tensor_parallel},
      {"enable_async_tensor_parallel", plan.tensor_parallel > 1 && plan.overlap.tensor_parallel},
      {"pipeline_parallel_degree", plan.pipeline_parallel},
      {"context_parallel_degree", plan.context_parallel},
      {"context_parallel_rotate_method", gathers ? "allgather" : "alltoall"},
      {"expert_parallel_degree", plan.expert_parallel}};
  if (scenario.job.model.experts > 0 && plan.expert_parallel > 1) {
    section["expert_tensor_parallel_degree"] = plan.expert_tensor_parallel;
  }
  add_pipeline(plan, scenario.job.model.layers, section);
  return section;
}

// Linear layers and experts have different converters, and the experts' one needs their names.
void add_precision(const Scenario& scenario, Json& config) {
  const std::string_view precision = scenario.job.training.precision.name;
  if (precision != "fp8" && precision != "mxfp8") return;
  const std::string kind = precision == "fp8" ? "float8" : "mx";
  Json& converters = config["model"]["converters"];
  converters.push_back("quantize.linear." + kind);
  if (scenario.job.model.experts == 0) return;
  converters.push_back("quantize.grouped_mm." + kind);
  config["quantize"] = {{"grouped_mm", {{kind, {{"fqns", Json::array({"experts"})}}}}}};
}

Json config_of(const Scenario& scenario, const Plan& plan, const TorchtitanNetwork& network) {
  const Training& training = scenario.job.training;
  const RecomputeMode mode = plan.recompute.mode;
  Json config = {{"job", {{"description", scenario.name}}},
                 {"model",
                  {{"name", std::string(network.name)},
                   {"flavor", std::string(network.flavour)},
                   {"converters", Json::array()}}},
                 {"optimizer", {{"name", training.optimizer.name == "adam" ? "Adam" : "AdamW"}}},
                 {"training", training_section_of(scenario, plan)},
                 {"compile", {{"enable", compiles(training)}}},
                 {"parallelism", parallelism_section(scenario, plan)},
                 {"activation_checkpoint",
                  {{"mode", mode == RecomputeMode::none   ? "none"
                            : mode == RecomputeMode::full ? "full"
                                                          : "selective"},
                   {"selective_ac_option", "op"}}}};
  add_precision(scenario, config);
  return config;
}

}  // namespace

Expected<Exported> export_torchtitan(const Scenario& scenario, const Plan& plan) {
  Refusals refusals("torchtitan");
  check_torchtitan(scenario, plan, refusals);
  const TorchtitanNetwork* network = network_of(scenario.job.model);
  if (network == nullptr) {
    refusals.add("/model", fmt::format("\"{}\"", scenario.job.model.name),
                 "llama3, deepseek_v3 and qwen3 in their published sizes");
  }
  if (refusals.error()) return tl::unexpected(*refusals.error());
  // torchtitan's mesh, outermost first: pp, dp_replicate, dp_shard, cp, tp.
  const auto devices = rank_devices(plan, scenario.job.model, "tp-cp-ep-dp-pp");
  if (!devices) return tl::unexpected(devices.error());
  const Launch launch{
      .framework = "torchtitan 0.2",
      .program = {"python", "-m", "torchtitan.train", "--job.config_file", "torchtitan.toml"},
      .extra = " \"$@\""};
  return Exported{{{"torchtitan.toml", toml_text(config_of(scenario, plan, *network))},
                   hostfile(*devices, scenario.job.cluster.devices_per_node),
                   sbatch_script(scenario, plan, launch)},
                  {"data, tokenizer, steps and learning rate: arguments of launch.sbatch"}};
}

}  // namespace trainyard
