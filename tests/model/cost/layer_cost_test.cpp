// The part of a layer's communication that shows, against a step of the ring that is played by
// hand.
#include "model/cost/layer_cost.h"

#include <gtest/gtest.h>

#include "model/cost/kernel_times.h"
#include "model/cost/messages/traffic.h"
#include "model/plan/layer_shard.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

constexpr int kRanks = 8;

// When a kernel of `block` seconds and the sends beside it have both ended. The kernel loses the
// share `slowdown` of its pace while blocks are sent.
double played(double block, double sends, double slowdown) {
  const double done = sends * (1 - slowdown);
  return done >= block ? sends : sends + (block - done);
}

struct Ring {
  PreparedJob job = llama_8b_on_h100();
  Plan plan;

  // Seconds of the ring that show on links where a send takes `send` seconds.
  double shown(double send, double slowdown) {
    job.job.training.stack.overlap_slowdown = slowdown;
    plan = legal_plan(
        job, {.context_parallel = kRanks, .context_parallel_algorithm = ContextAlgorithm::ring});
    plan.overlap.context_parallel = true;
    PlanLinks links = plan_links(job, plan);
    links.context.inside = links.context.inside_pair = BytesPerSecond(1e30);
    links.context.inside_latency = Seconds(send);
    const LayerCost cost = layer_cost(job, plan, links, {});
    return (cost.forward.context_parallel + cost.input_gradient.context_parallel).value();
  }
  // Compute of one step of the ring, forward or backward: its part of the attention core and of
  // merging outputs.
  double block(Seconds OperatorTime::*pass) const {
    Seconds all;
    for (const Operator& op :
         layer_operators(job.job.model, job.job.training, layer_shard(plan), {})) {
      if (op.cls != OperatorClass::attention && op.kind != OperatorKind::ring_merge) continue;
      all += operator_time(job.job.cluster.device, job.job.training, op).*pass;
    }
    return all.value() / kRanks;
  }
};

// Forward, one send runs beside every block except the last. Backward there are two sends beside a
// block, but only one beside the first and the last.
TEST(RingAttention, TakesWhatTheLongerOfSendAndSlowedBlockTakes) {
  for (const double slowdown : {0.0, 0.2, 0.5}) {
    for (const double send : {1e-5, 1e-4, 3e-4, 1e-3, 1e-2}) {
      Ring ring;
      const double shown = ring.shown(send, slowdown);
      const double forward = ring.block(&OperatorTime::forward);
      const double backward = ring.block(&OperatorTime::input_gradient);
      const double expected = (kRanks - 1) * (played(forward, send, slowdown) - forward) +
                              2 * (played(backward, send, slowdown) - backward) +
                              (kRanks - 2) * (played(backward, 2 * send, slowdown) - backward);
      EXPECT_NEAR(shown, expected, 1e-9 * (forward + expected)) << send << ", " << slowdown;
    }
  }
}

}  // namespace
}  // namespace trainyard
