#include "model/cost/overlap.h"

namespace trainyard {

Seconds left_of_reductions(const UnitSequence& units, Seconds before) {
  Seconds left = before;
  units.for_each(
      [&](const PassUnit& unit) { left = std::max(Seconds(0), left - unit.work) + unit.reduce; });
  return left;
}

void GathersAhead::pass(const UnitSequence& units) {
  units.for_each([this](const PassUnit& unit) {
    gathered_ += unit.gather;
    late_ = std::max(late_, gathered_ - worked_);
    worked_ += unit.work;
  });
}

ShownInPass operator*(double times, ShownInPass shown) {
  return {times * shown.all, times * shown.at_ends};
}

ShownInPass shown_in_pass(const UnitSequence& units) {
  Seconds waited;
  Seconds first_gather;
  Seconds left;  // of reductions, where the unit at hand begins
  PassUnit before;
  bool is_first = true;
  units.for_each([&](const PassUnit& unit) {
    if (is_first) {
      first_gather = unit.gather;
    } else {
      // Beside the unit before this one: what was left to reduce, then this one's gather.
      const Seconds beside = unit.gather > Seconds(0) ? left + unit.gather : Seconds(0);
      waited += std::max(Seconds(0), beside - before.work);
      left = unit.gather > Seconds(0) ? Seconds(0) : std::max(Seconds(0), left - before.work);
      left += before.reduce;
    }
    before = unit;
    is_first = false;
  });
  const Seconds tail = std::max(Seconds(0), left - before.work) + before.reduce;
  return {first_gather + waited + tail, first_gather + tail};
}

namespace {

// What becomes of an exchange and of communication beside it while both are at work: how much
// longer the one takes, and how fast the other goes on.
struct Together {
  double stretch = 1, pace = 1;
};

// Rates are of the member that sends most. Flows on a link of `capacity` have equal rates, unless
// one is held up elsewhere: then the other has the rest.
struct Sharing {
  BytesPerSecond capacity;
  BytesPerSecond data, exchange;              // alone
  double data_share = 1, exchange_share = 1;  // of a member's bytes that go over the link
  Together together() const {
    const BytesPerSecond fair = capacity / (data_share + exchange_share);
    if (exchange <= fair) {
      const BytesPerSecond left = (capacity - exchange_share * exchange) / data_share;
      return {1, std::min(1.0, left / data)};
    }
    if (data <= fair) {
      const BytesPerSecond left = (capacity - data_share * data) / exchange_share;
      return {std::max(1.0, exchange / left), 1};
    }
    return {exchange / fair, fair / data};
  }
};

// Of a member's bytes, those that go over its own link between domains: a ring spreads what leaves
// a domain over the links of all its members there.
double crossing(const GroupLinks& links, bool all_to_all) {
  if (all_to_all) return static_cast<double>(links.size - links.ranks_per_domain) / links.size;
  return 1.0 / links.ranks_per_domain;
}

Together at_work(const GroupLinks& data, const GroupLinks& exchange, bool all_to_all) {
  if (data.size <= 1 || exchange.size <= 1) return {};
  const double out = crossing(data, false);
  const bool crosses = data.domains > 1;
  if (exchange.domains > 1) {
    if (!crosses) return {};
    const double exchanged = crossing(exchange, all_to_all);
    const BytesPerSecond across = all_to_all ? exchange.across_all_to_all : exchange.across;
    return Sharing{.capacity = data.across,
                   .data = data.across / out,
                   .exchange = std::min(exchange.inside, across / exchanged),
                   .data_share = out,
                   .exchange_share = exchanged}
        .together();
  }
  if (crosses && data.ranks_per_domain == 1) return {};
  const BytesPerSecond alone = crosses ? std::min(data.inside, data.across / out) : data.inside;
  return Sharing{.capacity = data.inside, .data = alone, .exchange = exchange.inside}.together();
}

}  // namespace

Cover cover_of(Seconds time, const ExchangeTimes& exchanges, double slowdown,
               const GroupLinks& data, const PlanLinks& links) {
  if (time <= Seconds(0)) return {};
  const Seconds kernels = time - exchanges.total();
  Seconds done = kernels / std::max(0.01, 1 - slowdown);
  Seconds lost = done - kernels;
  const auto add = [&](Seconds exchange, const GroupLinks& group, bool all_to_all) {
    const Together together = at_work(data, group, all_to_all);
    done += exchange * (together.stretch * together.pace);
    lost += exchange * (together.stretch - 1);
  };
  add(exchanges.tensor, links.tensor, false);
  add(exchanges.context, links.context, true);
  add(exchanges.expert, links.expert, true);
  if (done <= Seconds(0)) return {};
  return {done / time, lost / done};
}

}  // namespace trainyard
