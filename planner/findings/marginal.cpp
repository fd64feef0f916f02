#include "planner/findings/marginal.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "planner/search/ranking.h"

namespace trainyard {
namespace {

// The most plans of the one search; where it finds as many, each resource gets a search of its own.
constexpr int kMostRivals = 256;

constexpr std::array kResources = {
    HardwareChange{"FLOP/s", raise_flops},
    HardwareChange{"memory capacity", raise_memory_capacity},
    HardwareChange{"memory bandwidth", raise_memory_bandwidth},
    HardwareChange{"network bandwidth", raise_network_bandwidth, true},
    HardwareChange{"bandwidth inside the node", raise_link_bandwidth, true},
    HardwareChange{"host link bandwidth", raise_host_bandwidth},
    HardwareChange{"host memory bandwidth", raise_host_memory_bandwidth},
    HardwareChange{"NVMe bandwidth", raise_nvme_bandwidth}};

class MarginalSearch {
 public:
  MarginalSearch(const PreparedJob& job, SearchOptions options, const Candidate& winner,
                 const JobEvaluator& evaluate)
      : options_(std::move(options)),
        evaluate_(evaluate),
        resources_(resources_of(winner.plan.offload)) {
    options_.top = kMostRivals;
    options_.second.reset();
    Job all = job.job;
    jobs_.reserve(resources_.size());  // evaluators refer to them
    for (const HardwareChange& resource : resources_) {
      resource.apply(all, 1 + kMarginalShare);
      jobs_.push_back(changed(job, resource, 1 + kMarginalShare));
      evaluators_.push_back(evaluate_(jobs_.back()));
      same_.push_back(priced(jobs_.size() - 1, winner));
    }
    all_ = prepare(std::move(all));
  }

  // The best plan with more of each resource.
  std::vector<Candidate> best() const {
    const std::vector<Candidate> rivals = found(all_, worth());
    const bool complete = rivals.size() < kMostRivals;
    std::vector<Candidate> best = same_;
    for (std::size_t i = 0; i < best.size(); ++i) {
      for (const Candidate& rival : complete ? rivals : found(jobs_[i], value(i, same_[i]))) {
        take_if_better(i, priced(i, rival), best[i]);
      }
    }
    return best;
  }

  std::span<const HardwareChange> resources() const { return resources_; }
  double value(std::size_t resource, const Candidate& candidate) const {
    return value_of(jobs_[resource], candidate);
  }
  double value_of(const PreparedJob& job, const Candidate& candidate) const {
    return objective_value(job, options_.valuation, options_.objective, candidate.plan,
                           candidate.estimate);
  }

 private:
  // No rival of interest has a larger value with more of all resources.
  double worth() const {
    double most = 0;
    for (std::size_t i = 0; i < same_.size(); ++i) most = std::max(most, value(i, same_[i]));
    return most;
  }

  Candidate priced(std::size_t resource, const Candidate& candidate) const {
    Candidate result{candidate.plan, {}, {}};
    evaluators_[resource](result.plan, result.estimate);
    return result;
  }

  std::vector<Candidate> found(const PreparedJob& job, double worth) const {
    SearchOptions options = options_;
    options.worth = worth;
    return search(job, options, evaluate_(job)).plans;
  }

  void take_if_better(std::size_t resource, Candidate rival, Candidate& best) const {
    if (!rival.estimate.feasible) return;
    if (value(resource, rival) < value(resource, best)) best = std::move(rival);
  }

  SearchOptions options_;
  const JobEvaluator& evaluate_;
  std::span<const HardwareChange> resources_;
  std::vector<PreparedJob> jobs_;
  std::vector<Evaluator> evaluators_;  // of each
  std::vector<Candidate> same_;        // the winner with more of each
  PreparedJob all_;                    // more of everything
};

}  // namespace

std::span<const HardwareChange> resources_of(const Offload& offload) {
  // The last resources are of no use to a plan with everything on the devices, or nothing on NVMe.
  constexpr std::size_t kOfHosts = 2, kOfDrives = 1;
  std::size_t count = kResources.size();
  if (!uses(offload, OffloadTarget::nvme)) count -= kOfDrives;
  if (offload == Offload{}) count -= kOfHosts;
  return std::span(kResources).first(count);
}

std::vector<MarginalValue> marginal_values(const PreparedJob& job, const SearchOptions& options,
                                           const Candidate& winner, const JobEvaluator& evaluate) {
  const MarginalSearch search(job, options, winner, evaluate);
  const double before = search.value_of(job, winner);
  const auto best = search.best();
  std::vector<MarginalValue> values;
  values.reserve(best.size());
  for (std::size_t i = 0; i < best.size(); ++i) {
    const bool same_plan = same_choices(best[i].plan, winner.plan);
    // A faster network slows the compute beside it more; that is no loss, for nobody has to use the
    // additional bandwidth.
    const double gain = std::max(0.0, 1 - search.value(i, best[i]) / before);
    values.push_back({search.resources()[i].name, gain, same_plan});
  }
  return values;
}

}  // namespace trainyard
