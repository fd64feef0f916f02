#include "executor/measure/step_gaps.h"

#include <algorithm>
#include <numeric>

namespace trainyard {
namespace {

struct Interval {
  Seconds begin, end;
};

// Indices of `operations` in the order of their begins.
std::vector<int> by_begin(const std::vector<TimedOperation>& operations) {
  std::vector<int> order(operations.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {},
                           [&](int i) { return operations[static_cast<std::size_t>(i)].begin; });
  return order;
}

// Calls visit(from, gap) for each gap in which none of the operations in `order` runs.
template <typename Visit>
void for_each_gap(const std::vector<TimedOperation>& operations, const std::vector<int>& order,
                  const Visit& visit) {
  int last = -1;  // operation with the latest end so far
  Seconds until;
  for (const int i : order) {
    const TimedOperation& operation = operations[static_cast<std::size_t>(i)];
    if (last >= 0 && operation.begin > until) {
      visit(until, StepGap{operation.begin - until, last, i});
    }
    if (last < 0 || operation.end >= until) {
      last = i;
      until = operation.end;
    }
  }
}

// Times in which the rank communicates, as disjoint intervals in ascending order.
std::vector<Interval> communication_of(const std::vector<TimedOperation>& operations,
                                       const std::vector<int>& order) {
  std::vector<Interval> united;
  for (const int i : order) {
    const TimedOperation& operation = operations[static_cast<std::size_t>(i)];
    if (!operation.communicates) continue;
    if (united.empty() || operation.begin > united.back().end) {
      united.push_back({operation.begin, operation.end});
    } else {
      united.back().end = std::max(united.back().end, operation.end);
    }
  }
  return united;
}

Seconds covered(const std::vector<Interval>& united, const Interval& of) {
  Seconds sum;
  auto next = std::ranges::partition_point(
      united, [&](const Interval& interval) { return interval.end <= of.begin; });
  for (; next != united.end() && next->begin < of.end; ++next) {
    sum += std::min(next->end, of.end) - std::max(next->begin, of.begin);
  }
  return sum;
}

}  // namespace

StepGaps gaps_of(const std::vector<TimedOperation>& operations) {
  const std::vector<int> order = by_begin(operations);
  const std::vector<Interval> communication = communication_of(operations, order);
  StepGaps gaps;
  const auto keep_longest = [](StepGap& longest, const StepGap& gap) {
    if (gap.time > longest.time) longest = gap;
  };
  for_each_gap(operations, order, [&](Seconds, const StepGap& gap) {
    gaps.all += gap.time;
    keep_longest(gaps.longest, gap);
  });
  for (int s = 0; s < kProgramStreams; ++s) {
    StreamGaps of{.stream = static_cast<ProgramStream>(s)};
    std::vector<int> own;
    std::ranges::copy_if(order, std::back_inserter(own), [&](int i) {
      return operations[static_cast<std::size_t>(i)].stream == of.stream;
    });
    if (own.empty()) continue;
    for_each_gap(operations, own, [&](Seconds from, const StepGap& gap) {
      of.all += gap.time;
      of.communication += covered(communication, {from, from + gap.time});
      keep_longest(of.longest, gap);
    });
    gaps.streams.push_back(of);
  }
  return gaps;
}

}  // namespace trainyard
