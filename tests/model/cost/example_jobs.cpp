#include "tests/model/cost/example_jobs.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/model/cost/example_devices.h"
#include "tests/model/workload/models.h"

namespace trainyard {

using namespace literals;

Cluster example_cluster(Device device, int nodes) {
  Cluster cluster;
  cluster.name = "example";
  cluster.intra.bandwidth = device.link_bandwidth;
  cluster.device = std::move(device);
  cluster.devices_per_node = 8;
  cluster.nodes = nodes;
  cluster.nvlink_domain = 8;
  cluster.inter.kind = InterNodeKind::fat_tree;
  cluster.inter.nics_per_node = 8;
  cluster.inter.bandwidth = 25.0_GBps;
  return cluster;
}

PreparedJob gpt3_on_a100(int nodes, std::int64_t global_batch) {
  return prepare(
      {gpt3_175b(), example_cluster(example_a100(), nodes), megatron_2022(global_batch)});
}

PreparedJob llama_8b_on_h100(int nodes, std::int64_t global_batch) {
  Training training = modern();
  training.global_batch = global_batch;
  return prepare({llama_8b(), example_cluster(example_h100(), nodes), training});
}

Plan legal_plan(const PreparedJob& job, const PlanRequest& request) {
  auto plan = make_plan(request, job.job.model, job.job.cluster, job.job.training);
  if (!plan) {
    ADD_FAILURE() << plan.error().where << ": " << plan.error().message;
    return {};
  }
  return *plan;
}

}  // namespace trainyard
