// The improvement of pipelines that are too long to enumerate, compared with a random walk over the
// layers of their chunks and the recomputation of their stages. The walk uses nothing but the
// estimate.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "model/schedule/schedule.h"
#include "planner/improvement.h"
#include "tests/planner/jobs.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr int kLayers = 24, kStages = 4;

// 24 layers, some with experts, on four devices without NVLink, so that splits over two and four
// stages are nearly equal. Unfused attention keeps its scores, so selective recomputation saves
// much memory for little time.
Job tight_job(std::mt19937& random) {
  const auto pick = [&](const std::vector<int>& all) { return all[random() % all.size()]; };
  Job job = small_moe_job();
  job.model.layers = kLayers;
  job.model.attention_heads = job.model.kv_heads = 16;
  job.model.hidden_size = 64 * 16 * pick({1, 2});
  job.model.head_dim = job.model.hidden_size / 16;
  job.model.expert_ffn_size = job.model.hidden_size * pick({1, 2}) / 2;
  job.model.ffn_size = 4 * job.model.hidden_size;
  job.model.experts = pick({4, 8, 16});
  job.model.moe_every = pick({1, 2});
  job.model.dense_layers = pick({0, 1});
  job.model.vocabulary = pick({32'000, 128'000});
  job.cluster.nodes = 1;
  job.cluster.devices_per_node = job.cluster.nvlink_domain = kStages;
  job.cluster.intra.kind = IntraNodeKind::pcie;
  job.cluster.intra.bandwidth = 25.0_GBps;
  job.training.global_batch = pick({8, 12, 16, 32});
  job.training.sequence_length = pick({2048, 4096});
  job.training.stack.flash_attention = false;
  return job;
}

struct Deal {
  std::vector<int> layers;  // of each chunk
  std::vector<Recompute> recompute = std::vector<Recompute>(kStages);
};

class Walk {
 public:
  Walk(const PreparedJob& job, std::mt19937& random)
      : job_(job), estimator_(job), random_(random) {}

  // A random walk with up to three changes per step; a step that is no worse is kept.
  Seconds best_of(const std::string& schedule, int chunks, int steps) {
    Seconds best(1e300);
    double at = best.value();
    Deal deal{.layers = std::vector<int>(static_cast<std::size_t>(kStages * chunks),
                                         kLayers / kStages / chunks)};
    for (int step = 0; step < steps; ++step) {
      Deal other = deal;
      for (auto changes = 1 + random_() % 3; changes > 0; --changes) change(other);
      const double value = value_of(schedule, chunks, other);
      if (value > at) continue;
      at = value;
      deal = other;
      if (priced_.feasible) best = priced_.step_time;
    }
    return best;
  }

 private:
  void change(Deal& deal) {
    const std::size_t from = random_() % deal.layers.size(), to = random_() % deal.layers.size();
    if (random_() % 2 == 0 && deal.layers[from] > 0) {
      --deal.layers[from];
      ++deal.layers[to];
      return;
    }
    const auto full = 1 + static_cast<int>(random_() % (2 * kLayers / kStages));
    const Recompute ways[] = {{}, {RecomputeMode::selective, 0}, {RecomputeMode::full, full}};
    deal.recompute[random_() % kStages] = ways[random_() % 3];
  }

  double value_of(const std::string& schedule, int chunks, const Deal& deal) {
    constexpr double kIllegal = 1e301;
    const Job& j = job_.job;
    const PlanRequest request{.pipeline_parallel = kStages,
                              .virtual_stages = chunks,
                              .schedule = schedule,
                              .layers_per_stage = deal.layers,
                              .recompute_per_stage = deal.recompute};
    const auto plan = plan_if_legal(request, j.model, j.cluster, j.training);
    if (!plan) return kIllegal;
    estimator_.estimate(*plan, priced_);
    return priced_.feasible ? priced_.step_time.value() : 1e200 * priced_.fullness;
  }

  const PreparedJob& job_;
  Estimator estimator_;
  std::mt19937& random_;
  Estimate priced_;
};

Seconds best_listed(const PreparedJob& job) {
  const SearchOptions options{.top = kImprovedAmong, .threads = 1, .keeps_to_deal = true};
  const Evaluator evaluate = analytic_evaluator(job);
  const SearchResult found = search(job, options, evaluate);
  if (found.plans.empty()) return Seconds(1e300);
  const auto better = improve(job, options, found.plans, evaluate, found.to_deal);
  return (better ? better->candidate : found.plans.front()).estimate.step_time;
}

// The best degrees for even layers are not those of the best plan, so other splits and schedules
// are dealt too.
TEST(UnevenStages, AreNoSlowerThanARandomWalkFinds) {
  std::mt19937 random(3);
  int compared = 0;
  for (int i = 0; i < random_cases(30); ++i) {
    Job job = tight_job(random);
    job.cluster.device.memory = 1.0_GiB * static_cast<double>(6 + random() % 18);
    const PreparedJob prepared = prepare(std::move(job));
    Walk walk(prepared, random);
    const int steps = random_cases(2000);
    const Seconds walked = std::min(walk.best_of("1f1b", 1, steps), walk.best_of("zb-v", 2, steps));
    if (walked > Seconds(1e299)) continue;
    ++compared;
    EXPECT_LE(best_listed(prepared) / walked - 1, 0.01) << i;
  }
  EXPECT_GT(compared, random_cases(10));
}

}  // namespace
}  // namespace trainyard
