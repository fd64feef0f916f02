// How many of the parameters and gradients that ZeRO 2 and 3 shard a rank holds whole while passes
// run.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/cost/estimate.h"
#include "model/cost/memory/memory.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

using namespace literals;

// Bytes per whole gradient. It is made in the weights' 16 bits and copied to the reduction's type
// to be scattered (FSDP2, foreach_reduce). While the gradients of two units are whole, the mean of
// both types is counted.
double made_or_reduced(const PreparedJob& job) {
  return (2 + job.job.training.stack.reduction_bytes) / 2;
}

// Weights of a layer of Llama-3.1-8B: attention, MLP and two norms.
constexpr double kLlamaLayer = 2 * 4'096.0 * (4'096 + 1'024) + 3 * 4'096.0 * 14'336 + 2 * 4'096;

// Handbook §7, "gathered parameters of ZeRO-3 (the live layers, prefetch included)". At the loss
// these are the head's 128,256 · 4,096 weights and their gradient. Of 256 tokens the logits and
// their copies are small: then the peak comes after they are freed, when the last layer's weights
// lie beside the gradient of the head's input.
TEST(WholeParameters, OfZeRO3HasTheHeadsMatrixGathered) {
  Job sequences = llama_8b_on_h100().job;
  const double head = 128'256.0 * 4'096;
  for (const int tokens : {8192, 256}) {
    sequences.training.sequence_length = tokens;
    const PreparedJob job = prepare(sequences);
    const Plan plan = legal_plan(job, {.zero_stage = 3, .recompute = {RecomputeMode::full, 0}});
    const StageMemory memory = estimate(job, plan).stages.front().memory;
    ASSERT_EQ(memory.moment, MemoryMoment::output_head) << tokens;
    const double behind_loss = tokens == 256 ? 2 * kLlamaLayer + 2.0 * tokens * 4'096 : 0;
    const double here = 64 * 1024 * 1024 + head * (2 + made_or_reduced(job));
    EXPECT_DOUBLE_EQ(memory.at_peak.buffers.value(), here + behind_loss) << tokens;
  }
}

// Under ZeRO-2 each rank has all weights. The layer at work and the unit before it have whole
// gradients, at most the head's 4,096 · 128,256 beside a layer's 218 million.
TEST(WholeParameters, OfZeRO2HasTheGradientsOfTwoUnitsWhole) {
  Job job = llama_8b_on_h100().job;
  job.training.sequence_length = 256;  // few logits
  const auto buffers = [&](double reduction) {
    job.training.stack.reduction_bytes = reduction;
    const PreparedJob reduced = prepare(job);
    PlanRequest request{.zero_stage = 2};
    request.overlap.data_parallel = true;
    const StageMemory memory =
        estimate(reduced, legal_plan(reduced, request)).stages.front().memory;
    EXPECT_EQ(memory.moment, MemoryMoment::layer_backward) << reduction;
    return memory.at_peak.buffers.value();
  };
  const double head = 128'256.0 * 4'096;
  const double expected = head + kLlamaLayer;  // three bytes of each instead of two
  EXPECT_NEAR(buffers(4) - buffers(2), expected, 1e-9 * expected);
}

// Without overlap a unit's gradients are reduced before the next unit makes its own. Under ZeRO-2
// the whole gradients are those of one layer; under ZeRO-3 they lie beside the layer's weights and
// those gathered ahead. The head, 32,000 · 4,096, has fewer.
TEST(WholeParameters, OfZeROWithoutOverlapHasTheGradientsOfOneUnitWhole) {
  Job job = llama_8b_on_h100().job;
  job.training.sequence_length = 256;  // few logits
  job.model.vocabulary = 32'000;
  const PreparedJob prepared = prepare(job);
  const auto buffers = [&](int zero, bool overlaps) {
    PlanRequest request{.zero_stage = zero};
    request.overlap.data_parallel = overlaps;
    const StageMemory memory =
        estimate(prepared, legal_plan(prepared, request)).stages.front().memory;
    EXPECT_EQ(memory.moment, MemoryMoment::layer_backward) << zero;
    return memory.at_peak.buffers.value();
  };
  const double gradient = made_or_reduced(prepared);
  EXPECT_NEAR(buffers(2, true) - buffers(2, false), kLlamaLayer * gradient, 1e-6 * kLlamaLayer);
  EXPECT_NEAR(buffers(3, false) - buffers(2, false), kLlamaLayer * (2 + 2), 1e-6 * kLlamaLayer);
}

// A layer has more weights than the head's 32,000 · 4,096. At the loss no layer has made a gradient
// yet, only the head has weights and gradient; with states on the host there are also the 16-bit
// weights and gradients of each rank's part of the head and of the last layer.
TEST(WholeParameters, OfZeRO3HasNoLayersGradientAtTheHead) {
  Job small = llama_8b_on_h100().job;
  small.model.vocabulary = 32'000;
  small.training.stack.saved_logit_bytes = 24;
  const PreparedJob job = prepare(small);
  PlanRequest request{.zero_stage = 3, .recompute = {RecomputeMode::full, 0}};
  const double head = 32'000.0 * 4'096;
  const double gradient = made_or_reduced(job);
  const double here = 64 * 1024 * 1024 + head * (2 + gradient);
  const StageMemory memory = estimate(job, legal_plan(job, request)).stages.front().memory;
  ASSERT_EQ(memory.moment, MemoryMoment::output_head);
  EXPECT_DOUBLE_EQ(memory.at_peak.buffers.value(), here);
  request.offload.parameters = request.offload.gradients = OffloadTarget::host;
  const Plan plan = legal_plan(job, request);
  const StageMemory away = estimate(job, plan).stages.front().memory;
  ASSERT_EQ(away.moment, MemoryMoment::output_head);
  const double kept = job.job.training.stack.gradient_bytes;
  const double parts = (head + kLlamaLayer) * (2 + kept) / plan.data_parallel;
  EXPECT_NEAR(away.at_peak.buffers.value(), here + parts, 1e-9 * here);
}

// Mixtral on four stages with 16-bit weights and gradients. Beside an MoE layer at work are the
// weights or the gradients of its neighbour in the chunk: none if it is alone; those of a dense
// layer, 4,096 · 14,336 per matrix, if every second layer is dense; or those of another MoE layer.
TEST(WholeParameters, OfZeRO3HasTheLayerNextToTheOneAtWork) {
  Job job = llama_8b_on_h100().job;
  job.model = mixtral_8x7b();
  job.training.stack.reduction_bytes = 2;
  const auto buffers = [&](int moe_every, int chunks) {
    job.model.moe_every = moe_every;
    const PreparedJob prepared = prepare(job);
    PlanRequest request{.pipeline_parallel = 4, .virtual_stages = chunks, .zero_stage = 3};
    request.schedule = "interleaved-1f1b";
    return estimate(prepared, legal_plan(prepared, request)).stages[1].memory.at_peak.buffers;
  };
  const double attention = 2 * 4'096.0 * (4'096 + 1'024) + 2 * 4'096;
  const double mlp = 3 * 4'096.0 * 14'336;
  const Bytes alone = buffers(2, 8);
  const double dense = 2 * (attention + mlp);
  EXPECT_NEAR((buffers(2, 4) - alone).value(), dense, 1e-9 * dense);
  const double moe = 2 * (attention + 8 * mlp + 8 * 4'096);
  EXPECT_NEAR((buffers(1, 4) - alone).value(), moe, 1e-9 * moe);
}

// ZeRO-3 gathers what other ranks hold (handbook §7), so on one rank it gathers nothing.
TEST(WholeParameters, OfZeRO3OnOneRankIsThatOfZeRO0) {
  const PreparedJob job = llama_8b_on_h100();
  const auto peak = [&](int tensor, int zero_stage) {
    return estimate(job, legal_plan(job, {.tensor_parallel = tensor, .zero_stage = zero_stage}))
        .peak_allocated;
  };
  EXPECT_EQ(peak(8, 3), peak(8, 0));
  EXPECT_LT(peak(4, 3), peak(4, 0));
}

}  // namespace
}  // namespace trainyard
