#include "tests/simulator/drawn_plans.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "model/schedule/schedule.h"
#include "scenarios/catalog.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostInTheSuite = 20'000;
constexpr std::int64_t kMostByHand = 100'000;

// Bits that depend on all bits of x (splitmix64; Steele, Lea & Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

constexpr std::array kFabrics = {"alone",     "fat tree", "rails",
                                 "dragonfly", "torus",    "graph"};  // by InterNodeKind

std::uint64_t number_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

// As members of a scenario's `cluster` without `nodes`.
std::vector<std::string> all_clusters() {
  std::vector<std::string> clusters;
  for (const std::string& node : catalog_names("node")) {
    clusters.push_back(fmt::format(R"("node": "{}")", node));
  }
  // Without the fabrics that were measured on one node.
  for (const char* fabric : {"fat-tree", "fat-tree-ecmp", "dragonfly", "torus-3d"}) {
    clusters.push_back(fmt::format(R"("node": "dgx-h100-80gb", "fabric": "{}")", fabric));
  }
  for (const char* fabric : {"dragonfly-slingshot", "infiniband-hdr-4"}) {
    clusters.push_back(fmt::format(R"("node": "dgx-a100-80gb", "fabric": "{}")", fabric));
  }
  const auto with_pcie = [&](const char* device, int devices, int nics, const char* link) {
    clusters.push_back(fmt::format(
        R"("device": "{}", "devices_per_node": {},
           "intra_node": {{"kind": "pcie", "bandwidth": "{}"}},
           "inter_node": {{"kind": "rail", "nics_per_node": {}, "bandwidth": "200 Gbit/s"}})",
        device, devices, link, nics));
  };
  with_pcie("l40s-48gb", 8, 2, "32 GB/s");
  with_pcie("h100-pcie-80gb", 8, 4, "64 GB/s");
  with_pcie("rtx-4090-24gb", 4, 1, "32 GB/s");
  return clusters;
}

const std::vector<std::string>& drawn_clusters() {
  static const std::vector<std::string> all = all_clusters();
  return all;
}

const char* plans_by_hand() { return std::getenv("TRAINYARD_AGREEMENT_PLANS"); }

}  // namespace

Choices::Choices(std::string_view law, int attempt)
    : random_(mixed(number_of(law) ^ mixed(static_cast<std::uint64_t>(attempt)))) {}

std::string Choices::one_of_names(const std::vector<std::string>& names) {
  const std::uint64_t key = random_();
  return *std::max_element(names.begin(), names.end(), [key](const auto& a, const auto& b) {
    return mixed(key ^ number_of(a)) < mixed(key ^ number_of(b));
  });
}

Job drawn_job(Choices& choices, const std::vector<int>& nodes, const std::vector<int>& batches,
              const std::string& training) {
  const std::string model = choices.one_of_names(catalog_names("model"));
  const std::string cluster = choices.one_of_names(drawn_clusters());
  const int length = choices.one_of<int>({2048, 4096, 8192});
  const int batch = choices.one_of(batches);
  const std::string text = fmt::format(
      R"({{"trainyard": "scenario/1", "model": "{}", "cluster": {{{}, "nodes": {}}},
          "training": {{"global_batch": {}, "sequence_length": {}, {}}}}})",
      model, cluster, choices.one_of(nodes), batch, length, training);
  auto read = parse_scenario(text, "drawn");
  if (!read) ADD_FAILURE() << text << ": " << read.error().message;
  return std::move(read).value().job;
}

bool is_drawn_by_hand() { return plans_by_hand() != nullptr; }

int plans_to_draw(int in_the_suite) {
  int plans = kSanitized ? in_the_suite / 6 : in_the_suite;
  if (const char* asked = plans_by_hand()) {
    std::from_chars(asked, asked + std::string_view(asked).size(), plans);
  }
  return plans;
}

bool is_small(const Job& job, const Plan& plan) {
  const auto passes = static_cast<std::int64_t>(job.model.layers) * plan.microbatches * 2;
  if (is_drawn_by_hand()) return passes <= kMostByHand;
  return passes * plan.devices() / plan.pipeline_parallel <= kMostInTheSuite;
}

std::string described(const Job& job, const Plan& plan) {
  return fmt::format(
      "{} on {} × {} {}, {}, {}, B {}, s {}: {} t {}{} c {}/{} p {} v {} D {} e {} b {} m {} "
      "zero {} recompute {}",
      job.model.name, job.cluster.nodes, job.cluster.name,
      kFabrics.at(static_cast<std::size_t>(job.cluster.inter.kind)), job.training.stack.name,
      job.training.precision.name, job.training.global_batch, job.training.sequence_length,
      plan.schedule->name, plan.tensor_parallel, plan.sequence_parallel ? "+sp" : "",
      plan.context_parallel, static_cast<int>(plan.context_parallel_algorithm),
      plan.pipeline_parallel, plan.virtual_stages, plan.data_parallel, plan.expert_parallel,
      plan.micro_batch, plan.microbatches, plan.zero_stage, static_cast<int>(plan.recompute.mode));
}

Disagreement disagreement(const PreparedJob& job, const Plan& plan,
                          const StepSimulation& simulation) {
  const Estimate expected = estimate(job, plan);
  const Estimate played = as_estimate(job, plan, simulation);
  return {expected.step_time / simulation.step_time - 1,
          expected.peak_allocated / played.peak_allocated - 1};
}

double quantile(std::vector<double> values, double q) {
  for (double& value : values) value = std::abs(value);
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace trainyard
