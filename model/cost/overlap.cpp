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

// Collectives as rings, messages to the next member over links of its own, or to all of them.
enum class ExchangeWay { ring, to_next, to_all };

ExchangeWay way_of(ContextAlgorithm algorithm) {
  if (algorithm == ContextAlgorithm::ring) return ExchangeWay::to_next;
  return algorithm == ContextAlgorithm::all_gather ? ExchangeWay::ring : ExchangeWay::to_all;
}

// Of a member's bytes, those that go over its own link between domains: a ring spreads what leaves
// a domain over the links of all its members there.
double crossing(const GroupLinks& links, ExchangeWay way) {
  if (way == ExchangeWay::to_all) {
    return static_cast<double>(links.size - links.ranks_per_domain) / links.size;
  }
  return way == ExchangeWay::to_next ? 1.0 : 1.0 / links.ranks_per_domain;
}

Together at_work(const GroupLinks& data, const GroupLinks& exchange, ExchangeWay way) {
  if (data.size <= 1 || exchange.size <= 1) return {};
  const double out = crossing(data, ExchangeWay::ring);
  const bool crosses = data.domains > 1;
  if (exchange.domains > 1) {
    if (!crosses) return {};
    const double exchanged = crossing(exchange, way);
    const BytesPerSecond across =
        way == ExchangeWay::to_all ? exchange.across_all_to_all : exchange.across;
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

// Communication of which a share is latency meets an exchange only while it moves, which takes as
// much longer as it then goes slower.
Together with_latency(Together moving, double latency) {
  const double cycle = latency + (1 - latency) / moving.pace;
  const double met = (cycle - latency) / cycle;
  return {1 / (1 - met + met / moving.stretch), 1 / cycle};
}

}  // namespace

Cover cover_of(Seconds time, const ExchangeTimes& exchanges, double slowdown,
               const DataTraffic& data, const PlanLinks& links, const ExchangeForm& form) {
  if (time <= Seconds(0)) return {};
  const Seconds kernels = time - exchanges.total();
  Seconds done = kernels / std::max(0.01, 1 - slowdown);
  Seconds lost = done - kernels;
  const auto add = [&](Seconds exchange, const GroupLinks& group, ExchangeWay way, double latency) {
    const Together together = with_latency(at_work(data.group, group, way), data.latency);
    const Seconds moving = exchange * (1 - latency);
    done += exchange * latency + moving * (together.stretch * together.pace);
    lost += moving * (together.stretch - 1);
  };
  add(exchanges.tensor, links.tensor, ExchangeWay::ring, form.tensor_latency);
  add(exchanges.context, links.context, way_of(form.context), form.context_latency);
  add(exchanges.expert, links.expert, ExchangeWay::to_all, form.expert_latency);
  if (done <= Seconds(0)) return {};
  return {done / time, lost / done};
}

}  // namespace trainyard
