// Which part of an exchange's time is measured. Also: what arithmetic or an exchange throws, while
// both are measured on two threads of one rank, reaches the caller.
#include "executor/measure/measure_collectives.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <utility>

namespace trainyard {
namespace {

using Act = std::function<void()>;

class ActingExchange final : public TimedExchange {
 public:
  explicit ActingExchange(const Act& act) : act_(act) {}
  Expected<double> time_of_one(int) override {
    act_();
    return 1e-3;
  }

 private:
  const Act& act_;
};

// An exchange of 10 us. The first of several in a row takes 40 us more, to reach an idle device;
// the very first takes half a second more, while the ranks connect.
class LaterExchange final : public TimedExchange {
 public:
  Expected<double> time_of_one(int in_a_row) override {
    const double first = std::exchange(connected_, true) ? 40e-6 : 0.5;
    return 10e-6 + first / in_a_row;
  }
  int most_in_a_row() const override { return 20; }

 private:
  bool connected_ = false;
};

class LoneGroup final : public CalibrationGroup {
 public:
  explicit LoneGroup(const Act& exchanges) : exchanges_(exchanges) {}
  Transport& host() override { return *transport_; }
  std::unique_ptr<TimedExchange> exchange(CollectiveOperation, int) override {
    return std::make_unique<ActingExchange>(exchanges_);
  }

 private:
  std::unique_ptr<Transport> transport_ = make_single_rank_transport();
  const Act& exchanges_;
};

// Measures one rank with these two actions only.
Expected<GroupSamples> measured(const Act& multiplies, const Act& exchanges) {
  const auto all = make_single_rank_transport();
  CalibrationParty party;
  party.group = [&](int) { return std::make_unique<LoneGroup>(exchanges); };
  party.product = [&] {
    multiplies();
    return 1e-3;
  };
  return measure_collectives({*all, 1, party, [](double) {}}, Seconds(0.1));
}

class LaterGroup final : public CalibrationGroup {
 public:
  explicit LaterGroup(std::unique_ptr<Transport> host) : host_(std::move(host)) {}
  Transport& host() override { return *host_; }
  std::unique_ptr<TimedExchange> exchange(CollectiveOperation, int) override {
    return std::make_unique<LaterExchange>();
  }

 private:
  std::unique_ptr<Transport> host_;
};

// The time for connecting alone exceeds the budget.
TEST(MeasuredCollectives, LeaveOutConnectingAndHandingOver) {
  Plan plan;
  plan.data_parallel = 2;
  const RankLayout layout(plan, 1);
  const auto all = make_stand_in_transport(layout, 0);
  CalibrationParty party{.sizes = 2};
  party.group = [&](int) {
    return std::make_unique<LaterGroup>(make_stand_in_transport(layout, 0));
  };
  party.product = [] { return 1e-3; };
  const auto samples = measure_collectives({*all, 2, party, [](double) {}}, Seconds(0.1));
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_EQ(samples->collectives.size(), 2 * 6U);
  for (const TimedCollective& of : samples->collectives) {
    const double ways = of.sample.operation == CollectiveOperation::send ? 2 : 1;
    EXPECT_NEAR(ways * of.sample.time.value(), 12e-6, 1e-9);
    EXPECT_GE(of.timing.runs, 5);
  }
}

// Every product takes 1 ms, with or without an exchange beside it, so nothing is lost.
TEST(MeasuredBesideEachOther, LosesNothingWhereProductsTakeAsLong) {
  const auto samples = measured([] {}, [] {});
  ASSERT_TRUE(samples);
  EXPECT_NEAR(samples->overlap_slowdown, 0, 1e-6);
}

// The first exchange, which connects the ranks, runs before any product.
TEST(MeasuredBesideEachOther, IsBesideRanksThatAreConnected) {
  std::atomic<int> exchanges = 0;
  int before_products = -1;
  const auto multiplies = [&] {
    if (before_products < 0) before_products = exchanges;
  };
  ASSERT_TRUE(measured(multiplies, [&] { ++exchanges; }));
  EXPECT_EQ(before_products, 1);
}

// The first exchange runs alone.
TEST(MeasuredBesideEachOther, ThrowsWhatTheExchangeThrows) {
  std::atomic<int> exchanges = 0;
  const auto exchange = [&] {
    if (++exchanges > 1) throw std::length_error("exchange");
  };
  EXPECT_THROW((void)measured([] {}, exchange), std::length_error);
}

TEST(MeasuredBesideEachOther, ThrowsWhatTheArithmeticThrows) {
  std::atomic<int> exchanges = 0;
  const auto multiplies = [&] {
    if (exchanges > 1) throw std::length_error("product");
  };
  EXPECT_THROW((void)measured(multiplies, [&] { ++exchanges; }), std::length_error);
}

}  // namespace
}  // namespace trainyard
