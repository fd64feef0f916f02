// What disturbs a step: which speeds and links the conditions mean, what they cost compared with
// closed forms, and the message for what the cluster does not have.
#include "simulator/step/conditions.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/cluster/topology_graph.h"
#include "simulator/conditions.h"
#include "tests/simulator/disturbed_step.h"

namespace trainyard {
namespace {

using namespace literals;

std::string refusal_of(const StepConditions& conditions) {
  const auto checked = check(conditions, llama_8b_on_h100(4).job);
  return checked ? "none" : checked.error().where + ": " + checked.error().message;
}

TEST(StepConditions, NameWhatTheClusterHas) {
  EXPECT_EQ(refusal_of({}), "none");
  EXPECT_EQ(refusal_of({.stragglers = {{.rank = 31, .speed = 0.5}}}), "none");
  EXPECT_EQ(refusal_of({.stragglers = {{.rank = 32, .speed = 0.5}}}),
            "/simulation/stragglers/0/rank: found rank 32, allowed 0 to 31");
  EXPECT_EQ(refusal_of({.stragglers = {{.node = 4, .speed = 0.5}}}),
            "/simulation/stragglers/0/node: found node 4, allowed 0 to 3");
  EXPECT_EQ(refusal_of({.stragglers = {{.speed = 0.5}}}),
            "/simulation/stragglers/0: found none of \"rank\" and \"node\", allowed one of them");
  EXPECT_EQ(refusal_of({.stragglers = {{.rank = 1, .speed = 0}}}),
            "/simulation/stragglers/0/speed: found 0, allowed more than 0");
  EXPECT_EQ(refusal_of({.jitter = -1}), "/simulation/jitter: found -1, allowed 0 or more");
}

TEST(StepConditions, NameLinksOfTheTopology) {
  EXPECT_EQ(refusal_of({.links = {{.of = {VertexKind::nic, 32}, .rate = 0.5}}}),
            "/simulation/links/0/of: found nic 32, allowed 0 to 31");
  EXPECT_EQ(refusal_of({.links = {{.of = {VertexKind::host, 0}, .rate = 0.5}}}),
            "/simulation/links/0/of: found host 0, allowed device, nvlink-switch, leaf, nic (of "
            "this cluster's topology)");
  EXPECT_EQ(refusal_of({.links = {{.of = {VertexKind::nic, 3},
                                   .to = TopologyPlace{VertexKind::nic, 4},
                                   .rate = 0.5}}}),
            "/simulation/links/0/to: found nic 4, allowed what nic 3 has a link to: device 3, "
            "leaf 0");
  EXPECT_EQ(refusal_of({.links = {{.of = {VertexKind::nic, 3}, .rate = 0}}}),
            "/simulation/links/0/rate: found 0, allowed more than 0");
}

struct Speed {
  int rank;
  double speed;
  Picoseconds from;
  friend bool operator==(const Speed&, const Speed&) = default;
};

// Node 1 runs at 0.8 all the time, and its first device at half of that from 1 to 3 ms.
TEST(Stragglers, MultiplyWhereTheyMeet) {
  Cluster cluster = llama_8b_on_h100(2).job.cluster;
  cluster.devices_per_node = 2;
  const StepConditions conditions{
      .stragglers = {{.node = 1, .speed = 0.8},
                     {.rank = 2, .speed = 0.5, .from = 1.0_ms, .until = 3.0_ms}}};
  std::vector<Speed> found;
  for (const SpeedChange& of : speeds_of(conditions, cluster)) {
    found.push_back({of.rank, of.speed, of.from});
  }
  constexpr Picoseconds kMillisecond{1'000'000'000};
  EXPECT_EQ(found, (std::vector<Speed>{{2, 0.8, Picoseconds(0)},
                                       {2, 0.4, kMillisecond},
                                       {2, 0.8, 3 * kMillisecond},
                                       {3, 0.8, Picoseconds(0)}}));
}

// With kernels only, a device at speed f takes 1/f of the time; each task is rounded once.
TEST(Stragglers, AloneTakeOneOverTheirSpeed) {
  const PreparedJob job = job_of(1, 1, 4);
  const StepSimulation whole = disturbed(job, {}, {});
  const StepSimulation slow = disturbed(job, {}, {.stragglers = {{.rank = 0, .speed = 0.8}}});
  EXPECT_NEAR(static_cast<double>(slow.timeline.makespan.count()),
              static_cast<double>(whole.timeline.makespan.count()) / 0.8,
              static_cast<double>(slow.operations));
}

// At half speed from time a to b, the step does half of the work in b − a and the rest later. A
// kernel keeps the speed at which it begins, so this is exact to two kernels.
TEST(Stragglers, ThatThrottleLoseTheShareOfThatTime) {
  const PreparedJob job = job_of(1, 1, 4);
  const StepSimulation whole = disturbed(job, {}, {});
  const Seconds span = to_seconds(whole.timeline.makespan);
  Picoseconds longest{0};
  for (const TaskTimes& task : whole.timeline.times) {
    longest = std::max(longest, task.end - task.start);
  }
  const StepSimulation slow = disturbed(
      job, {},
      {.stragglers = {{.rank = 0, .speed = 0.5, .from = 0.25 * span, .until = 0.75 * span}}});
  EXPECT_NEAR((to_seconds(slow.timeline.makespan) / span), 1.25, 2 * to_seconds(longest) / span);
}

// The step waits for the slow rank of one of two stages, whose compute takes 1/f. With gpipe and
// stages of T and T/f per micro-batch, the span is m·T/f + T (handbook §8, unlike stages), where T
// is without the ends.
TEST(Stragglers, OfAPipelineLengthenItByTheClosedForm) {
  const PreparedJob job = job_of(1, 2, 8);
  PlanRequest request;
  request.pipeline_parallel = 2;
  request.schedule = "gpipe";
  const StepSimulation whole = disturbed(job, request, {});
  for (const double speed : {0.5, 0.8}) {
    const StepSimulation slow =
        disturbed(job, request, {.stragglers = {{.rank = 1, .speed = speed}}});
    // Between its first and its last kernel the last stage has m·T₁; its first kernel is hidden.
    const Seconds computed = whole.stages[1].busy;
    EXPECT_NEAR((slow.step_time - whole.step_time) / ((1 / speed - 1) * computed), 1, 0.03);
  }
}

// An all-reduce of gradients over one NIC in each of two nodes, with nothing beside it. With one
// NIC at half its rate it takes twice as long, at both grains.
TEST(SlowNic, AtHalfRateDoublesTheAllReduceThatItBounds) {
  const PreparedJob job = job_of(2, 1, 2);
  PlanRequest request;
  request.zero_stage = 0;
  request.overlap.data_parallel = false;
  request.collective = "ring";
  for (const NetworkGrain grain : {NetworkGrain::collective, NetworkGrain::message}) {
    const StepSimulation whole = disturbed(job, request, {}, grain);
    const StepSimulation slow =
        disturbed(job, request, {.links = {{.of = {VertexKind::nic, 1}, .rate = 0.5}}}, grain);
    EXPECT_NEAR(slow.breakdown.data_parallel / whole.breakdown.data_parallel, 2, 0.01);
    EXPECT_NEAR((slow.step_time - whole.step_time) / whole.breakdown.data_parallel, 1, 0.01);
  }
}

// A leaf has lost half of its links to the spine, in each direction.
TEST(DegradedLink, IsTheOneThatIsNamed) {
  Cluster cluster = job_of(4, 1, 4).job.cluster;
  cluster.inter.nodes_per_leaf = 2;
  TopologyGraph graph = make_topology(cluster);
  degrade(graph,
          {.of = {VertexKind::spine, 0}, .to = TopologyPlace{VertexKind::leaf, 1}, .rate = 0.5});
  int touched = 0;
  const TopologyGraph before = make_topology(cluster);
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const auto same = boost::edge(source(edge, graph), target(edge, graph), before).first;
    const double rate = graph[edge].bandwidth / before[same].bandwidth;
    if (rate == 1) continue;
    EXPECT_EQ(rate, 0.5);
    EXPECT_EQ(graph[source(edge, graph)].kind, VertexKind::leaf);
    EXPECT_EQ(graph[source(edge, graph)].index, 1);
    ++touched;
  }
  EXPECT_EQ(touched, 1);
}

TEST(JitterOfAStep, IsBitEqualForASeed) {
  const PreparedJob job = job_of(1, 4, 8);
  PlanRequest request;
  request.tensor_parallel = 2;
  const auto with_seed = [&](std::int64_t seed) {
    return disturbed(job, request, {.jitter = 0.1, .seed = seed}).timeline;
  };
  const Timeline first = with_seed(3);
  EXPECT_EQ(first, with_seed(3));
  EXPECT_NE(first.makespan, with_seed(4).makespan);
}

}  // namespace
}  // namespace trainyard
