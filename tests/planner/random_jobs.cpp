#include "tests/planner/random_jobs.h"

#include "tests/planner/jobs.h"

namespace trainyard {

int RandomJobs::pick(std::initializer_list<int> values) {
  return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random_)];
}

Job RandomJobs::next() {
  Job job = pick({0, 1, 2}) == 0 ? small_moe_job() : small_dense_job();
  job.model.layers = pick({2, 3, 4, 5});
  job.model.hidden_size = pick({256, 512, 1024});
  job.model.ffn_size = 3 * job.model.hidden_size;
  job.model.vocabulary = pick({1024, 50000});
  job.model.tied_embeddings = pick({0, 1}) == 1;
  job.cluster.devices_per_node = pick({1, 2, 4});
  job.cluster.nvlink_domain = job.cluster.devices_per_node;
  job.cluster.inter.nics_per_node = job.cluster.devices_per_node;
  job.cluster.nodes = 4 / job.cluster.devices_per_node * pick({1, 1, 1, 2});
  job.cluster.device.price = DollarsPerSecond(1e-3);
  job.cluster.device.power = Watts(700);
  job.training.global_batch = pick({4, 6, 8});
  job.training.sequence_length = pick({512, 2048});
  Stack& stack = job.training.stack;
  stack.sequence_parallel = pick({0, 1}) == 1;
  stack.flash_attention = pick({0, 1}) == 1;
  stack.overlap.pipeline = pick({0, 1}) == 1;
  stack.overlap.data_parallel = pick({0, 1}) == 1;
  stack.overlap_slowdown = 0.1 * pick({0, 2, 6});
  // The memory of a device: from 0.3 to 10 times the states of the whole network, plus 0.3 GB.
  const double states = 18 * prepare(job).parameters;
  job.cluster.device.memory = Bytes(states * 0.01 * pick({30, 60, 100, 200, 1000}) + 3e8);
  return job;
}

}  // namespace trainyard
