#include "executor/cpu/measure_collectives.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

constexpr std::array kOperations = {
    CollectiveOperation::all_reduce, CollectiveOperation::all_gather,
    CollectiveOperation::reduce_scatter, CollectiveOperation::all_to_all,
    CollectiveOperation::broadcast};
constexpr int kSizes = 14;  // 1 KiB, 2 KiB, … 8 MiB
constexpr int kFewest = 5, kMost = 200;
constexpr double kOverlapShare = 0.1;  // of the budget

Expected<void> meet(Transport& transport, float& largest) {
  return transport.all_reduce(Group::all, &largest, 1, Reduction::max);
}

// Buffers of one size; `once` is called by all ranks together.
class Exchanged {
 public:
  Exchanged(Transport& transport, CollectiveOperation operation, int count)
      : transport_(transport),
        operation_(operation),
        all_(static_cast<std::size_t>(count)),
        mine_(all_.size()),
        bytes_(all_.size() * sizeof(float), '\0'),
        parts_(static_cast<std::size_t>(transport.ranks()), count / transport.ranks()) {}

  Expected<void> once() {
    switch (operation_) {
      case CollectiveOperation::all_gather:
        return transport_.all_gather(Group::all, mine_.data(), parts_, all_.data());
      case CollectiveOperation::reduce_scatter:
        return transport_.reduce_scatter(Group::all, all_.data(), parts_, mine_.data());
      case CollectiveOperation::all_to_all:
        return transport_.all_to_all(Group::all, mine_.data(), parts_, all_.data(), parts_);
      case CollectiveOperation::broadcast:
        return transport_.broadcast(bytes_, 0);
      case CollectiveOperation::send:
        return there_and_back();
      case CollectiveOperation::all_reduce:
        break;
    }
    return transport_.all_reduce(Group::all, all_.data(), size(), Reduction::sum);
  }

 private:
  int size() const { return static_cast<int>(all_.size()); }

  // Requires: two ranks.
  Expected<void> there_and_back() {
    const int peer = 1 - transport_.rank();
    const auto send = [&] { return transport_.send(peer, 0, mine_.data(), size()); };
    const auto receive = [&] { return transport_.receive(peer, 0, all_.data(), size()); };
    auto first = transport_.rank() == 0 ? send() : receive();
    return first ? (transport_.rank() == 0 ? receive() : send()) : first;
  }

  Transport& transport_;
  CollectiveOperation operation_;
  std::vector<float> all_, mine_;
  std::string bytes_;
  Counts parts_;
};

// All ranks decide alike: as many runs as the slowest rank's first ones leave time for.
Expected<Timing> time_of(Transport& transport, Exchanged& exchanged, double budget) {
  std::vector<double> times;
  int runs = kFewest;
  for (int run = 0; run < runs; ++run) {
    float time = 0;
    if (auto met = meet(transport, time); !met) return tl::unexpected(met.error());
    const auto begin = TimingClock::now();
    if (auto done = exchanged.once(); !done) return tl::unexpected(done.error());
    time = static_cast<float>(seconds_since(begin));
    if (auto met = meet(transport, time); !met) return tl::unexpected(met.error());
    times.push_back(static_cast<double>(time));
    if (run + 1 == kFewest) {
      runs = std::clamp(static_cast<int>(budget / median_of(times)), kFewest, kMost);
    }
  }
  return timing_of(times);
}

// What a group has measured so far, and who is told.
struct Progressing {
  std::vector<TimedCollective>& list;
  const std::function<void(double part)>& told;
  double done = 0;

  void add(const TimedCollective& measured) {
    list.push_back(measured);
    told(++done / (kSizes * (kOperations.size() + 1.0)));
  }
};

Expected<void> measure(Transport& transport, CollectiveOperation operation, double budget,
                       Progressing& found) {
  const bool both_ways = operation == CollectiveOperation::send;
  for (int size = 0; size < kSizes; ++size) {
    const int count = 256 << size;
    Exchanged exchanged(transport, operation, count);
    auto timing = time_of(transport, exchanged, budget / kSizes);
    if (!timing) return tl::unexpected(timing.error());
    if (both_ways) {
      timing->median = timing->median / 2;
      timing->deviation = timing->deviation / 2;
    }
    const Bytes bytes(static_cast<double>(count) * sizeof(float));
    found.add({{operation, transport.ranks(), bytes, timing->median}, *timing});
  }
  return {};
}

Expected<void> measure_group(Transport& transport, double budget, Progressing found) {
  const double each = budget / (kOperations.size() + 1);
  for (const CollectiveOperation operation : kOperations) {
    if (auto done = measure(transport, operation, each, found); !done) return done;
  }
  if (transport.ranks() != 2) return {};
  return measure(transport, CollectiveOperation::send, each, found);
}

// ---- Beside each other --------------------------------------------------------------------

// A product that takes about a millisecond, over and over; times of each.
class Products {
 public:
  Products()
      : a_(Tensor<float>::Random(128, 512)), b_(Tensor<float>::Random(512, 256)), c_(128, 256) {}
  double once() {
    const auto begin = TimingClock::now();
    c_.noalias() = a_ * b_;
    return seconds_since(begin);
  }

 private:
  Tensor<float> a_, b_, c_;
};

// What arithmetic loses of its pace while another thread of the rank reduces with its peers.
// Only that thread speaks to them meanwhile.
Expected<double> measured_slowdown(Transport& transport, double budget) {
  constexpr int kReduced = 1 << 18;
  Exchanged exchanged(transport, CollectiveOperation::all_reduce, kReduced);
  const auto alone = time_of(transport, exchanged, budget / 4);
  if (!alone) return tl::unexpected(alone.error());
  Products products;
  std::vector<double> plain, beside;
  for (const auto begin = TimingClock::now();
       plain.size() < kFewest || seconds_since(begin) < budget / 4;)
    plain.push_back(products.once());
  const int rounds = std::max(kFewest, static_cast<int>(budget / 4 / alone->median.value()));
  std::atomic<bool> ended = false;
  Expected<void> reduced;
  std::thread reducing([&] {
    for (int i = 0; i < rounds && reduced; ++i) reduced = exchanged.once();
    ended = true;
  });
  while (!ended) beside.push_back(products.once());
  reducing.join();
  if (!reduced) return tl::unexpected(reduced.error());
  // Sums, not medians: a product that had to give way counts in full.
  double sum = 0;
  for (const double time : beside) sum += time;
  const double pace =
      beside.empty() ? 1 : median_of(plain) * static_cast<double>(beside.size()) / sum;
  auto lost = static_cast<float>(std::clamp(1 - pace, 0.0, 1.0));
  if (auto met = meet(transport, lost); !met) return tl::unexpected(met.error());
  return static_cast<double>(lost);
}

std::vector<int> group_sizes(int ranks) {
  std::vector<int> sizes;
  for (int size = 2; size < ranks; size *= 2) sizes.push_back(size);
  sizes.push_back(ranks);
  return sizes;
}

}  // namespace

Expected<GroupSamples> measure_collectives(const CalibrationRanks& world, Seconds budget) {
  GroupSamples samples;
  const std::vector<int> sizes = group_sizes(world.all.ranks());
  const double each = (1 - kOverlapShare) * budget.value() / static_cast<double>(sizes.size());
  const double share = (1 - kOverlapShare) / static_cast<double>(sizes.size());
  double before = 0;
  const std::function<void(double)> told = [&](double part) {
    world.progress(before + share * part);
  };
  for (const int size : sizes) {
    const auto transport = world.group(size);
    if (transport) {
      auto done = measure_group(*transport, each, {samples.collectives, told});
      if (!done) return tl::unexpected(done.error());
    }
    before += share;
    world.progress(before);
    float met = 0;
    if (auto done = meet(world.all, met); !done) return tl::unexpected(done.error());
  }
  const auto slowdown = measured_slowdown(world.all, kOverlapShare * budget.value());
  if (!slowdown) return tl::unexpected(slowdown.error());
  samples.overlap_slowdown = *slowdown;
  return samples;
}

}  // namespace trainyard
