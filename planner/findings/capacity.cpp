#include "planner/findings/capacity.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "model/cost/money.h"
#include "model/cost/reliability.h"
#include "model/workload/transformer.h"
#include "planner/improved_search.h"

namespace trainyard {
namespace {

template <typename T>
std::vector<T> or_own(const std::vector<T>& asked, const T& own) {
  return asked.empty() ? std::vector<T>{own} : asked;
}

std::vector<Job> jobs_of(const Job& job, const CapacitySpace& sizes) {
  std::vector<Job> jobs;
  jobs.reserve(static_cast<std::size_t>(count_of(sizes)));
  for (const Transformer& model : or_own(sizes.models, job.model)) {
    for (const std::int64_t nodes : or_own<std::int64_t>(sizes.nodes, job.cluster.nodes)) {
      for (const std::int64_t batch : or_own(sizes.global_batch, job.training.global_batch)) {
        for (const auto length : or_own(sizes.sequence_length, job.training.sequence_length)) {
          Job sized = job;
          sized.model = model;
          sized.cluster.nodes = static_cast<int>(nodes);
          sized.training.global_batch = batch;
          sized.training.sequence_length = length;
          jobs.push_back(std::move(sized));
        }
      }
    }
  }
  return jobs;
}

CapacityPoint point_of(Job job, const std::optional<Seconds>& deadline,
                       const SearchOptions& options, const JobEvaluator& evaluate) {
  const PreparedJob prepared = prepare(job);
  SearchResult found = improved_search(prepared, options, evaluate(prepared));
  CapacityPoint point{.job = std::move(job),
                      .best = {},
                      .optimal = found.optimal,
                      .gap = found.gap,
                      .run = {},
                      .run_cost = {},
                      .in_time = false};
  if (found.plans.empty()) return point;
  point.best = std::move(found.plans.front());
  if (point.job.training.tokens <= 0) return point;
  const Valuation& valuation = options.valuation;
  const auto& [plan, estimate, confirmation] = *point.best;
  const double goodput = estimate_goodput(prepared, plan, estimate.step_time, valuation.reliability,
                                          valuation.checkpoint)
                             .goodput;
  const double tokens_per_second = estimate.tokens_per_second * goodput;
  point.run = Seconds(point.job.training.tokens / tokens_per_second);
  point.in_time = deadline && *point.run <= *deadline;
  if (const auto cost = cost_of(point.job.cluster, *point.run)) {
    const int nodes = nodes_of(point.job.cluster, plan.devices());
    point.run_cost = *cost * (1 + 1.0 * spares_of(valuation.reliability, nodes) / nodes);
  }
  return point;
}

// The point with the least `key`, of those that have a plan and that `counts` accepts.
template <typename Counts, typename Key>
const CapacityPoint* first_by(const std::vector<CapacityPoint>& points, const Counts& counts,
                              const Key& key) {
  const CapacityPoint* first = nullptr;
  const auto whole_key = [&key](const CapacityPoint& point) {
    return std::tuple(key(point), point.job.cluster.devices(),
                      -point.best->estimate.tokens_per_second);
  };
  for (const CapacityPoint& point : points) {
    if (!point.best || !counts(point)) continue;
    if (first == nullptr || whole_key(point) < whole_key(*first)) first = &point;
  }
  return first;
}

auto is_wanted(Wanted wanted) {
  return [wanted](const CapacityPoint& point) { return wanted == Wanted::fits || point.in_time; };
}

}  // namespace

bool asks_for_sizes(const CapacitySpace& sizes) {
  return !sizes.models.empty() || !sizes.nodes.empty() || !sizes.global_batch.empty() ||
         !sizes.sequence_length.empty() || sizes.deadline;
}

std::int64_t count_of(const CapacitySpace& sizes) {
  const auto some = [](const auto& list) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(list.size()));
  };
  return some(sizes.models) * some(sizes.nodes) * some(sizes.global_batch) *
         some(sizes.sequence_length);
}

std::vector<CapacityPoint> plan_capacity(const Job& job, const CapacitySpace& sizes,
                                         const SearchOptions& options,
                                         const JobEvaluator& evaluate) {
  std::vector<CapacityPoint> points;
  std::vector<Job> jobs = jobs_of(job, sizes);
  points.reserve(jobs.size());
  SearchOptions one = options;
  one.top = 1;
  one.second.reset();
  if (options.progress) {
    one.progress = [&](double fraction) {
      const double done = static_cast<double>(points.size()) + fraction;
      options.progress(done / static_cast<double>(jobs.size()));
    };
  }
  for (Job& sized : jobs) {
    if (options.interrupted != nullptr && options.interrupted->load()) break;
    points.push_back(point_of(std::move(sized), sizes.deadline, one, evaluate));
  }
  return points;
}

Wanted wanted(const CapacitySpace& sizes) {
  return sizes.deadline ? Wanted::in_time : Wanted::fits;
}

const CapacityPoint* fewest_devices(const std::vector<CapacityPoint>& points) {
  return first_by(points, is_wanted(Wanted::in_time),
                  [](const CapacityPoint& point) { return point.job.cluster.devices(); });
}

const CapacityPoint* largest_model(const std::vector<CapacityPoint>& points, Wanted wanted) {
  // Learned positions grow with the sequence: networks are compared at one length.
  constexpr std::int64_t kLength = 1;
  return first_by(points, is_wanted(wanted), [](const CapacityPoint& point) {
    return -parameter_count(point.job.model, kLength);
  });
}

const CapacityPoint* longest_sequence(const std::vector<CapacityPoint>& points, Wanted wanted) {
  return first_by(points, is_wanted(wanted),
                  [](const CapacityPoint& point) { return -point.job.training.sequence_length; });
}

}  // namespace trainyard
