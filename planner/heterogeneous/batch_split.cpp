#include "planner/heterogeneous/batch_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace trainyard {
namespace {

using Counts = std::vector<int>;  // of each group

constexpr double kDoesNotFit = std::numeric_limits<double>::infinity();

// Times of one group, each asked for once.
class KnownTimes {
 public:
  KnownTimes(const SplitGroup& group, std::int64_t most)
      : time_(group.time), known_(static_cast<std::size_t>(most) + 1, std::nan("")) {}

  int most() const { return static_cast<int>(known_.size()) - 1; }

  double operator()(int microbatches) {
    double& known = known_[static_cast<std::size_t>(microbatches)];
    if (std::isnan(known)) known = time_(microbatches).value();
    return known;
  }

  // The most micro-batches whose time is early by `is_early`; 0: none is.
  template <typename Early>
  int most_where(const Early& is_early) {
    int least = 0, end = most() + 1;
    while (least + 1 < end) {
      const int middle = least + (end - least) / 2;
      (is_early((*this)(middle)) ? least : end) = middle;
    }
    return least;
  }

 private:
  const std::function<Seconds(int)>& time_;
  std::vector<double> known_;  // [micro-batches]; not a number: not asked for yet
};

class BatchSplitter {
 public:
  BatchSplitter(const std::vector<SplitGroup>& groups, std::int64_t microbatches)
      : groups_(groups), rest_(microbatches) {
    for (const SplitGroup& group : groups) rest_ -= group.replicas;
    if (rest_ < 0) return;
    times_.reserve(groups.size());
    for (const SplitGroup& group : groups) times_.emplace_back(group, 1 + rest_ / group.replicas);
  }

  Counts split(double worth) {
    if (rest_ < 0) return {};
    Counts best = counts(most([worth](double time) { return time < worth; }));
    if (best.empty()) return {};
    double least = -kDoesNotFit;  // no split ends at this time or earlier
    while (true) {
      const double end = latest(best);
      const auto middle = time_between(least, end);
      if (!middle) return best;
      Counts earlier = counts(most([&](double time) { return time <= *middle; }));
      if (earlier.empty()) {
        least = *middle;
      } else {
        best = std::move(earlier);
      }
    }
  }

 private:
  template <typename Early>
  Counts most(const Early& is_early) {
    Counts all;
    for (KnownTimes& times : times_) all.push_back(times.most_where(is_early));
    return all;
  }

  double latest(const Counts& split) {
    double time = -kDoesNotFit;
    for (std::size_t g = 0; g < split.size(); ++g) time = std::max(time, times_[g](split[g]));
    return time;
  }

  // A time between these two: the middle one of the group that has the most times between them.
  std::optional<double> time_between(double least, double end) {
    std::optional<double> middle;
    int widest = 0;
    for (KnownTimes& times : times_) {
      const int first = times.most_where([least](double time) { return time <= least; });
      const int last = times.most_where([end](double time) { return time < end; });
      if (last - first <= widest) continue;
      widest = last - first;
      middle = times(first + (widest + 1) / 2);
    }
    return middle;
  }

  // A split that gives each replica of a group at least one and at most `most` micro-batches;
  // empty: there is none. For every part of the rest of the batch: whether the first groups can
  // take exactly that, and the fewest that the last of them must take then.
  Counts counts(const Counts& most) const {
    if (*std::min_element(most.begin(), most.end()) < 1) return {};
    const auto all = static_cast<std::size_t>(rest_);
    constexpr int kNot = -1;
    std::vector<Counts> taken;  // by group: of it, for every sum
    Counts before(all + 1, kNot);
    before[0] = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const auto step = static_cast<std::size_t>(groups_[g].replicas);
      Counts own(all + 1, kNot);
      for (std::size_t sum = 0; sum <= all; ++sum) {
        if (before[sum] != kNot) {
          own[sum] = 0;
        } else if (sum >= step && own[sum - step] != kNot && own[sum - step] + 1 < most[g]) {
          own[sum] = own[sum - step] + 1;
        }
      }
      before = own;
      taken.push_back(std::move(own));
    }
    if (taken.back()[all] == kNot) return {};
    Counts split(groups_.size());
    for (std::size_t g = groups_.size(), sum = all; g-- > 0;) {
      split[g] = 1 + taken[g][sum];
      sum -=
          static_cast<std::size_t>(taken[g][sum]) * static_cast<std::size_t>(groups_[g].replicas);
    }
    return split;
  }

  const std::vector<SplitGroup>& groups_;
  std::int64_t rest_;  // micro-batches left once every replica has one
  std::vector<KnownTimes> times_;
};

}  // namespace

std::vector<int> split_batch(const std::vector<SplitGroup>& groups, std::int64_t microbatches,
                             Seconds worth) {
  return BatchSplitter(groups, microbatches).split(worth.value());
}

}  // namespace trainyard
