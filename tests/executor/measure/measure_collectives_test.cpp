// What arithmetic and an exchange throw while they are measured beside each other, on two threads
// of one rank: it reaches whoever measures.
#include "executor/measure/measure_collectives.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace trainyard {
namespace {

using Act = std::function<void()>;

class ActingExchange final : public TimedExchange {
 public:
  explicit ActingExchange(const Act& act) : act_(act) {}
  Expected<double> once() override {
    act_();
    return 1e-3;
  }

 private:
  const Act& act_;
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

// Of one rank, which has nothing but the two to measure.
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

// Every product takes 1 ms, beside an exchange and without: nothing is lost.
TEST(MeasuredBesideEachOther, LosesNothingWhereProductsTakeAsLong) {
  const auto samples = measured([] {}, [] {});
  ASSERT_TRUE(samples);
  EXPECT_NEAR(samples->overlap_slowdown, 0, 1e-6);
}

TEST(MeasuredBesideEachOther, ThrowsWhatTheExchangeThrows) {
  EXPECT_THROW((void)measured([] {}, [] { throw std::length_error("exchange"); }),
               std::length_error);
}

TEST(MeasuredBesideEachOther, ThrowsWhatTheArithmeticThrows) {
  std::atomic<bool> beside = false;
  const auto multiplies = [&] {
    if (beside) throw std::length_error("product");
  };
  EXPECT_THROW((void)measured(multiplies, [&] { beside = true; }), std::length_error);
}

}  // namespace
}  // namespace trainyard
