// Max–min fair shares computed by hand (with the equations beside the cases), and the conditions of
// max–min fairness checked on random networks.
#include "simulator/network/flow_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace trainyard {
namespace {

using Capacities = std::vector<BytesPerSecond>;

Capacities gigabytes(const std::vector<double>& rates) {
  Capacities capacities;
  for (const double rate : rates) capacities.emplace_back(rate * 1e9);
  return capacities;
}

// Flows too large to end, so that a test can look at their rates.
struct Rates {
  explicit Rates(const Capacities& capacities) : network(capacities, events) {}
  FlowNetwork::PathId flow(const std::vector<LinkUse>& uses, int count = 1) {
    const auto path = network.add_path(uses);
    for (int i = 0; i < count; ++i) network.start(path, Bytes(1e9), 0);
    return path;
  }
  double gigabytes_per_second(FlowNetwork::PathId path) {
    network.settle();
    return network.rate(path).value() / 1e9;
  }
  Events events;
  FlowNetwork network;
};

// Plays until nothing happens and returns when each token was done, in seconds.
std::vector<double> seconds_of(Events& events, FlowNetwork& network, std::size_t tokens) {
  std::vector<double> done(tokens, -1);
  std::vector<std::uint32_t> finished;
  network.settle();
  while (!events.empty()) {
    finished.clear();
    network.finish(events.pop().event, finished);
    for (const std::uint32_t token : finished) done[token] = to_seconds(events.now()).value();
    if (!events.has_event_now()) network.settle();
  }
  return done;
}

TEST(FlowNetwork, GivesAFlowAloneItsNarrowestLink) {
  Rates rates(gigabytes({10, 4, 7}));
  EXPECT_DOUBLE_EQ(rates.gigabytes_per_second(rates.flow({{0}, {1}, {2}})), 4);
}

TEST(FlowNetwork, SharesALinkEqually) {
  Rates rates(gigabytes({12}));
  const auto a = rates.flow({{0}});
  const auto b = rates.flow({{0}}, 2);
  EXPECT_DOUBLE_EQ(rates.gigabytes_per_second(a), 4);
  EXPECT_DOUBLE_EQ(rates.gigabytes_per_second(b), 4);
}

// Links 0 (10 GB/s) and 1 (4 GB/s); flow a uses both, b link 0, c link 1. Link 1 fills first, at 2
// each; b gets what is left of link 0, 10 − 2.
TEST(FlowNetwork, GivesToOthersWhatAFlowThatIsHeldUpElsewhereLeaves) {
  Rates rates(gigabytes({10, 4}));
  const auto a = rates.flow({{0}, {1}});
  const auto b = rates.flow({{0}});
  const auto c = rates.flow({{1}});
  EXPECT_DOUBLE_EQ(rates.gigabytes_per_second(a), 2);
  EXPECT_DOUBLE_EQ(rates.gigabytes_per_second(b), 8);
  EXPECT_DOUBLE_EQ(rates.gigabytes_per_second(c), 2);
}

// A flow spread over eight NICs of 50 has 8·50. With another flow on the first NIC, x/8 + y = 50
// and y = x give y = 50 / (1 + 1/8).
TEST(FlowNetwork, CountsASpreadFlowByItsShareOfEachLink) {
  Rates rates(gigabytes(std::vector<double>(8, 50)));
  std::vector<LinkUse> spread;
  for (int nic = 0; nic < 8; ++nic) spread.push_back({nic, 1.0 / 8});
  const auto all = rates.flow(spread);
  EXPECT_DOUBLE_EQ(rates.gigabytes_per_second(all), 400);
  const auto one = rates.flow({{0}});
  EXPECT_NEAR(rates.gigabytes_per_second(one), 50 / 1.125, 1e-9);
  EXPECT_NEAR(rates.gigabytes_per_second(all), 50 / 1.125, 1e-9);
}

TEST(FlowNetwork, AddsUpALinkThatAPathPassesTwice) {
  Rates rates(gigabytes({10}));
  EXPECT_DOUBLE_EQ(rates.gigabytes_per_second(rates.flow({{0}, {0}})), 5);
}

TEST(FlowNetwork, SpeedsUpAFlowWhenItsNeighbourEnds) {
  Events events;
  FlowNetwork network(gigabytes({12}), events);
  const auto path = network.add_path(std::vector<LinkUse>{{0}});
  const auto other = network.add_path(std::vector<LinkUse>{{0}});
  network.start(path, Bytes(3e9), 0);
  network.start(other, Bytes(9e9), 1);
  const auto done = seconds_of(events, network, 2);
  EXPECT_NEAR(done[0], 0.5, 1e-12);  // 3 GB at 6 GB/s
  EXPECT_NEAR(done[1], 1.0, 1e-12);  // 3 GB at 6, then 6 GB at 12
}

TEST(FlowNetwork, EndsTheFlowsOfOnePathInTheOrderOfTheirBytes) {
  Events events;
  FlowNetwork network(gigabytes({12}), events);
  const auto path = network.add_path(std::vector<LinkUse>{{0}});
  network.start(path, Bytes(8e9), 0);
  network.start(path, Bytes(2e9), 1);
  network.start(path, Bytes(2e9), 2);
  const auto done = seconds_of(events, network, 3);
  EXPECT_NEAR(done[1], 0.5, 1e-12);  // 2 GB at 12/3
  EXPECT_NEAR(done[2], 0.5, 1e-12);
  EXPECT_NEAR(done[0], 1.0, 1e-12);  // 6 GB more, alone
}

TEST(FlowNetwork, TakesNoTimeWithoutBytesOrWithoutLinks) {
  Events events;
  FlowNetwork network(gigabytes({12}), events);
  network.start(network.add_path(std::vector<LinkUse>{{0}}), Bytes(0), 0);
  network.start(network.add_path({}), Bytes(1e9), 1);
  EXPECT_EQ(seconds_of(events, network, 2), (std::vector<double>{0, 0}));
}

// Flows that come and go on random paths. check() tests the conditions of max–min fairness for
// those present.
class Churn {
 public:
  Churn() : network_(capacities(), events_) {}

  void add_flows() {
    std::vector<LinkUse> path;
    for (int hops = pick(1, 4); hops > 0; --hops) {
      const LinkUse use{pick(0, kLinks - 1), pick(0, 2) == 0 ? 0.25 : 1};
      const auto same = [&](const LinkUse& other) { return other.link == use.link; };
      if (std::none_of(path.begin(), path.end(), same)) path.push_back(use);
    }
    const auto id = network_.add_path(path);
    uses_.push_back(path);
    flows_.push_back(pick(1, 2));
    started_ += flows_.back();
    for (int i = 0; i < flows_.back(); ++i) network_.start(id, Bytes(pick(1000000, 2000000)), id);
    network_.settle();
  }

  void let_some_end() {
    const int kept = pick(0, 40);
    while (started_ - ended_ > kept || events_.has_event_now()) {
      std::vector<std::uint32_t> done;
      network_.finish(events_.pop().event, done);
      for (const std::uint32_t path : done) --flows_[path];
      ended_ += static_cast<int>(done.size());
      if (!events_.has_event_now()) network_.settle();
    }
  }

  // Every flow uses a full link on which no flow is faster, and no link carries more than it can.
  void check() const {
    std::vector<double> load(kLinks), fastest(kLinks);
    for_each_use([&](double rate, int flows, const LinkUse& use) {
      const auto link = static_cast<std::size_t>(use.link);
      load[link] += flows * use.share * rate;
      fastest[link] = std::max(fastest[link], rate);
    });
    for (std::size_t link = 0; link < kLinks; ++link) {
      EXPECT_LE(load[link], capacities()[link].value() * (1 + 1e-9));
    }
    for (FlowNetwork::PathId path = 0; path < uses_.size(); ++path) {
      if (flows_[path] == 0) continue;
      EXPECT_TRUE(std::any_of(uses_[path].begin(), uses_[path].end(), [&](const LinkUse& use) {
        const auto link = static_cast<std::size_t>(use.link);
        return load[link] >= capacities()[link].value() * (1 - 1e-9) &&
               network_.rate(path).value() >= fastest[link] * (1 - 1e-9);
      }));
    }
  }

  int ended() const { return ended_; }

 private:
  static constexpr int kLinks = 30;
  static Capacities capacities() {
    Capacities all;
    for (int i = 0; i < kLinks; ++i) all.emplace_back((1 + i * 7 % 20) * 1e9);
    return all;
  }
  int pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }
  template <typename Visit>
  void for_each_use(Visit visit) const {
    for (FlowNetwork::PathId path = 0; path < uses_.size(); ++path) {
      if (flows_[path] == 0) continue;
      for (const LinkUse& use : uses_[path]) visit(network_.rate(path).value(), flows_[path], use);
    }
  }

  std::mt19937 random_{3};
  Events events_;
  FlowNetwork network_;
  std::vector<std::vector<LinkUse>> uses_;
  std::vector<int> flows_;
  int started_ = 0, ended_ = 0;
};

TEST(FlowNetwork, KeepsTheConditionsOfFairnessWhileFlowsComeAndGo) {
  Churn churn;
  for (int step = 0; step < 600; ++step) {
    churn.add_flows();
    churn.check();
    churn.let_some_end();
    churn.check();
  }
  EXPECT_GT(churn.ended(), 500);
}

}  // namespace
}  // namespace trainyard
