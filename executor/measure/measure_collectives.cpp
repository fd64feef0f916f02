#include "executor/measure/measure_collectives.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "model/first_exception.h"
#include "model/median.h"

namespace trainyard {
namespace {

constexpr std::array kOperations = {
    CollectiveOperation::all_reduce, CollectiveOperation::all_gather,
    CollectiveOperation::reduce_scatter, CollectiveOperation::all_to_all,
    CollectiveOperation::broadcast};
constexpr int kFewest = 5, kMost = 200;
constexpr int kFewestLate = 2;         // when the budget is spent
constexpr double kOverlapShare = 0.1;  // of the budget

Expected<void> meet(Transport& transport, float& largest) {
  return transport.all_reduce(Group::all, &largest, 1, Reduction::max);
}

// The time on the slowest rank, so that all ranks decide alike.
Expected<double> slowest(Transport& transport, TimedExchange& exchange, int in_a_row) {
  float time = 0;
  if (auto met = meet(transport, time); !met) return tl::unexpected(met.error());
  const auto took = exchange.time_of_one(in_a_row);
  if (!took) return tl::unexpected(took.error());
  time = static_cast<float>(*took);
  if (auto met = meet(transport, time); !met) return tl::unexpected(met.error());
  return static_cast<double>(time);
}

// How many exchanges in a row take a millisecond. Asynchronous exchanges are first made once to
// connect the ranks, which takes many times as long and happens once in a training run.
Expected<int> rehearsed(Transport& transport, TimedExchange& exchange) {
  constexpr double kLong = 1e-3;  // s
  const int most = exchange.most_in_a_row();
  if (most == 1) return 1;
  if (auto connected = slowest(transport, exchange, 1); !connected) {
    return tl::unexpected(connected.error());
  }
  const auto once = slowest(transport, exchange, 1);
  if (!once) return tl::unexpected(once.error());
  return std::clamp(static_cast<int>(kLong / std::max(*once, 1e-6)), 1, most);
}

// Measures as many runs as the budget allows, judged by the first ones.
Expected<Timing> time_of(Transport& transport, TimedExchange& exchange, double budget) {
  const auto in_a_row = rehearsed(transport, exchange);
  if (!in_a_row) return tl::unexpected(in_a_row.error());
  std::vector<double> times;
  double spent = 0;
  int runs = kFewest;
  for (int run = 0; run < runs; ++run) {
    const auto time = slowest(transport, exchange, *in_a_row);
    if (!time) return tl::unexpected(time.error());
    times.push_back(*time);
    spent += *in_a_row * times.back();
    if (run + 1 == kFewestLate && spent > budget) break;
    if (run + 1 == kFewest) {
      runs = std::clamp(static_cast<int>(budget / (*in_a_row * median(times))), kFewest, kMost);
    }
  }
  return timing_of(times);
}

// What a group has measured so far, and the callback for its progress.
struct Progressing {
  int sizes;
  std::vector<TimedCollective>& list;
  const std::function<void(double part)>& told;
  double done = 0;

  void add(const TimedCollective& measured) {
    list.push_back(measured);
    told(++done / (sizes * (kOperations.size() + 1.0)));
  }
};

Expected<void> measure(CalibrationGroup& group, CollectiveOperation operation, double budget,
                       Progressing& found) {
  const bool both_ways = operation == CollectiveOperation::send;
  for (int size = 0; size < found.sizes; ++size) {
    const int count = 256 << size;
    const auto exchange = group.exchange(operation, count);
    auto timing = time_of(group.host(), *exchange, budget / found.sizes);
    if (!timing) return tl::unexpected(timing.error());
    if (both_ways) {
      timing->median = timing->median / 2;
      timing->deviation = timing->deviation / 2;
    }
    const Bytes bytes(static_cast<double>(count) * sizeof(float));
    found.add({{operation, group.host().ranks(), bytes, timing->median}, *timing});
  }
  return {};
}

Expected<void> measure_group(CalibrationGroup& group, double budget, Progressing found) {
  const double each = budget / (kOperations.size() + 1);
  for (const CollectiveOperation operation : kOperations) {
    if (auto done = measure(group, operation, each, found); !done) return done;
  }
  if (group.host().ranks() != 2) return {};
  return measure(group, CollectiveOperation::send, each, found);
}

// ---- Beside each other --------------------------------------------------------------------

// Exchanges until the budget is spent on any rank. Time decides, not a count: beside arithmetic,
// and on a busy host, an exchange takes many times what it takes alone.
Expected<void> exchange_for(Transport& transport, TimedExchange& exchange, double budget,
                            const std::function<void(double part)>& told) {
  const auto begin = TimingClock::now();
  for (float part = 0; part < 1;) {
    for (int i = 0; i < kFewest; ++i) {
      if (const auto took = exchange.time_of_one(1); !took) {
        return tl::unexpected(took.error());
      }
    }
    part = static_cast<float>(seconds_since(begin) / budget);
    if (auto met = meet(transport, part); !met) return met;
    told(std::min(1.0, static_cast<double>(part)));
  }
  return {};
}

// The share of its speed that arithmetic loses while another thread of the rank reduces with its
// peers. Only that thread communicates meanwhile.
Expected<double> measured_slowdown(const CalibrationParty& party, CalibrationGroup& group,
                                   double budget, const std::function<void(double part)>& told) {
  const auto exchange = group.exchange(CollectiveOperation::all_reduce, party.reduced);
  // Connects the ranks first: meanwhile nothing is reduced that would slow products down.
  if (const auto connected = exchange->time_of_one(1); !connected) {
    return tl::unexpected(connected.error());
  }
  party.product();  // in which libraries choose a kernel
  std::vector<double> plain, beside;
  for (const auto begin = TimingClock::now();
       plain.size() < kFewest || seconds_since(begin) < budget / 2;)
    plain.push_back(party.product());
  std::atomic<bool> ended = false;
  Expected<void> reduced;
  FirstException thrown;
  {
    const std::jthread reducing([&] {
      thrown.keep_of([&] { reduced = exchange_for(group.host(), *exchange, budget / 2, told); });
      ended = true;
    });
    while (!ended) beside.push_back(party.product());
  }
  thrown.rethrow();
  if (!reduced) return tl::unexpected(reduced.error());
  // Sums, not medians: a product that had to give way counts in full.
  double sum = 0;
  for (const double time : beside) sum += time;
  const double pace = beside.empty() ? 1 : median(plain) * static_cast<double>(beside.size()) / sum;
  auto lost = static_cast<float>(std::clamp(1 - pace, 0.0, 1.0));
  if (auto met = meet(group.host(), lost); !met) return tl::unexpected(met.error());
  return static_cast<double>(lost);
}

// Adds the sizes of 2, 4, … and `most` units of `each` ranks.
void add_sizes(int most, int each, std::vector<int>& sizes) {
  for (int many = 2; many < most; many *= 2) sizes.push_back(many * each);
  if (most > 1) sizes.push_back(most * each);
}

std::vector<int> group_sizes(int ranks, int per_host) {
  std::vector<int> sizes;
  add_sizes(per_host, 1, sizes);
  add_sizes(ranks / per_host, per_host, sizes);
  return sizes;
}

}  // namespace

Expected<GroupSamples> measure_collectives(const CalibrationRanks& world, Seconds budget) {
  GroupSamples samples;
  const std::vector<int> sizes = group_sizes(world.all.ranks(), world.per_host);
  const double each = (1 - kOverlapShare) * budget.value() / static_cast<double>(sizes.size());
  const double share = (1 - kOverlapShare) / static_cast<double>(sizes.size());
  double before = 0;
  const std::function<void(double)> told = [&](double part) {
    world.progress(before + share * part);
  };
  for (const int size : sizes) {
    const auto group = world.party.group(size);
    if (!group) return tl::unexpected(group.error());
    if (*group) {
      auto done = measure_group(**group, each, {world.party.sizes, samples.collectives, told});
      if (!done) return tl::unexpected(done.error());
    }
    before += share;
    world.progress(before);
    float met = 0;
    if (auto done = meet(world.all, met); !done) return tl::unexpected(done.error());
  }
  const auto all = world.party.group(world.all.ranks());
  if (!all) return tl::unexpected(all.error());
  const std::function<void(double)> told_last = [&](double part) {
    world.progress(before + (1 - before) * part);
  };
  const auto slowdown =
      measured_slowdown(world.party, **all, kOverlapShare * budget.value(), told_last);
  if (!slowdown) return tl::unexpected(slowdown.error());
  samples.overlap_slowdown = *slowdown;
  return samples;
}

}  // namespace trainyard
