#include "simulator/link_load.h"

#include <gtest/gtest.h>

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

// The area under the curve is what all messages of the rank carry.
TEST(LinkLoad, CarriesEveryMessageOfTheRank) {
  const StepSimulation simulation = pipelined();
  for (std::size_t rank = 0; rank < simulation.step.graph.ranks.size(); ++rank) {
    const auto& tasks = simulation.step.graph
                            .lists[static_cast<std::size_t>(simulation.step.graph.ranks[rank].list)]
                            .tasks;
    const auto times = simulation.timeline.of(static_cast<int>(rank));
    Bytes messages, area;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].call < 0 || times[i].end == times[i].start) continue;
      messages += simulation.step.graph.calls[static_cast<std::size_t>(tasks[i].call)].message;
    }
    const auto load = link_load(simulation.step, simulation.timeline, static_cast<int>(rank));
    for (std::size_t i = 0; i + 1 < load.size(); ++i) {
      EXPECT_LT(load[i].time, load[i + 1].time);
      area += load[i].rate * to_seconds(load[i + 1].time - load[i].time);
    }
    EXPECT_GT(messages, Bytes(0));
    EXPECT_NEAR(area / messages, 1, 1e-6);
    EXPECT_NEAR(load.back().rate.value(), 0, 1);  // B/s
  }
}

}  // namespace
}  // namespace trainyard
