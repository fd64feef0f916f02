// Folding: ranks that behave alike are played once and must have the times of all ranks played.
// Tested on random legal plans of every schedule, fabric and kind of sequences and routing. Where
// the ranks of a stage are not all alike, several are played for it; where nearly none are alike,
// folding is refused. By hand any number of draws: TRAINYARD_FOLD_PLANS=3000 simulator_fold_test
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <random>

#include "model/schedule/schedule.h"
#include "simulator/reading/critical_path.h"
#include "simulator/step.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

constexpr std::array kFabrics = {InterNodeKind::fat_tree, InterNodeKind::rail,
                                 InterNodeKind::dragonfly, InterNodeKind::torus,
                                 InterNodeKind::graph};

const char* name_of(InterNodeKind kind) {
  constexpr std::array kNames = {"fat_tree", "rail", "dragonfly", "torus", "graph"};
  return kNames.at(static_cast<std::size_t>(std::ranges::find(kFabrics, kind) - kFabrics.begin()));
}

// Draws leaves of two nodes, each joined to two spines.
void draw_leaves(InterNode& inter, int nodes, BytesPerSecond between) {
  const int leaves = nodes / 2;
  inter.switches.assign(static_cast<std::size_t>(leaves) + 2, "switch");
  for (int node = 0; node < nodes; ++node) {
    inter.links.push_back({{true, node}, {false, node / 2}, BytesPerSecond(200e9)});
  }
  for (int leaf = 0; leaf < leaves; ++leaf) {
    inter.links.push_back({{false, leaf}, {false, leaves}, between});
    inter.links.push_back({{false, leaf}, {false, leaves + 1}, between});
  }
}

// `nodes` nodes of eight H100 with one NIC each, 200 GB/s per node; links between switches carry
// `between`. The fabric is a torus of one or two dimensions, a dragonfly with groups of two
// switches, or a graph of leaves of two nodes below two spines.
Cluster fabric_of(InterNodeKind kind, int nodes, BytesPerSecond between, bool flat = true) {
  Cluster cluster = llama_8b_on_h100(nodes).job.cluster;
  InterNode& inter = cluster.inter;
  inter.kind = kind;
  inter.nodes_per_leaf = 2;
  inter.link_bandwidth = between;
  if (kind == InterNodeKind::torus) {
    inter.nodes_per_leaf = 1;
    inter.dimensions = flat ? std::vector<int>{nodes} : std::vector<int>{nodes / 2, 2};
  }
  if (kind == InterNodeKind::dragonfly) {
    inter.nodes_per_leaf = 1;
    inter.leaves_per_group = nodes > 2 ? 2 : 1;
    inter.global_links = std::max(1, nodes / inter.leaves_per_group - 1);
  }
  if (kind == InterNodeKind::graph) draw_leaves(inter, nodes, between);
  return cluster;
}

struct Case {
  PreparedJob job;
  Plan plan;
  StepConditions conditions;
};

// Random plans on up to 64 ranks; next() gives nothing if what it drew is no legal plan.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  std::optional<Case> next() {
    Job job = llama_8b_on_h100().job;
    if (one_of({0, 0, 1}) == 1) job.model = mixtral_8x7b();
    job.model.layers = one_of({4, 8});
    const int nodes = one_of({2, 2, 4, 4, 8});
    job.cluster = cluster(nodes);
    PlanRequest request = plan_request(job.model.experts > 0);
    const int replica =
        request.tensor_parallel * request.context_parallel * request.pipeline_parallel;
    const int replicas = 8 * nodes / replica;
    if (replicas == 0) return std::nullopt;
    const int each = one_of({1, 2, 3}) * 2 * request.pipeline_parallel;  // micro-batches
    job.training.sequence_length = one_of({1024, 4096});
    job.training.global_batch = std::int64_t{each} * request.micro_batch * replicas;
    const StepConditions conditions = conditions_of(job, request, replicas);
    const auto plan = plan_if_legal(request, job.model, job.cluster, job.training);
    if (!plan) return std::nullopt;
    return Case{prepare(job), *plan, conditions};
  }

 private:
  int one_of(std::initializer_list<int> from) {
    return *(from.begin() + static_cast<std::ptrdiff_t>(random_() % from.size()));
  }
  bool coin() { return one_of({0, 1}) == 1; }

  Cluster cluster(int nodes) {
    const InterNodeKind kind = kFabrics.at(random_() % kFabrics.size());
    const BytesPerSecond between(one_of({50, 400}) * 1e9);
    Cluster cluster = fabric_of(kind, nodes, between, coin());
    cluster.inter.oversubscription = one_of({1, 2});
    if (kind == InterNodeKind::torus && coin()) {
      cluster.inter.routing = FabricRouting::static_paths;
    }
    if (kind == InterNodeKind::dragonfly && coin()) cluster.inter.routing = FabricRouting::valiant;
    return cluster;
  }

  // Tensor groups lie inside and across nodes; every schedule is drawn.
  PlanRequest plan_request(bool has_experts) {
    PlanRequest request;
    request.tensor_parallel = one_of({1, 2, 4, 8, 16});
    request.pipeline_parallel = one_of({1, 2, 4});
    request.context_parallel = one_of({1, 1, 2, 4});
    request.context_parallel_algorithm = static_cast<ContextAlgorithm>(one_of({0, 1, 2}));
    if (has_experts) request.expert_parallel = one_of({1, 2, 4, 8});
    request.sequence_parallel = coin() && request.tensor_parallel > 1;
    request.zero_stage = one_of({0, 1, 2, 3});
    request.micro_batch = one_of({1, 1, 2});
    request.recompute.mode = coin() ? RecomputeMode::none : RecomputeMode::full;
    const auto all = schedules();
    const Schedule& schedule = *all[random_() % all.size()];
    request.schedule = schedule.name;
    if (schedule.needs_chunks) request.virtual_stages = 2;
    return request;
  }

  // Half of the conditions give all replicas the same work: as many sequences of each length as
  // there are sequences in a micro-batch on all replicas.
  StepConditions conditions_of(const Job& job, const PlanRequest& request, int replicas) {
    StepConditions conditions{.seed = one_of({0, 1, 2})};
    if (coin()) conditions.sequences = sequences(job.training, request.micro_batch * replicas);
    if (job.model.experts > 0 && coin()) {
      conditions.routing = ExpertRouting{.skew = 1};
      if (coin()) conditions.routing->shares.assign(static_cast<std::size_t>(job.model.experts), 1);
    }
    return conditions;
  }

  SequenceMix sequences(const Training& training, int copies) {
    SequenceMix mix{.balanced = coin()};
    (coin() ? mix.dynamic : mix.packed) = coin();
    if (one_of({0, 0, 1}) == 1) {
      mix.law = coin() ? LengthLaw::uniform : LengthLaw::lognormal;
      mix.mean = training.sequence_length / 4;
      return mix;
    }
    for (int kinds = one_of({1, 2, 5}); kinds > 0; --kinds) {
      const auto length = static_cast<std::int64_t>(
          1 + random_() % static_cast<std::uint64_t>(training.sequence_length));
      mix.lengths.insert(mix.lengths.end(), static_cast<std::size_t>(copies), length);
    }
    return mix;
  }

  std::mt19937_64 random_;
};

// Equal nodes in fat trees and rails, with plans as published runs lay them: experts beside tensor
// groups, sharded states, sharding groups, orders of the ranks. Up to 64 ranks; next() gives
// nothing if what it drew is no legal plan.
class EqualNodes {
 public:
  explicit EqualNodes(std::uint64_t seed) : random_(seed) {}

  std::optional<Case> next() {
    Job job = llama_8b_on_h100().job;
    if (one_of({0, 1, 1}) == 1) job.model = mixtral_8x7b();
    job.model.layers = one_of({4, 8});
    const int nodes = one_of({3, 4, 6, 8, 8});
    job.cluster = cluster(nodes);
    const PlanRequest request = plan_request(job.model.experts > 0);
    const int replica =
        request.tensor_parallel * request.context_parallel * request.pipeline_parallel;
    const int replicas = 8 * nodes / replica;
    const int each = one_of({1, 2, 3}) * 2 * request.pipeline_parallel;  // micro-batches
    job.training.sequence_length = one_of({1024, 4096});
    job.training.global_batch = std::int64_t{each} * request.micro_batch * replicas;
    const auto plan = plan_if_legal(request, job.model, job.cluster, job.training);
    if (!plan) return std::nullopt;
    return Case{prepare(job), *plan, {}};
  }

 private:
  int one_of(std::initializer_list<int> from) {
    return *(from.begin() + static_cast<std::ptrdiff_t>(random_() % from.size()));
  }
  bool coin() { return one_of({0, 1}) == 1; }

  // One NIC per device or per two devices, and NVLink at full width or as in an H800.
  Cluster cluster(int nodes) {
    const InterNodeKind kind = coin() ? InterNodeKind::fat_tree : InterNodeKind::rail;
    Cluster cluster = fabric_of(kind, nodes, BytesPerSecond(0));
    cluster.inter.nodes_per_leaf = nodes % 2 == 0 && coin() ? 2 : nodes;
    cluster.inter.oversubscription = one_of({1, 1, 4});
    if (one_of({0, 0, 1}) == 1) cluster.inter.nics_per_node = 4;
    if (coin()) cluster.intra.bandwidth = BytesPerSecond(200e9);
    return cluster;
  }

  PlanRequest plan_request(bool has_experts) {
    constexpr std::array kOrders = {"tp-cp-ep-dp-pp", "tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp",
                                    "tp-pp-cp-ep-dp", "tp-dp-cp-ep-pp"};
    PlanRequest request;
    request.tensor_parallel = one_of({1, 2, 4, 8});
    request.pipeline_parallel = one_of({1, 2, 4});
    request.context_parallel = one_of({1, 1, 1, 2, 4});
    request.context_parallel_algorithm = static_cast<ContextAlgorithm>(one_of({0, 1, 2}));
    if (has_experts) {
      request.expert_parallel = one_of({1, 2, 4, 8});
      request.expert_tensor_parallel = one_of({1, 1, request.tensor_parallel});
    }
    request.sequence_parallel = request.tensor_parallel > 1;
    request.zero_stage = one_of({0, 1, 1, 2, 3});
    if (one_of({0, 0, 1}) == 1) request.sharding_group = one_of({2, 4, 8});
    request.rank_order = kOrders.at(random_() % kOrders.size());
    const auto all = schedules();
    const Schedule& schedule = *all[random_() % all.size()];
    request.schedule = schedule.name;
    if (schedule.needs_chunks) request.virtual_stages = 2;
    return request;
  }

  std::mt19937_64 random_;
};

// The folded rank that stands for a device.
int played_by(const StepSimulation& folded, const StepSimulation& whole, std::size_t device) {
  if (!folded.step.played_by.empty()) return folded.step.played_by[device];
  return whole.step.graph.ranks[device].list;
}

// Compares the ends of all tasks on all devices, to one picosecond per operation of the step.
void expect_same_ends(const StepSimulation& folded, const StepSimulation& whole) {
  double allowed = 0;
  for (const TaskList& list : whole.step.graph.lists) {
    allowed += static_cast<double>(list.tasks.size());
  }
  for (std::size_t device = 0; device < whole.step.graph.ranks.size(); ++device) {
    const auto found = whole.timeline.of(static_cast<int>(device));
    const auto expected = folded.timeline.of(played_by(folded, whole, device));
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t task = 0; task < found.size(); ++task) {
      const auto apart = static_cast<double>((found[task].end - expected[task].end).count());
      ASSERT_LE(std::abs(apart), allowed) << "device " << device << ", task " << task;
    }
  }
}

// Compares the times to one picosecond per operation on the critical path before them, on every
// rank for which a folded rank stands.
void expect_same_times(const StepSimulation& folded, const StepSimulation& whole) {
  const auto path = critical_path(folded.step, folded.timeline);
  ASSERT_FALSE(path.empty());
  double allowed = 0;
  for (const PathStep& step : path) {
    ++allowed;
    const auto task = static_cast<std::size_t>(step.task);
    const auto expected = folded.timeline.of(step.rank)[task].end.count();
    for (std::size_t rank = 0; rank < whole.step.graph.ranks.size(); ++rank) {
      if (played_by(folded, whole, rank) != step.rank) continue;
      const auto found = whole.timeline.of(static_cast<int>(rank))[task].end.count();
      ASSERT_LE(std::abs(static_cast<double>(found - expected)), allowed) << "rank " << rank;
    }
  }
  EXPECT_NEAR(static_cast<double>(folded.timeline.makespan.count()),
              static_cast<double>(whole.timeline.makespan.count()), allowed);
}

int draws_asked(int draws) {
  const char* asked = std::getenv("TRAINYARD_FOLD_PLANS");
  if (asked != nullptr) std::from_chars(asked, asked + std::string_view(asked).size(), draws);
  return draws;
}

using Counts = std::map<std::string, int>;

void count(const Case& one, Counts& compared) {
  ++compared[name_of(one.job.job.cluster.inter.kind)];
  ++compared[std::string(one.plan.schedule->name)];
  ++compared["ZeRO-" + std::to_string(one.plan.zero_stage)];
  if (one.conditions.sequences) ++compared["sequences"];
  if (one.conditions.sequences && one.conditions.sequences->dynamic) ++compared["dynamic"];
  if (one.conditions.routing) ++compared["routing"];
  if (one.plan.context_parallel > 1) ++compared["context"];
  if (one.plan.expert_parallel > 1) ++compared["experts"];
  if (one.plan.expert_parallel > 1 && one.plan.tensor_parallel > 1 && one.plan.zero_stage > 0) {
    ++compared["experts, tensor groups and ZeRO"];
  }
  const int replicas = one.plan.data_parallel * one.plan.context_parallel;
  if (one.plan.sharding_group < replicas) ++compared["sharding groups"];
  if (one.plan.rank_order != "tp-cp-ep-dp-pp") ++compared["orders"];
}

void compare(const Case& one, Counts& compared) {
  const auto folded = simulate(one.job, one.plan, {.conditions = one.conditions});
  ASSERT_TRUE(folded) << folded.error().where << ": " << folded.error().message;
  if (!folded->step.folded()) {
    EXPECT_NE(folded->unfolded_because.find("unlike"), std::string::npos)
        << folded->unfolded_because;
    ++compared["unlike"];
    const bool links = folded->unfolded_because.find("unlike links") != std::string::npos;
    compared["unlike links"] += links ? 1 : 0;
    return;
  }
  const auto whole = simulate(one.job, one.plan, {.fold = Fold::off, .conditions = one.conditions});
  ASSERT_TRUE(whole) << whole.error().message;
  expect_same_times(*folded, *whole);
  expect_same_ends(*folded, *whole);
  if (!folded->step.played_by.empty()) ++compared["parted"];
  count(one, compared);
}

TEST(Folding, GivesTheTimesOfAllRanksOnRandomPlans) {
  Draws draws(7);
  Counts compared;
  for (int i = draws_asked(random_cases(300)); i > 0; --i) {
    const auto one = draws.next();
    if (!one) continue;
    SCOPED_TRACE(testing::Message() << name_of(one->job.job.cluster.inter.kind) << ", "
                                    << one->plan.schedule->name << ", draw " << i);
    compare(*one, compared);
    if (testing::Test::HasFailure()) return;
  }
  if (kSanitized) return;  // a third of the plans
  EXPECT_LE(compared["unlike links"], 3);
  for (const char* kind : {"unlike", "parted", "ZeRO-0", "ZeRO-1", "ZeRO-2", "ZeRO-3", "sequences",
                           "dynamic", "routing", "context", "experts"}) {
    EXPECT_GE(compared[kind], 5) << kind;
  }
  for (const InterNodeKind kind : kFabrics) EXPECT_GE(compared[name_of(kind)], 10) << name_of(kind);
  for (const Schedule* schedule : schedules()) {
    EXPECT_GE(compared[std::string(schedule->name)], 5) << schedule->name;
  }
  for (const auto& [kind, number] : compared) RecordProperty(kind, number);
}

// Nineteen of twenty plans fold; the others lie on few nodes that their groups do not divide.
TEST(Folding, GivesTheTimesOfAllRanksOnEqualNodes) {
  EqualNodes draws(11);
  Counts compared;
  int played = 0;
  for (int i = draws_asked(random_cases(300)); i > 0; --i) {
    const auto one = draws.next();
    if (!one) continue;
    ++played;
    SCOPED_TRACE(testing::Message() << name_of(one->job.job.cluster.inter.kind) << ", "
                                    << one->plan.schedule->name << ", draw " << i);
    compare(*one, compared);
    if (testing::Test::HasFailure()) return;
  }
  if (kSanitized) return;  // a third of the plans
  EXPECT_GE(played, 150);
  EXPECT_LE(20 * compared["unlike"], played);
  EXPECT_GE(compared["parted"], 10);
  for (const char* kind : {"fat_tree", "rail", "ZeRO-0", "ZeRO-1", "ZeRO-2", "ZeRO-3",
                           "experts, tensor groups and ZeRO", "sharding groups", "orders"}) {
    EXPECT_GE(compared[kind], 20) << kind;
  }
  for (const Schedule* schedule : schedules()) {
    EXPECT_GE(compared[std::string(schedule->name)], 5) << schedule->name;
  }
  RecordProperty("played", played);
  for (const auto& [kind, number] : compared) RecordProperty(kind, number);
}

// ---- Refusals -----------------------------------------------------------------------------------

class OnEveryFabric : public testing::TestWithParam<InterNodeKind> {
 protected:
  // Eight nodes of `devices` devices, with two stages of tensor groups of four.
  static PreparedJob job(int devices = 8) {
    Job job = llama_8b_on_h100(8, std::int64_t{2} * devices).job;
    job.model.layers = 4;
    job.cluster = fabric_of(GetParam(), 8, BytesPerSecond(200e9), false);
    job.cluster.devices_per_node = job.cluster.nvlink_domain = devices;
    job.cluster.inter.nics_per_node = devices;
    return prepare(job);
  }

  static StepSimulation played(const StepConditions& conditions, const PreparedJob& on = job(),
                               Fold fold = Fold::automatic) {
    PlanRequest request;
    request.tensor_parallel = 4;
    request.pipeline_parallel = 2;
    request.zero_stage = 1;
    auto simulation =
        simulate(on, legal_plan(on, request), {.fold = fold, .conditions = conditions});
    if (!simulation) ADD_FAILURE() << simulation.error().where << simulation.error().message;
    return *std::move(simulation);
  }

  static void expect_like_all_ranks(const StepSimulation& simulation,
                                    const StepConditions& conditions, const PreparedJob& on) {
    if (simulation.step.folded()) {
      expect_same_times(simulation, played(conditions, on, Fold::off));
      return;
    }
    EXPECT_NE(simulation.unfolded_because.find("unlike links"), std::string::npos)
        << simulation.unfolded_because;
  }

  // A cable between two switches that only some nodes' sends of the first stage pass.
  static DegradedLinks slow_cable() {
    const auto leaf = [](int index) { return TopologyPlace{VertexKind::leaf, index}; };
    switch (GetParam()) {
      case InterNodeKind::dragonfly:
        return {.of = leaf(0), .to = leaf(1), .rate = 0.05};
      case InterNodeKind::torus:
      case InterNodeKind::graph:
        return {.of = leaf(0), .to = leaf(4), .rate = 0.05};
      default:
        return {.of = leaf(0), .to = TopologyPlace{VertexKind::spine, 0}, .rate = 0.05};
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, OnEveryFabric, testing::ValuesIn(kFabrics),
                         [](const auto& fabric) { return name_of(fabric.param); });

TEST_P(OnEveryFabric, RanksThatAreAlikeAreFolded) {
  const StepSimulation simulation = played({});
  EXPECT_TRUE(simulation.step.folded()) << simulation.unfolded_because;
  EXPECT_EQ(simulation.step.graph.ranks.size(), 2U);
}

TEST_P(OnEveryFabric, FoldingRefusesItselfForAStraggler) {
  const StepSimulation slow = played({.stragglers = {{.rank = 5, .speed = 0.9}}});
  EXPECT_FALSE(slow.step.folded());
  EXPECT_EQ(slow.unfolded_because, "ranks differ in speed");
}

TEST_P(OnEveryFabric, FoldingRefusesItselfForJitter) {
  const StepSimulation unsteady = played({.jitter = 0.05, .seed = 1});
  EXPECT_FALSE(unsteady.step.folded());
  EXPECT_EQ(unsteady.unfolded_because, "kernels jitter");
}

// The ranks that the slow part touches are played apart, or all ranks are.
TEST_P(OnEveryFabric, ASlowNicOrCablePartsRanksAndTheStepShowsIt) {
  const Seconds whole = played({}).step_time;
  for (const DegradedLinks& broken :
       {DegradedLinks{.of = {VertexKind::nic, 3}, .rate = 0.05}, slow_cable()}) {
    const StepSimulation slow = played({.links = {broken}});
    EXPECT_GT(slow.step.graph.ranks.size(), 2U);
    expect_like_all_ranks(slow, {.links = {broken}}, job());
    EXPECT_GT(slow.step_time, whole);
  }
}

// Tensor groups of 4 on nodes of 6 lie in one node or in two, so a stage has two kinds of groups.
TEST_P(OnEveryFabric, APlacementThatMakesGroupsUnlikePartsRanks) {
  const StepSimulation simulation = played({}, job(6));
  EXPECT_GT(simulation.step.graph.ranks.size(), 2U);
  expect_like_all_ranks(simulation, {}, job(6));
}

// Links with equal loads form one class, whatever they join: up and down, to NICs and to leaves.
TEST(Folding, CountsTheLinksOfAllRanksByTheirKind) {
  Job tree = llama_8b_on_h100(8, 64).job;
  tree.model.layers = 8;
  tree.cluster = fabric_of(InterNodeKind::fat_tree, 8, BytesPerSecond(0));
  tree.cluster.inter.oversubscription = 2;
  const PreparedJob job = prepare(tree);
  PlanRequest request;
  request.tensor_parallel = 4;
  request.pipeline_parallel = 2;
  const Plan plan = legal_plan(job, request);
  const auto folded = simulate(job, plan);
  const auto whole = simulate(job, plan, {.fold = Fold::off});
  ASSERT_TRUE(folded && whole);
  ASSERT_TRUE(folded->step.folded());
  ASSERT_FALSE(whole->links.empty());
  ASSERT_EQ(folded->links.size(), whole->links.size());
  for (std::size_t i = 0; i < whole->links.size(); ++i) {
    EXPECT_EQ(folded->links[i].kind, whole->links[i].kind);
    EXPECT_EQ(folded->links[i].links, whole->links[i].links) << whole->links[i].kind;
    EXPECT_NEAR(folded->links[i].mean, whole->links[i].mean, 1e-9);
    EXPECT_NEAR(folded->links[i].most, whole->links[i].most, 1e-9);
  }
}

}  // namespace
}  // namespace trainyard
