// A rank's step without its peers: its own kernels, and copies in place of communication, whose
// bytes are counted by hand.
#include "simulator/alone.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/reading/memory_timeline.h"
#include "simulator/step.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/simulator/disturbed_step.h"

namespace trainyard {
namespace {

AloneStep alone(const PreparedJob& job, const Plan& plan, int stage) {
  auto step = simulate_alone(job, plan, stage);
  if (!step) ADD_FAILURE() << step.error().where << ": " << step.error().message;
  return *std::move(step);
}

// A plan in which nothing overlaps.
PlanRequest in_turn(int tensor, int pipeline) {
  PlanRequest request{.tensor_parallel = tensor, .pipeline_parallel = pipeline, .micro_batch = 1};
  request.zero_stage = 0;
  request.overlap.tensor_parallel = request.overlap.pipeline = request.overlap.data_parallel =
      false;
  return request;
}

// The time of `copies` copies that each read and write `bytes` in all.
Seconds copies(const Device& device, int copies, Bytes bytes) {
  return copies * (bytes / device.memory_bandwidth + device.rates.launch);
}

// Bytes of one micro-batch's activations between two layers, in 16 bits.
Bytes activations(const Job& job) {
  return Bytes(2.0 * static_cast<double>(job.training.sequence_length) * job.model.hidden_size);
}

TEST(Alone, OfTheOnlyRankIsTheWholeStep) {
  const PreparedJob job = job_of(1, 1, 8);
  const Plan plan = legal_plan(job, in_turn(1, 1));
  const auto whole = simulate(job, plan);
  ASSERT_TRUE(whole);
  const AloneStep step = alone(job, plan, 0);
  EXPECT_EQ(step.step_time, whole->step_time);
  EXPECT_EQ(step.timeline.times, whole->timeline.times);
}

// A stage between two others receives and sends an activation forward and its gradient back. Per
// micro-batch, two messages are filled (written) and two copied (read and written). The rest is the
// stage's kernels in the whole step, in which it also waits.
TEST(Alone, OfAStageIsItsKernelsAndCopiesOfItsMessages) {
  constexpr int kMicrobatches = 16;
  Job made = job_of(1, 4, kMicrobatches).job;
  made.training.stack.rank_spread = made.training.stack.overlap_slowdown = 0;
  const PreparedJob job = prepare(made);
  const Plan plan = legal_plan(job, in_turn(1, 4));
  const auto whole = simulate(job, plan);
  ASSERT_TRUE(whole);
  const Device& device = job.job.cluster.device;
  const Bytes message = activations(job.job);
  const Seconds expected = whole->stages[1].busy + copies(device, 2 * kMicrobatches, message) +
                           copies(device, 2 * kMicrobatches, 2 * message) +
                           copies(device, 1, Bytes(16)) +  // of the gradient's norm, in fp32
                           job.job.training.stack.step_overhead;
  const Seconds found = alone(job, plan, 1).step_time;
  EXPECT_NEAR(found.value(), expected.value(), 1e-8);
  EXPECT_LT(found, whole->step_time);
}

// The most that buffers take where the tasks of a list run one after the other.
Bytes peak_one_by_one(const TaskList& list) {
  std::vector<Bytes> taken(list.tasks.size() + 1), freed(list.tasks.size() + 1);
  for (const Buffer& buffer : list.buffers) {
    taken[static_cast<std::size_t>(buffer.allocated_by + 1)] += buffer.bytes;
    if (buffer.freed_by >= 0) freed[static_cast<std::size_t>(buffer.freed_by + 1)] += buffer.bytes;
  }
  Bytes held, peak;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    held += taken[i];
    peak = std::max(peak, held);
    held -= freed[i];
  }
  return peak;
}

// The executor runs a rank's operations one after the other, in the order of the program. Beside
// kernels a send may hold what it sends a little longer: two messages.
TEST(Alone, TakesMemoryForWhatItReceivesWhereTheProgramReceivesIt) {
  constexpr int kMicrobatches = 16;
  const PreparedJob job = job_of(1, 4, kMicrobatches);
  PlanRequest request = in_turn(1, 4);
  const Plan plan = legal_plan(job, request);
  request.overlap.pipeline = true;
  const Plan beside = legal_plan(job, request);
  const Bytes message = activations(job.job);
  for (const int stage : {0, 1, 3}) {
    const AloneStep step = alone(job, beside, stage);
    const TaskList& list = step.step.graph.lists[static_cast<std::size_t>(stage)];
    const Bytes found = memory_timeline(list, step.timeline.of(0)).peak.bytes;
    EXPECT_LE(found.value(), (peak_one_by_one(list) + 2 * message).value()) << stage;
    EXPECT_LE(step.step_time, alone(job, plan, stage).step_time) << stage;
  }
}

// The time of copies in layers that replace tensor-parallel operations of one kind in one pass.
Seconds copied(const AloneStep& step, OperationKind kind, StepPass pass) {
  Picoseconds sum{0};
  for (std::size_t i = 0; i < step.step.tasks[0].size(); ++i) {
    const IssuedOperation& issued = step.step.tasks[0][i].issued;
    if (issued.operation->kind != kind || issued.step->pass != pass) continue;
    if (issued.operation->group != Group::tensor || issued.call->layer < 0) continue;
    sum += step.timeline.of(0)[i].end - step.timeline.of(0)[i].start;
  }
  return to_seconds(sum);
}

// Handbook §4: two all-reduces per layer forward; with sequence parallelism, two gathers and two
// scatters of the whole tensor. An all-reduce becomes a copy out of the tensor and back; a gather,
// a copy of this rank's quarter for each rank; a scatter, a copy of this rank's quarter.
TEST(Alone, CopiesWhatTensorParallelRanksWouldExchange) {
  const PreparedJob job = job_of(1, 4, 2);
  const Device& device = job.job.cluster.device;
  const Bytes whole = activations(job.job), part = whole / 4.0;
  const int each = 2 * 2 * job.job.model.layers;  // of two micro-batches
  PlanRequest request = in_turn(4, 1);
  request.sequence_parallel = false;
  const AloneStep reduced = alone(job, legal_plan(job, request), 0);
  EXPECT_NEAR(copied(reduced, OperationKind::all_reduce, StepPass::forward).value(),
              copies(device, each, 4 * whole).value(), 1e-8);
  request.sequence_parallel = true;
  const AloneStep shared = alone(job, legal_plan(job, request), 0);
  EXPECT_NEAR(copied(shared, OperationKind::all_gather, StepPass::forward).value(),
              copies(device, each, 2 * part + 2 * whole).value(), 1e-8);
  EXPECT_NEAR(copied(shared, OperationKind::reduce_scatter, StepPass::forward).value(),
              copies(device, each, 2 * part).value(), 1e-8);
}

// Alone, a rank has no network and waits for nobody, so the spread of the ranks' speeds does not
// matter.
TEST(Alone, DoesNotDependOnOtherRanks) {
  const auto step = [](double spread, double bandwidth) {
    Job job = job_of(2, 4, 16).job;
    job.training.stack.rank_spread = spread;
    job.cluster.intra.bandwidth *= bandwidth;
    job.cluster.inter.bandwidth *= bandwidth;
    const PreparedJob prepared = prepare(job);
    PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 2, .micro_batch = 1};
    request.zero_stage = 3;
    return alone(prepared, legal_plan(prepared, request), 1).step_time;
  };
  EXPECT_EQ(step(0, 1), step(0.02, 0.1));
}

}  // namespace
}  // namespace trainyard
