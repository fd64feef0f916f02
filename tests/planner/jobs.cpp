#include "tests/planner/jobs.h"

#include <functional>

#include "model/cost/estimate.h"
#include "tests/model/cost/example_devices.h"
#include "tests/support/networks.h"

namespace trainyard {
namespace {

using namespace literals;

void complete(Job& job) {
  job.training.precision = *find_precision_recipe("bf16");
  job.training.optimizer = *find_optimizer("adam");
}

// FNV-1a over the numbers.
std::uint64_t hash(std::initializer_list<std::int64_t> numbers, std::string_view text) {
  std::uint64_t value = 14695981039346656037ULL;
  const auto mix = [&](std::uint64_t number) { value = (value ^ number) * 1099511628211ULL; };
  for (const std::int64_t number : numbers) {
    mix(static_cast<std::uint64_t>(number));
  }
  for (const char c : text) {
    mix(static_cast<unsigned char>(c));
  }
  return value ^ (value >> 29);
}

}  // namespace

Job small_dense_job() {
  Job job;
  job.model = {.name = "small",
               .layers = 4,
               .hidden_size = 512,
               .attention_heads = 8,
               .kv_heads = 4,
               .head_dim = 64,
               .ffn_size = 1536,
               .vocabulary = 1024};
  job.cluster.device = ideal_device();
  job.cluster.devices_per_node = 4;
  job.cluster.nodes = 2;
  job.cluster.nvlink_domain = 4;
  job.cluster.intra.bandwidth = 100.0_GBps;
  job.cluster.inter = {.kind = InterNodeKind::fat_tree, .nics_per_node = 4, .bandwidth = 25.0_GBps};
  job.training.global_batch = 8;
  job.training.sequence_length = 512;
  complete(job);
  return job;
}

GroupedJob groups_of(const std::vector<double>& slowness) {
  const Job job = small_dense_job();
  GroupedJob groups{.model = job.model, .training = job.training};
  groups.model.layers = 12;
  groups.training.global_batch = 96;
  for (const double times : slowness) {
    Cluster& cluster = groups.cluster.groups.emplace_back(job.cluster);
    cluster.nodes = 1;
    Device& device = cluster.device;
    for (FlopsPerSecond& peak : device.peak) peak /= times;
    for (GemmRates& rates : device.rates.gemm) rates.per_multiprocessor /= times;
    for (AttentionRates& rates : device.rates.attention) rates.per_multiprocessor /= times;
    device.memory_bandwidth /= times;
  }
  return groups;
}

Job small_moe_job() {
  Job job = small_dense_job();
  job.model.experts = 4;
  job.model.experts_per_token = 2;
  job.model.expert_ffn_size = 1024;
  return job;
}

Job llama_8b_job(int nodes) {
  Job job;
  job.model = llama_8b();
  job.model.name = "llama-3.1-8b";
  job.cluster.device = example_h100();
  job.cluster.devices_per_node = 8;
  job.cluster.nodes = nodes;
  job.cluster.nvlink_domain = 8;
  job.cluster.intra.bandwidth = 450.0_GBps;
  job.cluster.inter = {.kind = InterNodeKind::rail, .nics_per_node = 8, .bandwidth = 50.0_GBps};
  job.training.global_batch = 64 * nodes;
  job.training.sequence_length = 8192;
  complete(job);
  return job;
}

Estimate arbitrary_estimate(const Job& job, const Plan& plan) {
  const bool pipeline = plan.pipeline_parallel > 1;
  const bool sharded = plan.data_parallel * plan.context_parallel > 1 ||
                       (job.model.experts > 0 && plan.expert_data_parallel > 1);
  const bool selective_differs = !job.training.stack.flash_attention;
  const bool recomputes = plan.recompute.mode == RecomputeMode::full ||
                          (plan.recompute.mode == RecomputeMode::selective && selective_differs);
  const std::uint64_t value =
      hash({plan.tensor_parallel, plan.context_parallel, plan.pipeline_parallel,
            pipeline ? plan.virtual_stages : 1, plan.data_parallel, plan.expert_parallel,
            plan.expert_tensor_parallel, plan.micro_batch, sharded ? plan.zero_stage : 0,
            recomputes ? static_cast<int>(plan.recompute.mode) : 0},
           pipeline ? plan.schedule->name : "");
  Estimate estimate;
  estimate.step_time = Seconds(1 + static_cast<double>(value % 1000003));
  estimate.peak_memory = Bytes(static_cast<double>(value / 7 % 1000));
  estimate.fullness = estimate.peak_memory / Bytes(1000);
  estimate.feasible = value % 5 != 0;
  return estimate;
}

}  // namespace trainyard
