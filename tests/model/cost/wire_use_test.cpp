#include "model/cost/messages/wire_use.h"

#include <gtest/gtest.h>

#include <string_view>

#include "model/cost/layer_cost.h"
#include "model/cost/messages/traffic.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

// Two domains of eight ranks: 10 bytes per second out of each rank, 400 inside.
GroupLinks two_domains() {
  GroupLinks links;
  links.size = 16;
  links.ranks_per_domain = 8;
  links.domains = 2;
  links.inside = links.inside_pair = BytesPerSecond(400);
  links.across = links.across_all_to_all = BytesPerSecond(10);
  links.passing = BytesPerSecond(40);
  return links;
}

WireUse use_of(CollectiveOperation operation, std::string_view algorithm, const GroupLinks& links,
               double bytes) {
  const CollectiveChoice choice{.algorithm = algorithm};
  const CollectiveCost cost = collective_cost(operation, links, Bytes(bytes), choice);
  return wire_use(operation, links, Bytes(bytes), cost);
}

// Handbook §6: 15 steps with latency α, and 15/16·S at 80 bytes per second, the links of 8 members
// out of a domain. An eighth of what each member sends goes over its own link.
TEST(WireUse, OfARingIsAllButItsLatency) {
  GroupLinks links = two_domains();
  links.inside_latency = links.across_latency = Seconds(2);
  const WireUse use = use_of(CollectiveOperation::all_gather, "ring", links, 16 * 80);
  EXPECT_NEAR(use.free, 15 * 2.0 / (15 * 2.0 + 15), 1e-9);
  EXPECT_NEAR(use.crossing, 1.0 / 8, 1e-9);
  EXPECT_NEAR(use.rate.value(), 80, 1e-9);
}

// Handbook §6 by levels: 7/8·S inside at 400, then 1/16·S across at 10, with nothing beside it.
TEST(WireUse, OfLevelsIsTheOneBetweenDomains) {
  const WireUse use =
      use_of(CollectiveOperation::reduce_scatter, "recursive-halving", two_domains(), 1600);
  const double inside = 1400.0 / 400;
  const double across = 100.0 / 10;
  EXPECT_NEAR(use.free, inside / (inside + across), 1e-9);
  EXPECT_NEAR(use.crossing, 1, 1e-9);
  EXPECT_NEAR(use.rate.value(), 10, 1e-9);
}

// Handbook §6: the whole message in each of log2(n) rounds, three inside at 400 and one across at
// 10.
TEST(WireUse, OfRecursiveDoublingSendsTheWholeMessageAcross) {
  const WireUse use =
      use_of(CollectiveOperation::all_reduce, "recursive-doubling", two_domains(), 1600);
  const double inside = 3 * 1600.0 / 400;
  const double across = 1600.0 / 10;
  EXPECT_NEAR(use.free, inside / (inside + across), 1e-9);
}

// The message of OfLevelsIsTheOneBetweenDomains where twice as many messages meet between switches
// as an all-to-all has there: they move at half the rate and leave the links free for less time.
TEST(WireUse, OfLevelsThatMeetOthersIsSlower) {
  GroupLinks links = two_domains();
  links.crowding.halving = 2;
  const WireUse use = use_of(CollectiveOperation::all_gather, "recursive-doubling", links, 1600);
  const double inside = 1400.0 / 400;
  const double across = 100.0 / 5;
  EXPECT_NEAR(use.free, inside / (inside + across), 1e-9);
  EXPECT_NEAR(use.rate.value(), 5, 1e-9);
}

// α = 2 s, and 120 bytes at the one sender's 40 bytes per second. Its group's eight members have 80
// together.
TEST(WireUse, OfAMessageThatIsPassedOnIsThatOfOneSender) {
  GroupLinks links = two_domains();
  links.across_latency = Seconds(2);
  const WireUse use = use_of(CollectiveOperation::send, "direct", links, 120);
  EXPECT_NEAR(use.free, 2.0 / (2 + 3), 1e-9);
  EXPECT_NEAR(use.crossing, 10.0 / 40, 1e-9);
  EXPECT_NEAR(use.rate.value(), 40, 1e-9);
}

// Under sequence parallelism the inputs of both blocks are gathered a second time (handbook §4), by
// a ring of 16 without latency: 15/16 of the 4096-wide activations at 80 bytes per second. The
// kernels beside it take no time to speak of.
TEST(SecondGather, ShowsWhatOutlastsTheKernelsBesideIt) {
  const PreparedJob job = llama_8b_on_h100(2);
  PlanRequest request{.tensor_parallel = 8, .sequence_parallel = true};
  Plan plan = legal_plan(job, request);
  PlanLinks links;
  links.tensor = two_domains();
  links.choice.algorithm = "ring";
  LayerCost layer = layer_cost(job, plan, links, LayerKind{});
  const double message =
      tokens_per_rank(job, plan) * 4096 * job.job.training.precision.activation_bytes;
  const double gather = 15.0 / 16 * message / 80;
  EXPECT_NEAR(layer.second_gather.whole.value() / (2 * gather), 1, 1e-6);
  EXPECT_NEAR(layer.second_gather.split.value() / (2 * gather), 1, 1e-6);
  const Seconds before = layer.input_gradient.total();
  add_second_gather(plan, layer);
  EXPECT_NEAR(layer.input_gradient.total() / (before + layer.second_gather.whole), 1, 1e-9);

  links.tensor.inside = links.tensor.across = BytesPerSecond(1e15);
  EXPECT_EQ(layer_cost(job, plan, links, LayerKind{}).second_gather.whole, Seconds(0));
}

// The second gather can run while the host launches the layer, so no more of it shows.
TEST(SecondGather, GoesOnWhileTheHostLaunches) {
  PreparedJob job = llama_8b_on_h100(2);
  job.job.training.stack.host_layer_forward = Seconds(1e9);
  PlanRequest request{.tensor_parallel = 8, .sequence_parallel = true};
  const Plan plan = legal_plan(job, request);
  PlanLinks links;
  links.tensor = two_domains();
  links.choice.algorithm = "ring";
  LayerCost layer = layer_cost(job, plan, links, LayerKind{});
  ASSERT_GT(layer.input_gradient.launch, layer.second_gather.whole);
  ASSERT_GT(layer.second_gather.whole, Seconds(0));
  const Seconds before = layer.input_gradient.total();
  add_second_gather(plan, layer);
  EXPECT_NEAR(layer.input_gradient.total() / before, 1, 1e-12);
}

// With a split backward pass, the weight-gradient pass waits for the second gather.
TEST(SecondGather, StandsInTheWeightGradientsOfASplitBackwardPass) {
  const PreparedJob job = llama_8b_on_h100(2);
  PlanRequest request{.tensor_parallel = 8, .sequence_parallel = true, .pipeline_parallel = 2};
  request.schedule = "zb-h1";
  const Plan plan = legal_plan(job, request);
  PlanLinks links;
  links.tensor = two_domains();
  links.choice.algorithm = "ring";
  LayerCost layer = layer_cost(job, plan, links, LayerKind{});
  const LayerCost before = layer;
  add_second_gather(plan, layer);
  EXPECT_EQ(layer.input_gradient.total(), before.input_gradient.total());
  EXPECT_GT(before.second_gather.split, Seconds(0));
  const Seconds expected = before.weight_gradient.total() + before.second_gather.split;
  EXPECT_NEAR(layer.weight_gradient.total() / expected, 1, 1e-9);
}

// What was saved, and is gathered again, is the cast (handbook §7: one byte per element in fp8),
// although the first gather carried 16 bits.
TEST(SecondGather, IsOfTheCastThatWasSaved) {
  PreparedJob job = llama_8b_on_h100(2);
  job.job.training.precision = *find_precision_recipe("fp8");
  job.job.training.stack.quantised_gathers = false;
  PlanRequest request{.tensor_parallel = 8, .sequence_parallel = true};
  const Plan plan = legal_plan(job, request);
  PlanLinks links;
  links.tensor = two_domains();
  links.choice.algorithm = "ring";
  const LayerTraffic traffic =
      layer_traffic(job, plan, links, tensor_traffic(job, plan, links), {});
  EXPECT_NEAR(traffic.gathered / traffic.gathered_again, 2 * 2, 1e-6);  // two blocks, two bytes
}

// Torchtitan's selective recomputation gathers the inputs of both blocks again, as full
// recomputation does, and keeps what was scattered. On a ring that is half of what the exchanges of
// a forward pass show.
TEST(EverySecondMatmul, GathersItsInputsAgain) {
  PreparedJob job = llama_8b_on_h100(2);
  job.job.training.stack.selective = SelectiveRecompute::every_second_matmul;
  PlanRequest request{.tensor_parallel = 8, .sequence_parallel = true};
  const Plan plan = legal_plan(job, request);
  PlanLinks links;
  links.tensor = two_domains();
  links.choice.algorithm = "ring";
  const LayerCost slow = layer_cost(job, plan, links, LayerKind{});
  links.tensor.inside = links.tensor.across = BytesPerSecond(1e15);
  const LayerCost fast = layer_cost(job, plan, links, LayerKind{});
  const Seconds again = slow.selective_recompute.total() - fast.selective_recompute.total();
  ASSERT_GT(slow.forward.tensor_parallel, Seconds(0));
  EXPECT_NEAR(again / (0.5 * slow.forward.tensor_parallel), 1, 1e-6);
}

}  // namespace
}  // namespace trainyard
