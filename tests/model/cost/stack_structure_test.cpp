// How a stack's structure changes the estimate: dispatch in two levels, overlapped exchange,
// offloading instead of recomputation, older libraries.
#include <gtest/gtest.h>

#include <cmath>

#include "model/cost/compute.h"
#include "model/cost/estimate.h"
#include "model/cost/layer_cost.h"
#include "model/cost/messages/traffic.h"
#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

PreparedJob mixtral_on_h100(int nodes) {
  Training training = modern();
  training.global_batch = 64;
  training.stack.deduplicated_dispatch = true;
  training.stack.overlap_slowdown = 0.25;
  return prepare({mixtral_8x7b(), example_cluster(example_h100(), nodes), training});
}

LayerTraffic moe_traffic(const PreparedJob& job, const Plan& plan) {
  return layer_traffic(job, plan, plan_links(job, plan), {}, {.moe = true});
}

// One rank per node, so nothing is passed on inside a node. A token has two different experts of
// eight. On eight nodes they are never on the same node. On four, with two experts each, they are
// in one case of seven, so a token goes to 4·(1 − C(6,2)/C(8,2)) = 13/7 nodes instead of 2.
TEST(DeduplicatedDispatch, SendsATokenOnceToEachNode) {
  PreparedJob job = mixtral_on_h100(8);
  job.job.cluster.devices_per_node = 1;
  job.job.cluster.nvlink_domain = 1;
  job.job.cluster.inter.nics_per_node = 1;
  job = prepare(job.job);
  PreparedJob every = job;
  every.job.training.stack.deduplicated_dispatch = false;
  for (const auto& [nodes, reached] : {std::pair{8, 2.0}, std::pair{4, 13.0 / 7}}) {
    const Plan plan = legal_plan(job, {.expert_parallel = nodes});
    const Seconds once = moe_traffic(job, plan).expert_parallel.forward;
    // Each message also has a latency, hence the tolerance.
    EXPECT_NEAR(once / moe_traffic(every, plan).expert_parallel.forward, reached / 2, 2e-3);
  }
}

// Two nodes with four of eight experts each. Both experts of a token are on one given node with
// probability C(4,2)/C(8,2) = 3/14, so a token reaches 2·(1 − 3/14) = 11/7 nodes, and half of these
// copies cross. Without deduplication four of a rank's seven peers are across, with 2 copies per
// token. 4,096 tokens of 4,096 elements in 16 bits, 25 GB/s per rank, of which the fabric gives 85
// %.
TEST(DeduplicatedDispatch, CrossesNodesOnceAndIsPassedOnInside) {
  PreparedJob job = mixtral_on_h100(2);
  job.job.cluster.devices_per_node = 4;
  job.job.cluster.nvlink_domain = 4;
  job.job.cluster.inter.nics_per_node = 4;
  job = prepare(job.job);
  const Plan plan = legal_plan(job, {.expert_parallel = 8});
  const double token = 4096.0 * 4096 * 2;
  const double crossing = token * 11 / 7 / 2 / (0.85 * 25e9);
  const PassTraffic exchange = moe_traffic(job, plan).expert_parallel;
  EXPECT_NEAR(exchange.backward.value() / (2 * crossing), 1, 0.03);
}

// The exchange carries the tokens that the experts compute: all that come, or what their capacity
// lets through.
TEST(ExpertExchange, CarriesWhatComesAndOnlyWhatTheCapacityLetsThrough) {
  const PreparedJob job = mixtral_on_h100(1);
  const auto backward = [&](PlanRequest request) {
    request.expert_parallel = 8;
    return moe_traffic(job, legal_plan(job, request)).expert_parallel.backward;
  };
  const Seconds even = backward({});
  EXPECT_EQ(backward({.capacity_factor = 1.25}), even);
  EXPECT_EQ(backward({.capacity_factor = 2, .load_imbalance = 1.5}),
            backward({.load_imbalance = 1.5}));
  const Seconds half_more = backward({.load_imbalance = 1.5}) - even;
  EXPECT_NEAR((even - backward({.capacity_factor = 0.5})) / half_more, 1, 1e-6);
}

TEST(ExpertOverlap, LeavesTheSlowdownOfWhatComputeCovers) {
  const PreparedJob job = mixtral_on_h100(1);
  Plan plan = legal_plan(job, {.expert_parallel = 8});
  const PlanLinks links = plan_links(job, plan);
  const LayerCost plain = layer_cost(job, plan, links, {.moe = true});
  ASSERT_LT(plain.forward.expert_parallel, plain.forward.compute);
  plan.overlap.expert_parallel = true;
  const LayerCost hidden = layer_cost(job, plan, links, {.moe = true});
  EXPECT_NEAR(hidden.forward.expert_parallel / plain.forward.expert_parallel, 0.25, 1e-12);
  EXPECT_EQ(hidden.forward.compute, plain.forward.compute);
}

struct TightJob {
  PreparedJob job = llama_8b_on_h100();
  PlanRequest request{.zero_stage = 3, .recompute = {RecomputeMode::automatic, 0}};

  // The device has memory for half of what recomputation saves.
  TightJob() {
    PlanRequest all = request;
    all.recompute = {RecomputeMode::full, 0};
    const Bytes least = estimate(job, legal_plan(job, all)).peak_memory;
    all.recompute = {RecomputeMode::none, 0};
    const Bytes most = estimate(job, legal_plan(job, all)).peak_memory;
    job.job.cluster.device.memory = least + (most - least) / 2.0;
    job.job.training.stack.offloads_activations = true;
  }
  Plan resolved() const { return resolve_recompute(job, legal_plan(job, request)); }
};

TEST(OffloadsActivations, OfTheFewestLayersWhereTheLinkIsFast) {
  TightJob tight;
  tight.job.job.cluster.device.host_bandwidth = BytesPerSecond(450e9);
  Plan plan = tight.resolved();
  ASSERT_EQ(plan.offload.activations, OffloadTarget::host);
  EXPECT_EQ(plan.recompute.mode, RecomputeMode::none);
  EXPECT_TRUE(estimate(tight.job, plan).feasible);
  ASSERT_GT(plan.offload.activation_layers, 1);
  plan.offload.activation_layers -= 1;
  EXPECT_FALSE(estimate(tight.job, plan).feasible);
}

TEST(OffloadsActivations, NotWhereRecomputingIsFaster) {
  TightJob tight;
  tight.job.job.cluster.device.host_bandwidth = BytesPerSecond(1e9);
  const Plan plan = tight.resolved();
  EXPECT_EQ(plan.offload.activations, OffloadTarget::none);
  EXPECT_EQ(plan.recompute.mode, RecomputeMode::full);
}

TEST(OffloadsActivations, NotWhereParametersAreNotSharded) {
  TightJob tight;
  tight.job.job.cluster.device.host_bandwidth = BytesPerSecond(450e9);
  tight.request.zero_stage = 1;
  EXPECT_EQ(tight.resolved().offload.activations, OffloadTarget::none);
}

Seconds forward_of(const PreparedJob& job, const Device& device, OperatorKind kind) {
  for (const Operator& op :
       layer_operators(job.job.model, job.job.training, {}, {.moe = job.job.model.experts > 0})) {
    if (op.kind == kind) return operator_time(device, job.job.training, op).forward;
  }
  ADD_FAILURE() << "no such operator";
  return {};
}

TEST(GemmSpeedHopper, SlowsGemmsOnHopperAndLaterOnly) {
  PreparedJob job = llama_8b_on_h100();
  const auto time = [&](const Device& device) {
    return forward_of(job, device, OperatorKind::mlp_down);
  };
  const Seconds hopper = time(example_h100());
  const Seconds ampere = time(example_a100());
  job.job.training.stack.gemm_speed_hopper = 0.8;
  EXPECT_NEAR(time(example_h100()) / hopper, 1 / 0.8, 1e-12);
  EXPECT_EQ(time(example_a100()), ampere);
}

// An L40S or an MI300X computes in 8 bits, but its own rates contain attention kernels of the older
// kind.
TEST(AttentionSpeedHopper, IsNotOfEveryDeviceWithEightBits) {
  PreparedJob job = llama_8b_on_h100();
  const auto time = [&](const Device& device) {
    return forward_of(job, device, OperatorKind::attention_core);
  };
  Device other = example_h100();
  other.generation.reset();
  const Seconds before = time(other);
  job.job.training.stack.attention_speed_hopper = 0.25;
  EXPECT_EQ(time(other), before);
  EXPECT_GT(time(example_h100()), 2 * before);
}

TEST(ExpertSpeed, SlowsExpertsGemmsAlone) {
  PreparedJob job = mixtral_on_h100(1);
  const Device device = job.job.cluster.device;
  const Seconds experts = forward_of(job, device, OperatorKind::expert_down);
  const Seconds dense = forward_of(job, device, OperatorKind::output_projection);
  job.job.training.stack.expert_speed = 0.5;
  EXPECT_NEAR(forward_of(job, device, OperatorKind::expert_down) / experts, 2, 1e-12);
  EXPECT_EQ(forward_of(job, device, OperatorKind::output_projection), dense);
}

TEST(AttentionGeneration, ScalesTheKernelsRate) {
  PreparedJob job = llama_8b_on_h100();
  const Device device = job.job.cluster.device;
  job.job.training.stack.attention_speed = 0.9;
  job.job.training.stack.attention_generation = 0.5;
  const Seconds older = forward_of(job, device, OperatorKind::attention_core);
  job.job.training.stack.attention_generation = 1;
  job.job.training.stack.attention_speed = 0.45;
  EXPECT_NEAR(older / forward_of(job, device, OperatorKind::attention_core), 1, 1e-12);
}

// The gather of the parameters, 16 bits each at 25 GB/s per rank over 2 nodes, is no longer hidden.
TEST(ExposedGathers, AddTheGatherOfTheParameters) {
  PreparedJob job = llama_8b_on_h100(2);
  job.job.training.stack.overlap.data_parallel = true;
  const Plan plan = legal_plan(job, {.zero_stage = 1});
  const auto shown = [&] { return estimate(job, plan).breakdown.data_parallel; };
  const Seconds hidden = shown();
  job.job.training.stack.exposed_gathers = true;
  const PlanLinks links = plan_links(job, plan);
  const double parameters = estimate(job, plan).held.front().dense;
  const Seconds gather = collective_time(CollectiveOperation::all_gather, links.dense_shard,
                                         Bytes(2 * parameters), links);
  EXPECT_GT(shown(), hidden);
  EXPECT_LE((shown() - hidden) / gather, 1.0);
  EXPECT_GT((shown() - hidden) / gather, 0.5);
}

}  // namespace
}  // namespace trainyard
