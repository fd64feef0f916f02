// Compares the search under the analytic estimate with a naive enumeration of small random
// scenarios (every number for every degree, whatever make_plan accepts), and its bounds with the
// estimate of every plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "model/cost/estimate.h"
#include "planner/planner.h"
#include "tests/planner/random_jobs.h"
#include "tests/planner/software_limits.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

// What a user has named; an empty list leaves the key free.
struct Named {
  std::vector<int> layers;  // of each stage or chunk
  std::vector<RecomputeChoice> recomputes;
  std::vector<std::string> offloads;
  std::vector<std::string> schedules;
  std::vector<std::string> rank_orders;
  Numbers pipelines, replicas, zero_stages;
  std::function<bool(const Plan&)> runs = {};  // what the stack's limits leave; empty: all
};

// Calls `visit` with every plan that make_plan accepts, over all values of every key.
class EveryPlan {
 public:
  EveryPlan(const Job& job, const Named& named, std::function<void(const Plan&)> visit)
      : job_(job), named_(named), devices_(job.cluster.devices()), visit_(std::move(visit)) {
    request_.layers_per_stage = named.layers;
    each(request_.tensor_parallel, devices_, [this] {
      each(request_.pipeline_parallel, devices_ / request_.tensor_parallel,
           [this] { each(request_.context_parallel, devices_, [this] { experts(); }); });
    });
  }

 private:
  static void each(int& value, int most, const std::function<void()>& then) {
    for (value = 1; value <= most; ++value) then();
  }

  // An empty list allows any name.
  static bool has(const std::vector<std::string>& names, std::string_view name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  }

  void experts() {
    const int replica =
        request_.tensor_parallel * request_.pipeline_parallel * request_.context_parallel;
    if (devices_ % replica != 0 || !named_.replicas.has(devices_ / replica) ||
        !named_.pipelines.has(request_.pipeline_parallel)) {
      return;
    }
    const int most = job_.model.experts > 0 ? 4 : 1;
    each(request_.expert_parallel, most,
         [this, most] { each(request_.expert_tensor_parallel, most, [this] { steps(); }); });
  }

  void steps() {
    // Chunks of a single stage are no pipeline, so here the search names layers of stages.
    if (request_.pipeline_parallel == 1 && request_.layers_per_stage.size() > 1) return;
    // 1F1B is the best schedule of a single stage.
    const bool has_best = has(named_.schedules, "1f1b");
    const int most = request_.pipeline_parallel > 1 ? 4 : (has_best ? 1 : job_.model.layers + 2);
    int chunks = 1;
    each(request_.micro_batch, 8, [this, &chunks, most] {
      each(chunks, most, [this, &chunks] {
        request_.virtual_stages = chunks;
        for (const Schedule* schedule : schedules()) {
          if (!has(named_.schedules, schedule->name)) continue;
          request_.schedule = schedule->name;
          communication();
        }
      });
    });
  }

  void communication() {
    request_.zero_stage = 0;
    const bool sequence = job_.training.stack.sequence_parallel || job_.model.experts > 0;
    for (const bool choice : {false, true}) {
      if (choice && (!sequence || request_.tensor_parallel == 1)) continue;
      request_.sequence_parallel = choice;
      for (const auto algorithm :
           {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
        request_.context_parallel_algorithm = algorithm;
        for (const std::string& order : rank_orders()) {
          request_.rank_order = order;
          if (plan_if_legal(request_, job_.model, job_.cluster, job_.training)) offloads();
        }
      }
    }
  }

  // The named orders of the ranks, or those of the stack: pp before dp only where experts have as
  // many replicas as the rest; a dense network counts as experts of t ranks.
  std::vector<std::string> rank_orders() const {
    if (!named_.rank_orders.empty()) return named_.rank_orders;
    const PlanRequest& r = request_;
    const bool dense = job_.model.experts == 0;
    const int experts = dense ? r.tensor_parallel : r.expert_parallel * r.expert_tensor_parallel;
    const int stage = devices_ / r.pipeline_parallel;
    const int replicas = stage / (r.tensor_parallel * r.context_parallel);
    const bool alike = experts * replicas == stage;
    std::vector<std::string> orders = {"tp-cp-ep-dp-pp"};
    const std::vector<std::string>& known = job_.training.stack.rank_orders;
    if (known.size() > 1 && alike) orders.push_back(known.at(1));
    return orders;
  }

  std::vector<int> groups(int stage) const {
    const Plan plan = *plan_if_legal(request_, job_.model, job_.cluster, job_.training);
    std::vector<int> sizes = {plan.data_parallel * plan.context_parallel};
    const std::vector<int>& grouped = job_.training.stack.grouped_sharding;
    const bool can = std::find(grouped.begin(), grouped.end(), stage) != grouped.end();
    if (!can || job_.model.experts > 0) return sizes;
    for (int size = 2; size < sizes.front(); ++size) {
      if (sizes.front() % size == 0) sizes.push_back(size);
    }
    return sizes;
  }

  // Activations on the host instead of recomputation, under ZeRO-3 without a pipeline.
  bool instead_of_recompute(const OffloadChoice& choice, int stage) const {
    return job_.training.stack.offloads_activations && named_.offloads.empty() && stage == 3 &&
           choice.name == "activations" && request_.pipeline_parallel == 1;
  }

  // The named offloads, or else those that the stack can do under this ZeRO stage.
  bool may_offload(const OffloadChoice& choice, int stage) const {
    if (!named_.offloads.empty()) return has(named_.offloads, choice.name);
    if (instead_of_recompute(choice, stage)) return true;
    if (choice.zero_stages == nullptr) return true;
    const std::vector<int>& stages = job_.training.stack.offload.*choice.zero_stages;
    return std::find(stages.begin(), stages.end(), stage) != stages.end();
  }

  void offloads() {
    for (const OffloadChoice& choice : kOffloads) {
      request_.offload = choice.offload;
      if (plan_if_legal(request_, job_.model, job_.cluster, job_.training)) memory(choice);
    }
    request_.offload = {};
  }

  // The named ZeRO stages, or else those of the stack.
  bool may_shard(int stage) const {
    if (!named_.zero_stages.empty()) return named_.zero_stages.has(stage);
    const Stack& stack = job_.training.stack;
    const bool pipeline = request_.pipeline_parallel > 1 && !stack.pipeline_zero_stages.empty();
    const std::vector<int>& known = pipeline ? stack.pipeline_zero_stages : stack.zero_stages;
    return known.empty() || std::find(known.begin(), known.end(), stage) != known.end();
  }

  void memory(const OffloadChoice& choice_of_hosts) {
    for (int stage = 0; stage <= 3; ++stage) {
      if (!may_offload(choice_of_hosts, stage) || !may_shard(stage)) continue;
      request_.zero_stage = stage;
      for (const int group : groups(stage)) {
        request_.sharding_group = group;
        instead_of_recompute(choice_of_hosts, stage) ? visit_if_legal() : repeats();
        request_.sharding_group.reset();
      }
    }
  }

  void visit_if_legal() {
    const auto plan = plan_if_legal(request_, job_.model, job_.cluster, job_.training);
    if (plan) visit_(*plan);
  }

  void repeats() {
    for (const RecomputeChoice& choice : named_.recomputes) repeat(choice);
    if (!named_.recomputes.empty()) return;
    for (const auto mode : {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
      request_.recompute.mode = mode;
      visit_if_legal();
    }
    repeat_some_layers();
  }

  void repeat(const RecomputeChoice& choice) {
    request_.recompute = choice.every_stage;
    request_.recompute_per_stage = choice.per_stage;
    visit_if_legal();
    request_.recompute = {};
    request_.recompute_per_stage.clear();
  }

  bool may_repeat(int layers) const {
    switch (job_.training.stack.partial_recompute) {
      case PartialRecompute::by_stage:
        return true;
      case PartialRecompute::by_chunk:
        return layers % request_.virtual_stages.value_or(1) == 0;
      case PartialRecompute::none:
        break;
    }
    return false;
  }

  // Full recomputation of one layer of each stage, of two, …
  void repeat_some_layers() {
    const int pipeline = request_.pipeline_parallel;
    const int most = job_.model.layers - (request_.layers_per_stage.empty() ? pipeline - 1 : 0);
    request_.recompute = {.mode = RecomputeMode::full};
    for (int layers = 1; layers < most + job_.model.mtp_layers; ++layers) {
      if (!may_repeat(layers)) continue;
      request_.recompute.full_layers = layers;
      visit_if_legal();
    }
    request_.recompute = {};
  }

  const Job& job_;
  const Named& named_;
  int devices_;
  std::function<void(const Plan&)> visit_;
  PlanRequest request_;
};

// The lowest objective of all plans that fit, and the lowest memory of all plans.
struct Lowest {
  double objective = std::numeric_limits<double>::infinity();
  double fullness = std::numeric_limits<double>::infinity();  // of every plan
};

Lowest lowest(const PreparedJob& job, Objective objective, const Named& named) {
  Lowest found;
  Estimate priced;
  const Estimator estimator(job);
  EveryPlan(job.job, named, [&](const Plan& plan) {
    if (named.runs && !named.runs(plan)) return;
    estimator.estimate(plan, priced);
    found.fullness = std::min(found.fullness, priced.fullness);
    if (priced.feasible) {
      found.objective = std::min(found.objective, objective_value(objective, priced));
    }
  });
  return found;
}

void expect_the_same(const PreparedJob& job, Objective objective, int scenario, const Named& named,
                     SearchResult& found) {
  const Lowest expected = lowest(job, objective, named);
  SearchOptions options{.objective = objective, .top = 1};
  options.base.layers_per_stage = named.layers;
  options.space.recompute = named.recomputes;
  options.space.offload = named.offloads;
  options.space.schedule = named.schedules;
  options.space.rank_order = named.rank_orders;
  options.space.pipeline_parallel = named.pipelines;
  options.space.data_parallel = named.replicas;
  options.space.zero_stage = named.zero_stages;
  found = search(job, options, analytic_evaluator(job));
  ASSERT_TRUE(found.optimal);
  ASSERT_EQ(found.considered, found.space_size);
  ASSERT_EQ(found.considered, found.pruned + found.evaluated + found.illegal);
  ASSERT_EQ(found.plans.empty(), expected.objective == std::numeric_limits<double>::infinity())
      << "scenario " << scenario;
  if (found.plans.empty()) {
    ASSERT_EQ(found.closest.at(0).estimate.fullness, expected.fullness) << "scenario " << scenario;
  } else {
    // Plans whose traffic hides recomputation are equal up to the last bits; one of them is priced.
    ASSERT_DOUBLE_EQ(objective_value(objective, found.plans[0].estimate), expected.objective)
        << "scenario " << scenario;
  }
}

// Returns the result of the search.
SearchResult expect_the_same(const PreparedJob& job, Objective objective, int scenario,
                             const Named& named = {}) {
  SearchResult found;
  expect_the_same(job, objective, scenario, named, found);
  return found;
}

void expect_the_same(int scenarios) {
  constexpr Objective kObjectives[] = {Objective::step_time, Objective::step_time, Objective::cost,
                                       Objective::energy, Objective::memory};
  RandomJobs drawn(11);
  for (int i = 0; i < scenarios; ++i) {
    const PreparedJob job = prepare(drawn.next());
    expect_the_same(job, kObjectives[i % 5], i);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFinds) { expect_the_same(random_cases(40)); }

void expect_the_same_with_multi_token_prediction(int scenarios) {
  constexpr Objective kObjectives[] = {Objective::step_time, Objective::memory, Objective::cost,
                                       Objective::step_time, Objective::energy};
  RandomJobs drawn(23);
  for (int i = 0; i < scenarios; ++i) {
    Job job = drawn.next();
    job.model.mtp_layers = 1;
    expect_the_same(prepare(job), kObjectives[i % 5], i);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsWithMultiTokenPrediction) {
  expect_the_same_with_multi_token_prediction(random_cases(20));
}

TEST(ExhaustiveSearch, DISABLED_FindsWhatBranchAndBoundFindsWithMultiTokenPredictionInMany) {
  expect_the_same_with_multi_token_prediction(300);
}

TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsUnderNamedLayers) {
  RandomJobs drawn(12);
  for (int i = 0; i < random_cases(24); ++i) {
    Job job = drawn.next();
    job.model.layers = 6;
    const std::vector<int> layers =
        std::vector<std::vector<int>>{
            {4, 2}, {2, 4}, {1, 2, 2, 1}, {0, 3, 3, 0}, {6}, {5, 1, 0, 0}}[static_cast<std::size_t>(
            i % 6)];
    expect_the_same(prepare(job), i % 2 == 0 ? Objective::step_time : Objective::memory, i,
                    {.layers = layers});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsUnderNamedRecomputation) {
  const Recompute none, one{RecomputeMode::full, 1}, all{RecomputeMode::full, 0};
  const std::vector<std::vector<RecomputeChoice>> choices = {
      {{one, {}}},
      {{{RecomputeMode::full, 2}, {}}, {{RecomputeMode::selective, 0}, {}}},
      {{{}, {one, none}}, {{}, {all, none}}},
      {{{}, {all, one, none, none}}, {{}, {none, all}}, {none, {}}}};
  RandomJobs drawn(13);
  for (int i = 0; i < random_cases(24); ++i) {
    const PreparedJob job = prepare(drawn.next());
    expect_the_same(job, i % 3 == 0 ? Objective::memory : Objective::step_time, i,
                    {.recomputes = choices[static_cast<std::size_t>(i % 4)]});
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Without 1F1B, the schedules of a single stage differ in how many micro-batches they keep.
TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsUnderNamedSchedules) {
  const std::vector<std::vector<std::string>> names = {
      {"gpipe", "zb-h1"}, {"zb-h1", "zb-h2"}, {"interleaved-1f1b", "zb-v"}, {"gpipe", "zb-v"}};
  RandomJobs drawn(19);
  for (int i = 0; i < random_cases(16); ++i) {
    const PreparedJob job = prepare(drawn.next());
    expect_the_same(job, i % 3 == 0 ? Objective::memory : Objective::step_time, i,
                    {.schedules = names[static_cast<std::size_t>(i % 4)]});
    if (testing::Test::HasFatalFailure()) return;
  }
}

// A share of the memory that the states of a whole node's ranks need: enough for some plans only.
std::optional<Bytes> part_of_states(const Job& job, int i) {
  constexpr std::array kShares = {0.02, 0.2, 1.0};
  if (i % 4 == 3) return std::nullopt;
  constexpr double kBytes = 16;  // a parameter with its gradient and Adam's states
  return Bytes(kShares[static_cast<std::size_t>(i % 4)] * kBytes * prepare(job).parameters);
}

// Links to the host from slow to fast; hosts with little and with much memory.
void expect_the_same_with_offload(int scenarios) {
  constexpr Objective kObjectives[] = {Objective::step_time, Objective::energy, Objective::memory};
  RandomJobs drawn(14);
  for (int i = 0; i < scenarios; ++i) {
    Job job = drawn.next();
    job.cluster.device.host_bandwidth =
        BytesPerSecond(1e9 * std::vector<double>{1, 8, 64, 1000}[static_cast<std::size_t>(i % 4)]);
    job.cluster.host_memory = part_of_states(job, i / 4);
    expect_the_same(prepare(job), kObjectives[i % 3], i,
                    {.offloads = {"none", "optimizer", "activations", "states", "all"}});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsWithOffload) {
  expect_the_same_with_offload(random_cases(12));
}

TEST(ExhaustiveSearch, DISABLED_FindsWhatBranchAndBoundFindsWithOffloadInThreeHundredScenarios) {
  expect_the_same_with_offload(300);
}

// What one stage recomputes and another does not implies nothing for plans that recompute nothing.
TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsWithOffloadUnderNamedRecomputation) {
  const Recompute none, all{RecomputeMode::full, 0};
  RandomJobs drawn(17);
  for (int i = 0; i < random_cases(16); ++i) {
    Job job = drawn.next();
    job.cluster.device.host_bandwidth = BytesPerSecond(i % 2 == 0 ? 8e9 : 1e12);
    expect_the_same(prepare(job), i % 4 == 3 ? Objective::cost : Objective::step_time, i,
                    {.recomputes = {{{}, {all, none}}, {{}, {all, all}}, {none, {}}, {all, {}}},
                     .offloads = {"none", "optimizer", "activations"}});
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Nothing is named, so the stack decides what lies on the hosts.
TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsWhereTheStackOffloads) {
  RandomJobs drawn(16);
  for (int i = 0; i < random_cases(12); ++i) {
    Job job = drawn.next();
    job.cluster.device.host_bandwidth = BytesPerSecond(i % 2 == 0 ? 8e9 : 64e9);
    StackOffload& offload = job.training.stack.offload;
    (i % 3 == 0 ? offload.activations : offload.optimizer) = {1};
    offload.states = {2, 3};
    expect_the_same(prepare(job), i % 4 == 3 ? Objective::cost : Objective::step_time, i);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// ZeRO stages and numbers of recomputed layers that the stack does not run; some would be faster.
TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsOfWhatTheStackOffers) {
  constexpr Objective kObjectives[] = {Objective::step_time, Objective::step_time,
                                       Objective::memory};
  RandomJobs drawn(29);
  int slower = 0;
  for (int i = 0; i < random_cases(24); ++i) {
    Job job = drawn.next();
    const SearchResult any = expect_the_same(prepare(job), kObjectives[i % 3], i);
    if (testing::Test::HasFatalFailure()) return;
    Stack& stack = job.training.stack;
    stack.pipeline_zero_stages = {0, 1};
    if (i % 2 == 0) stack.zero_stages = {0, 2, 3};
    stack.partial_recompute = i % 4 == 3 ? PartialRecompute::none : PartialRecompute::by_chunk;
    const SearchResult offered = expect_the_same(prepare(job), kObjectives[i % 3], i);
    if (testing::Test::HasFatalFailure()) return;
    const auto value = [&](const SearchResult& found) {
      return found.plans.empty() ? std::numeric_limits<double>::infinity()
                                 : objective_value(kObjectives[i % 3], found.plans[0].estimate);
    };
    if (value(offered) > value(any)) ++slower;
  }
  EXPECT_GT(slower, 0);
}

TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsWithinTheLimitsOfTheStack) {
  RandomJobs drawn(31);
  int slower = 0;
  for (int i = 0; i < random_cases(32); ++i) {
    Job job = drawn.next();
    const int software = i % 4;
    job.training.stack.limits = limits_like(software);
    if (software == 0) job.training.stack.grouped_sharding = {2, 3};
    Job unlimited = job;
    unlimited.training.stack.limits = {};
    const Named named{.runs = [&](const Plan& plan) { return runs_like(software, job, plan); }};
    const SearchResult within = expect_the_same(prepare(job), Objective::step_time, i, named);
    if (testing::Test::HasFatalFailure()) return;
    const PreparedJob any = prepare(unlimited);
    const SearchResult all = search(any, {.top = 1}, analytic_evaluator(any));
    if (within.plans.empty() || all.plans.empty()) continue;
    if (all.plans[0].estimate.step_time < within.plans[0].estimate.step_time) ++slower;
  }
  EXPECT_GT(slower, 0);
}

// Many tokens and few parameters, so that placing the stages close together matters most.
void send_more_than_reduce(Job& job) {
  job.model.hidden_size = 256;
  job.model.ffn_size = 768;
  job.model.vocabulary = 1024;
  job.training.sequence_length = 16384;
  job.training.stack.overlap.pipeline = false;
  job.cluster.device.memory = Bytes(80e9);
}

// Activations fill the memory of the device, so recomputation or offloading is needed.
TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsWhereTheStackOffloadsInsteadOfRecomputing) {
  RandomJobs drawn(21);
  int offloaded = 0;
  for (int i = 0; i < random_cases(24); ++i) {
    Job job = drawn.next();
    send_more_than_reduce(job);
    job.cluster.device.memory = Bytes(0.5e9 * (2 + i % 5));
    job.cluster.device.host_bandwidth = BytesPerSecond(i % 2 == 0 ? 64e9 : 1e12);
    job.training.stack.offloads_activations = true;
    const auto objective = i % 4 == 3 ? Objective::memory : Objective::step_time;
    Named named;
    if (i % 3 > 0) named.zero_stages = {3};
    const SearchResult found = expect_the_same(prepare(job), objective, i, named);
    if (testing::Test::HasFatalFailure()) return;
    if (found.plans.empty()) continue;
    const Offload& best = found.plans.front().plan.offload;
    offloaded += best.activations == OffloadTarget::host ? 1 : 0;
  }
  EXPECT_GT(offloaded, 0);
}

// Leaves of one or two nodes with slow links above them: the placement of ranks matters.
Job with_placements(Job job, int i) {
  const auto pick = [i](std::vector<double> values) {
    return values[static_cast<std::size_t>(i / 3) % values.size()];
  };
  InterNode& inter = job.cluster.inter;
  inter.nodes_per_leaf = 1 + i % 2;
  inter.oversubscription = pick({1, 4, 16});
  inter.bandwidth = inter.bandwidth / pick({1, 8, 30, 2});
  job.cluster.device.host_bandwidth = BytesPerSecond(pick({8e9, 64e9}));
  Stack& stack = job.training.stack;
  stack.rank_orders = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
  stack.grouped_sharding =
      std::vector<std::vector<int>>{{1}, {2, 3}, {1, 2, 3}}[static_cast<std::size_t>(i % 3)];
  if (i % 5 == 4) stack.sharded_update_per_rank = Seconds(1e-4);
  if (i % 4 == 3) stack.offload = {.optimizer = {1}, .states = {2, 3}};
  if (i % 4 == 1) send_more_than_reduce(job);
  return job;
}

void expect_the_same_of_placements(int scenarios) {
  constexpr Objective kObjectives[] = {Objective::step_time, Objective::step_time,
                                       Objective::energy, Objective::step_time, Objective::cost};
  RandomJobs drawn(18);
  int reordered = 0;
  for (int i = 0; i < scenarios; ++i) {
    const PreparedJob job = prepare(with_placements(drawn.next(), i));
    Named named;
    if (i % 4 == 1) named = {.pipelines = Numbers::between(2, 8), .replicas = {2, 4}};
    if (i % 4 == 2) named = {.pipelines = {1}, .zero_stages = {3}};
    if (i % 4 == 3) named = {.replicas = Numbers::between(2, 8), .zero_stages = {1, 2, 3}};
    const SearchResult found = expect_the_same(job, kObjectives[i % 5], i, named);
    if (testing::Test::HasFatalFailure()) return;
    if (found.plans.empty()) continue;
    const Plan& best = found.plans.front().plan;
    reordered += best.rank_order != PlanRequest().rank_order ? 1 : 0;
  }
  EXPECT_GT(reordered, 0);
}

TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsOfOrdersAndGroups) {
  expect_the_same_of_placements(random_cases(24));
}

TEST(ExhaustiveSearch, DISABLED_FindsWhatBranchAndBoundFindsOfOrdersAndGroupsInThreeHundred) {
  expect_the_same_of_placements(300);
}

// Named orders of the ranks, including those that place the layers elsewhere.
TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsOfNamedOrders) {
  RandomJobs drawn(19);
  for (int i = 0; i < random_cases(12); ++i) {
    Job job = with_placements(drawn.next(), i);
    job.training.stack.grouped_sharding.clear();
    expect_the_same(prepare(job), i % 3 == 2 ? Objective::energy : Objective::step_time, i,
                    {.rank_orders = {"tp-cp-ep-pp-dp", "pp-tp-cp-ep-dp", "dp-pp-cp-ep-tp"}});
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Stages of three ranks on nodes of four: the first lies in one node, the second in two.
TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsOfStagesThatLieInUnlikeWays) {
  RandomJobs drawn(23);
  for (int i = 0; i < random_cases(6); ++i) {
    Job job = with_placements(drawn.next(), i);
    job.cluster.devices_per_node = job.cluster.nvlink_domain = job.cluster.inter.nics_per_node = 4;
    job.cluster.nodes = 3;
    job.training.global_batch = 12;
    expect_the_same(prepare(job), Objective::step_time, i,
                    {.pipelines = {2, 4}, .zero_stages = {1, 2, 3}});
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Where no backward pass is split, bounds know more about a pipeline.
void expect_the_same_of_whole_backward_passes(int scenarios) {
  constexpr Objective kObjectives[] = {Objective::step_time, Objective::energy, Objective::cost};
  RandomJobs drawn(15);
  for (int i = 0; i < scenarios; ++i) {
    const PreparedJob job = prepare(drawn.next());
    expect_the_same(job, kObjectives[i % 3], i,
                    {.schedules = {"1f1b", "interleaved-1f1b", "gpipe"}});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ExhaustiveSearch, FindsWhatBranchAndBoundFindsOfWholeBackwardPasses) {
  expect_the_same_of_whole_backward_passes(random_cases(24));
}

TEST(ExhaustiveSearch, DISABLED_FindsWhatBranchAndBoundFindsOfThreeHundredOfWholeBackwardPasses) {
  expect_the_same_of_whole_backward_passes(300);
}

// Half a minute: --gtest_also_run_disabled_tests.
TEST(ExhaustiveSearch, DISABLED_FindsWhatBranchAndBoundFindsInThreeHundredScenarios) {
  expect_the_same(300);
}

}  // namespace
}  // namespace trainyard
