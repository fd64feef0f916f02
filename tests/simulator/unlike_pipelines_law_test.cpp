// Random pipelines through groups of unlike nodes: what the planner's pricer says of a plan, beside
// its simulation on the fabrics of the groups, which is the second computation of the step.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "scenarios/question.h"
#include "scenarios/unlike_step.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

struct Draw {
  std::vector<std::string> nodes;  // of each group
  std::vector<int> counts;
  std::vector<std::string> fabrics;  // of each group, as documents say it; empty: the nodes' own
  std::string model, stack, recompute, boundary;
  std::vector<int> layers;  // of each stage
  int tensor_parallel = 1, data_parallel = 1, microbatches = 1, zero_stage = 0;
};

class Drawing {
 public:
  explicit Drawing(unsigned seed) : random_(seed) {}

  // Groups of whole stages, with more or less layers a stage, as if devices differed in speed.
  Draw draw() {
    for (;;) {
      Draw drawn = draw_groups();
      const int nodes = std::accumulate(drawn.counts.begin(), drawn.counts.end(), 0);
      drawn.tensor_parallel = one_of({1, 2, 4, 8});
      const int devices = 8 * nodes;
      const int ranks_of_a_stage = drawn.tensor_parallel;
      const int stages = nodes * one_of({1, 2});
      if (devices % (stages * ranks_of_a_stage) != 0) continue;
      drawn.data_parallel = devices / (stages * ranks_of_a_stage);
      if (deal_layers(stages / nodes, drawn)) return drawn;
    }
  }

  // The same on fabrics whose links depend on how many nodes there are. The figures of a group's
  // own nodes count; those of all nodes differ.
  Draw draw_on_fabrics() {
    Draw drawn = draw();
    for (std::size_t i = 0; i < drawn.nodes.size(); ++i) {
      drawn.fabrics.push_back(one_of<std::string>(
          {R"(, "fabric": "torus-3d")", R"(, "fabric": "dragonfly")",
           R"(, "fabric": {"kind": "fat-tree", "nodes_per_leaf": 2, "oversubscription": 4})"}));
    }
    return drawn;
  }

 private:
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }

  Draw draw_groups() {
    Draw drawn;
    drawn.nodes = {"dgx-a100-80gb", "dgx-h100-80gb", "dgx-h200", "dgx-b200", "dgx1-v100"};
    std::shuffle(drawn.nodes.begin(), drawn.nodes.end(), random_);
    drawn.nodes.resize(one_of<std::size_t>({2, 2, 3}));
    for (std::size_t i = 0; i < drawn.nodes.size(); ++i) drawn.counts.push_back(one_of({1, 2, 4}));
    drawn.model = one_of<std::string>({"llama-3.1-8b", "mixtral-8x7b", "gpt3-175b", "llama-2-13b"});
    drawn.stack = one_of<std::string>({"megatron-core", "ideal", "internevo"});
    drawn.recompute = one_of<std::string>({"none", "selective", "full"});
    drawn.boundary = one_of<std::string>({"", "", R"(, "boundary_bandwidth": "3 GB/s")"});
    drawn.microbatches = one_of({4, 8, 16, 32});
    drawn.zero_stage = one_of({0, 1, 1, 2});
    return drawn;
  }

  // False: some stage would have no layer.
  bool deal_layers(int stages_of_a_node, Draw& drawn) {
    const int all = drawn.model == "gpt3-175b" ? 96 : (drawn.model == "llama-2-13b" ? 40 : 32);
    std::vector<double> shares;
    for (const int count : drawn.counts) {
      shares.insert(shares.end(), static_cast<std::size_t>(count * stages_of_a_node),
                    one_of({1.0, 1.5, 2.0, 3.0}));
    }
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    int left = all;
    for (std::size_t stage = 0; stage + 1 < shares.size(); ++stage) {
      drawn.layers.push_back(static_cast<int>(shares[stage] / sum * all));
      left -= drawn.layers.back();
    }
    drawn.layers.push_back(left);
    return std::ranges::min(drawn.layers) > 0;
  }

  std::mt19937 random_;
};

std::string text_of(const Draw& d) {
  std::vector<std::string> groups;
  std::vector<int> order(d.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = 0; i < d.nodes.size(); ++i) {
    groups.push_back(fmt::format(R"({{"node": "{}", "nodes": {}{}}})", d.nodes[i], d.counts[i],
                                 d.fabrics.empty() ? "" : d.fabrics[i]));
  }
  return fmt::format(
      R"({{"trainyard": "scenario/1", "model": "{}", "cluster": {{"groups": [{}]{}}},
          "training": {{"global_batch": {}, "sequence_length": 4096, "precision": "fp16",
                        "stack": "{}"}},
          "plan": {{"tensor_parallel": {}, "pipeline_parallel": {}, "data_parallel": {},
                    "micro_batch": 1, "zero_stage": {}, "layers_per_stage": [{}],
                    "recompute": "{}", "schedule": "1f1b"}},
          "use_of_groups": {{"use": "pipeline", "order": [{}]}}}})",
      d.model, fmt::join(groups, ", "), d.boundary, d.data_parallel * d.microbatches, d.stack,
      d.tensor_parallel, d.layers.size(), d.data_parallel, d.zero_stage, fmt::join(d.layers, ", "),
      d.recompute, fmt::join(order, ", "));
}

// How far the estimate is above the simulation: of the step, and of the fullest device's memory.
struct Apart {
  double step = 0, memory = 0;
};

Apart apart(const Draw& drawn) {
  const Scenario scenario = parse_scenario(text_of(drawn), "drawn").value();
  const GroupedJob job = grouped_job(scenario);
  auto answer = answer_of_groups(job, scenario, group_options(scenario));
  if (!answer) {
    ADD_FAILURE() << answer.error().where << " " << answer.error().message << text_of(drawn);
    return {};
  }
  const Bytes memory = answer->candidate.estimate.peak_memory;
  const auto step = simulate_groups(job, scenario, *std::move(answer), {});
  if (!step) {
    ADD_FAILURE() << step.error().message << text_of(drawn);
    return {};
  }
  const Estimate& played = step->answer.candidate.estimate;
  return {step->estimated / played.step_time - 1, memory / played.peak_memory - 1};
}

// How far estimate and simulation of a sample are apart: steps on average, and the most.
struct Spread {
  double mean = 0;
  Apart most;
  std::string farthest;  // whose step is the farthest apart
};

template <typename DrawOne>
Spread spread_of(int draws, const DrawOne& draw_one) {
  Spread spread;
  for (int i = 0; i < draws; ++i) {
    const Draw drawn = draw_one();
    const Apart found = apart(drawn);
    if (std::abs(found.step) > spread.most.step) spread.farthest = text_of(drawn);
    spread.mean += std::abs(found.step) / draws;
    spread.most.step = std::max(spread.most.step, std::abs(found.step));
    spread.most.memory = std::max(spread.most.memory, std::abs(found.memory));
  }
  fmt::print("{} pipelines: step {:.2f} % apart on average, {:.1f} % at most; memory {:.1f} %\n",
             draws, 100 * spread.mean, 100 * spread.most.step, 100 * spread.most.memory);
  return spread;
}

// The bounds are what these samples reach, which is printed, rounded up.
TEST(UnlikePipelines, AreWhatTheEstimateSaysWhenPlayed) {
  Drawing drawing(2026);
  const Spread spread = spread_of(random_cases(90), [&] { return drawing.draw(); });
  EXPECT_LT(spread.mean, 0.01);
  EXPECT_LT(spread.most.step, 0.08) << spread.farthest;
  EXPECT_LT(spread.most.memory, 0.06);
}

TEST(UnlikePipelines, ArePricedOnTheFabricsOfTheirGroups) {
  Drawing drawing(2027);
  const Spread spread = spread_of(random_cases(60), [&] { return drawing.draw_on_fabrics(); });
  EXPECT_LT(spread.mean, 0.015);
  EXPECT_LT(spread.most.step, 0.09) << spread.farthest;
  EXPECT_LT(spread.most.memory, 0.06);
}

}  // namespace
}  // namespace trainyard
