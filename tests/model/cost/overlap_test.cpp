#include "model/cost/sharding/overlap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "model/cluster/link_loads.h"
#include "tests/model/cost/data_parallel_traffic.h"

namespace trainyard {
namespace {

UnitSequence random_units(std::mt19937& random) {
  const auto some = [&] { return Seconds(static_cast<double>(random() % 8)); };
  const auto unit = [&](bool gathers) {
    return PassUnit{some(), gathers ? some() + Seconds(1) : Seconds(0), some()};
  };
  const bool gathers = random() % 2 == 0;
  UnitSequence units{unit(gathers), unit(gathers), unit(gathers)};
  units.layers = static_cast<int>(random() % 7);
  units.has_first = random() % 2 == 0;
  units.has_last = random() % 2 == 0;
  return units;
}

std::vector<PassUnit> one_by_one(const UnitSequence& units) {
  std::vector<PassUnit> all;
  units.for_each([&](const PassUnit& unit, int count) {
    all.insert(all.end(), static_cast<std::size_t>(count), unit);
  });
  return all;
}

// Plays the messages of a pass unit by unit; the link is busy until `link`, compute until `clock`.
// A unit begins when its weights are gathered. That gather waits for the reductions that were given
// to the link before the previous unit began, and so does a unit without a gather, for two units'
// gradients are there at most. A unit's own reduction is given to the link when the unit ends.
Seconds played_pass(const std::vector<PassUnit>& units) {
  Seconds clock;
  Seconds link;
  Seconds begun;      // when the unit before began
  Seconds to_reduce;  // the reduction of the unit before
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (i > 0) link = std::max(link, begun);
    link += units[i].gather;
    clock = std::max(clock, link);
    if (i > 0) link = std::max(link, clock) + to_reduce;
    begun = clock;
    clock += units[i].work;
    to_reduce = units[i].reduce;
  }
  return std::max(clock, link) + to_reduce;
}

TEST(ShownInPass, IsWhatUnitsOneByOneTakeLonger) {
  std::mt19937 random(1);
  for (int draw = 0; draw < 2000; ++draw) {
    const UnitSequence units = random_units(random);
    const std::vector<PassUnit> all = one_by_one(units);
    if (all.empty()) continue;
    Seconds work;
    for (const PassUnit& unit : all) work += unit.work;
    ASSERT_NEAR(shown_in_pass(units).all.value(), (played_pass(all) - work).value(), 1e-9) << draw;
  }
}

TEST(LeftOfReductions, IsWhatIsLeftOneByOne) {
  std::mt19937 random(2);
  for (int draw = 0; draw < 2000; ++draw) {
    const UnitSequence units = random_units(random);
    const Seconds before(static_cast<double>(random() % 20));
    Seconds clock;
    Seconds link = before;
    for (const PassUnit& unit : one_by_one(units)) {
      clock += unit.work;
      link = std::max(link, clock) + unit.reduce;
    }
    const Seconds left = std::max(Seconds(0), link - clock);
    ASSERT_NEAR(left_of_reductions(units, before).value(), left.value(), 1e-9) << draw;
  }
}

TEST(GathersAhead, MakeTheUnitLateThatWaitsTheLongest) {
  std::mt19937 random(3);
  for (int draw = 0; draw < 2000; ++draw) {
    const Seconds before(static_cast<double>(random() % 8));
    GathersAhead gathers(before);
    Seconds link = before;
    Seconds clock;
    Seconds late;
    for (int pass = 0; pass < 3; ++pass) {
      const UnitSequence units = random_units(random);
      const int times = 1 + static_cast<int>(random() % 4);
      gathers.pass_in_turn(times, units, Seconds(pass));
      for (int turn = 0; turn < times; ++turn) {
        for (const PassUnit& unit : one_by_one(units)) {
          link += unit.gather;
          late = std::max(late, link - clock);
          clock += unit.work;
        }
        clock += Seconds(pass);
      }
    }
    ASSERT_NEAR(gathers.late().value(), late.value(), 1e-9) << draw;
  }
}

// Two groups on four nodes, one rank of each in a node, with 1 byte per second between them, whose
// NICs have 4. Two links between switches, by the share of each that they fill.
struct Meeting {
  LinkLoads of_data, of_exchange;
  GroupLinks data, exchange;

  Meeting(const LinkLoads::Loads& of_ring, const LinkLoads::Loads& of_passing)
      : of_data({of_ring}), of_exchange({LinkLoads::Loads{}, of_passing}) {
    data.size = data.domains = 4;
    data.inside = BytesPerSecond(100);
    data.across = data.passing = BytesPerSecond(1);
    data.way_out = BytesPerSecond(4);
    exchange = data;
    data.loads = &of_data;
    exchange.loads = &of_exchange;
  }
  double stretch() const {
    return stretched_beside(ring_of(data), exchange, passing_use(exchange));
  }
  double hidden(double time, double other) const {
    return hidden_beside(Seconds(time), ring_of(data), Seconds(other), exchange,
                         passing_use(exchange))
        .value();
  }
};
constexpr std::uint8_t kAll = 255, kTwoFifths = 102;

TEST(StretchedBeside, CountsTheLinksThatBothUse) {
  EXPECT_NEAR(Meeting({kAll, 0}, {0, kAll}).stretch(), 1, 1e-9);
  EXPECT_NEAR(Meeting({kAll, kAll}, {0, kAll}).stretch(), 2, 1e-9);
  // Bytes of both pass at equal rates, and fill the link by 2/5 and by all of it.
  EXPECT_NEAR(Meeting({kAll, kTwoFifths}, {0, kAll}).stretch(), 1.4, 1e-9);
  EXPECT_NEAR(Meeting({kAll, kAll}, {kTwoFifths, 0}).stretch(), 1.4, 1e-9);
}

// Links that were counted only for one of the two: they are taken for the same ones.
TEST(StretchedBeside, TakesLinksThatWereNotCountedForTheSame) {
  EXPECT_NEAR(Meeting({kAll, 0}, {}).stretch(), 2, 1e-9);
}

// Six seconds of messages beside ten of reductions. Where these fill 2/5 of a link and messages all
// of it, both have 5/7 of their rates, and 4 s of reductions are left after 8.4 s: 12.4 s in all.
TEST(HiddenBeside, IsWhatEndsEarlierThanOneAfterTheOther) {
  EXPECT_NEAR(Meeting({kAll, 0}, {0, kAll}).hidden(10, 6), 6, 1e-9);
  EXPECT_NEAR(Meeting({kAll, kAll}, {0, kAll}).hidden(10, 6), 0, 1e-9);
  EXPECT_NEAR(Meeting({kAll, kTwoFifths}, {0, kAll}).hidden(10, 6), 16 - 12.4, 1e-9);
  EXPECT_NEAR(Meeting({kAll, 0}, {}).hidden(10, 6), 0, 1e-9);
}

}  // namespace
}  // namespace trainyard
