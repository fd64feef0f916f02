#include "simulator/step/link_load.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/step.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

StepSimulation pipelined() {
  const PreparedJob job = gpt3_on_a100(8, 32);
  PlanRequest request;
  request.tensor_parallel = 8;
  request.pipeline_parallel = 4;
  return *simulate(job, legal_plan(job, request));
}

// A step in which half of the exchanges between tensor-parallel ranks is hidden in kernels, without
// slowing anything.
StepSimulation overlapped() {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.tensor_parallel_hidden = 0.5;
  job.job.training.stack.overlap_slowdown = 0;
  PlanRequest request;
  request.tensor_parallel = 8;
  request.sequence_parallel = true;
  request.overlap.tensor_parallel = true;
  return *simulate(job, legal_plan(job, request));
}

// Bytes that a member sends to the other n − 1 in a ring (handbook §6).
Bytes sent_by_hand(const Call& call, double n) {
  switch (call.operation) {
    case CollectiveOperation::all_reduce:
      return 2 * (n - 1) / n * call.message;
    case CollectiveOperation::send:
      return call.message;
    default:
      return (n - 1) / n * call.message;
  }
}

Bytes sent_by_hand(const StepSimulation& simulation, int rank) {
  const TaskGraph& graph = simulation.step.graph;
  const TaskRank& of = graph.ranks[static_cast<std::size_t>(rank)];
  const auto times = simulation.timeline.of(rank);
  const auto& tasks = graph.lists[static_cast<std::size_t>(of.list)].tasks;
  Bytes sent;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].call < 0 || times[i].end == times[i].start) continue;
    const auto channel = static_cast<std::size_t>(tasks[i].channel);
    const auto group = static_cast<std::size_t>(of.groups[channel]);
    const std::size_t size = simulation.step.folded() && graph.copies[group].size() > 0
                                 ? graph.copies[group][0].size()
                                 : graph.groups[group].size();
    sent += sent_by_hand(graph.calls[static_cast<std::size_t>(tasks[i].call)],
                         static_cast<double>(size));
  }
  return sent;
}

Bytes area_under(const std::vector<LoadPoint>& load) {
  Bytes area;
  for (std::size_t i = 0; i + 1 < load.size(); ++i) {
    EXPECT_LT(load[i].time, load[i + 1].time);
    area += load[i].rate * to_seconds(load[i + 1].time - load[i].time);
  }
  EXPECT_NEAR(load.back().rate.value(), 0, 1);  // B/s
  return area;
}

double most_of(const std::vector<LoadPoint>& load) {
  double most = 0;
  for (const LoadPoint& point : load) most = std::max(most, point.rate.value());
  return most;
}

// The area under the curve is all that the rank sends. The predicted load never exceeds the links
// of an A100: 300 GB/s of NVLink and a NIC of 25.
TEST(LinkLoad, CarriesEveryMessageOfTheRank) {
  const StepSimulation simulation = pipelined();
  for (int rank = 0; rank < static_cast<int>(simulation.step.graph.ranks.size()); ++rank) {
    const Bytes sent = sent_by_hand(simulation, rank);
    EXPECT_GT(sent, Bytes(0));
    const auto whole = measured_link_load(simulation.step, simulation.timeline, rank);
    EXPECT_NEAR(area_under(whole) / sent, 1, 1e-6);
    const auto load = link_load(simulation.step, simulation.timeline, rank);
    EXPECT_NEAR(area_under(load) / sent, 1, 0.01);
    EXPECT_LE(most_of(load), 325e9);
  }
}

// A layer has ten exchanges: four forward, four backward and two second gathers for weight
// gradients. The timeline shows the first eight with half of their time, at the rate of the whole:
// 0.6 of the bytes. The measured load has all bytes.
TEST(LinkLoad, IsTheRateOfTheWholeTransferWhereAPartIsHidden) {
  const StepSimulation simulation = overlapped();
  const auto predicted = link_load(simulation.step, simulation.timeline, 0);
  const auto measured = measured_link_load(simulation.step, simulation.timeline, 0);
  EXPECT_NEAR(area_under(measured) / sent_by_hand(simulation, 0), 1, 0.02);
  EXPECT_NEAR(area_under(predicted) / area_under(measured), 0.6, 0.03);
  EXPECT_GT(most_of(predicted), 100e9);
  EXPECT_LE(most_of(predicted), 450e9);  // NVLink of an H100
}

}  // namespace
}  // namespace trainyard
