#include "model/cost/sharding/overlap.h"

#include <optional>

namespace trainyard {

namespace {

// Reductions left after `more` further units equal to `unit`, the last of which left `left`, its
// own reduction included. Each unit changes it by the same amount, but its own reduction is always
// left.
Seconds left_behind(Seconds left, const PassUnit& unit, int more) {
  return std::max(unit.reduce, left + more * (unit.reduce - unit.work));
}

}  // namespace

Seconds left_of_reductions(const UnitSequence& units, Seconds before) {
  Seconds left = before;
  units.for_each([&](const PassUnit& unit, int count) {
    left = std::max(Seconds(0), left - unit.work) + unit.reduce;
    left = left_behind(left, unit, count - 1);
  });
  return left;
}

void GathersAhead::pass(const UnitSequence& units) {
  // Over equal units the lateness rises or falls in equal steps, so the first or the last unit of
  // the run is the latest.
  units.for_each([this](const PassUnit& unit, int count) {
    const Seconds first = gathered_ + unit.gather - worked_;
    gathered_ += count * unit.gather;
    worked_ += count * unit.work;
    late_ = std::max({late_, first, gathered_ - worked_ + unit.work});
  });
}

void GathersAhead::pass_in_turn(int times, const UnitSequence& units, Seconds other) {
  const auto once = [&] {
    pass(units);
    other_work(other);
  };
  once();
  if (times == 1) return;
  // From one repeat to the next the lateness changes by the same amount, so the first or the last
  // repeat is the latest; those between are only added up.
  const int between = times - 2;
  units.for_each([&](const PassUnit& unit, int count) {
    gathered_ += between * count * unit.gather;
    worked_ += between * count * unit.work;
  });
  worked_ += between * other;
  once();
}

ShownInPass operator*(double times, ShownInPass shown) {
  return {times * shown.all, times * shown.at_ends};
}

namespace {

class PassWithMessages {
 public:
  void begin(const PassUnit& unit) {
    first_gather_ = unit.gather;
    before_ = unit;
  }
  void add(const PassUnit& unit) {
    // Beside the unit before this one: the reduction that was left, then this unit's gather.
    waited_ += std::max(Seconds(0), left_ + unit.gather - before_.work);
    left_ = before_.reduce;
    before_ = unit;
  }
  // `more` further units behind two equal ones.
  void add_alike(int more) {
    waited_ += more * std::max(Seconds(0), left_ + before_.gather - before_.work);
  }
  ShownInPass shown() const {
    const Seconds tail = std::max(Seconds(0), left_ - before_.work) + before_.reduce;
    return {first_gather_ + waited_ + tail, first_gather_ + tail};
  }

 private:
  Seconds first_gather_, waited_;
  Seconds left_;  // reduction to do when the last unit begins
  PassUnit before_;
};

}  // namespace

ShownInPass shown_in_pass(const UnitSequence& units) {
  PassWithMessages pass;
  bool is_first = true;
  units.for_each([&](const PassUnit& unit, int count) {
    is_first ? pass.begin(unit) : pass.add(unit);
    if (count > 1) pass.add(unit);
    if (count > 2) pass.add_alike(count - 2);
    is_first = false;
  });
  return pass.shown();
}

namespace {

// What happens to an exchange of a pass and to communication of parameters while both move bytes:
// how many times as long the exchange takes, and at which share of its rate the other goes on.
struct Together {
  double stretch = 1, pace = 1;
};

// Two flows on one link: they get equal rates (max-min fairness), unless one is slower elsewhere;
// then the other has the rest. An exchange that is faster alone than the link is, of a group that
// has faster ones, goes over those (of a mesh, or inside a part of a fabric). Rates are of the
// member that sends most.
struct SharedLink {
  BytesPerSecond capacity;
  BytesPerSecond of_exchange;                 // capacity of the links of the exchange's own group
  BytesPerSecond data, exchange;              // rates alone
  double data_share = 1, exchange_share = 1;  // share of a member's bytes that go over the link
  Together together() const {
    const BytesPerSecond flow = exchange_share * exchange;
    if (flow > capacity && of_exchange > capacity) return {};
    const BytesPerSecond most = std::max(capacity, flow);
    const BytesPerSecond fair = most / (data_share + exchange_share);
    if (exchange <= fair) {
      const BytesPerSecond left = (most - flow) / data_share;
      return {1, std::min(1.0, left / data)};
    }
    if (data <= fair) {
      const BytesPerSecond left = (most - data_share * data) / exchange_share;
      return {std::max(1.0, exchange / left), 1};
    }
    return {exchange / fair, fair / data};
  }
};

Together worst(const Together& a, const Together& b) {
  return {std::max(a.stretch, b.stretch), std::min(a.pace, b.pace)};
}

// Where links between domains, of this bandwidth per member, carry all that both send out.
Together across_links(const LinksInUse& data, const GroupLinks& exchange, const WireUse& use,
                      BytesPerSecond capacity) {
  return SharedLink{.capacity = capacity,
                    .of_exchange = exchange.across,
                    .data = data.use.rate,
                    .exchange = use.rate,
                    .data_share = data.use.crossing,
                    .exchange_share = use.crossing}
      .together();
}

// On a link between switches, whose bandwidth is the unit of `capacity`.
Together at_switch(const WireUse& data, const WireUse& exchange, const LinkLoads::Met& met) {
  if (met.own * data.filling <= 0 || met.other * exchange.filling <= 0) return {};
  const BytesPerSecond link(1);
  return SharedLink{.capacity = link,
                    .of_exchange = link,
                    .data = data.rate,
                    .exchange = exchange.rate,
                    .data_share = met.own * data.filling * (link / data.rate),
                    .exchange_share = met.other * exchange.filling * (link / exchange.rate)}
      .together();
}

// None: the links that one of them uses were not counted one by one.
std::optional<LinkLoads::Meetings> met_at_switches(const LinksInUse& data,
                                                   const GroupLinks& exchange, const WireUse& use) {
  const LinkLoads* loads = data.group.loads;
  if (loads == nullptr || exchange.loads == nullptr) return std::nullopt;
  return loads->met(data.use.pattern, *exchange.loads, use.pattern);
}

// Both groups leave their domains. Where the links that they use were counted one by one, they meet
// at NICs and on the links that they have in common. An exchange that stays below a leaf does not
// use the leaf's uplinks, even if these limit the traffic of parameters.
Together between_domains(const LinksInUse& data, const GroupLinks& exchange, const WireUse& use) {
  const GroupLinks& group = data.group;
  if (const auto met = met_at_switches(data, exchange, use)) {
    Together all = across_links(data, exchange, use, group.way_out);
    for (const LinkLoads::Met& link : {met->fullest, met->own_most, met->other_most}) {
      all = worst(all, at_switch(data.use, use, link));
    }
    return all;
  }
  const bool meet_at_nics = exchange.narrow_levels < group.narrow_levels;
  return across_links(data, exchange, use, meet_at_nics ? group.way_out : group.across);
}

Together at_work(const LinksInUse& data, const GroupLinks& exchange, const WireUse& use) {
  if (data.group.size <= 1 || exchange.size <= 1) return {};
  const bool crosses = data.group.domains > 1;
  if (exchange.domains > 1) {
    if (!crosses) return {};
    const Together across = between_domains(data, exchange, use);
    const double data_inside = 1 - data.use.crossing;
    const double exchange_inside = 1 - use.crossing;
    if (data_inside <= 0 || exchange_inside <= 0) return across;
    // Bytes that stay inside the domain meet on links that may be the slower ones.
    const Together inside = SharedLink{.capacity = data.group.inside,
                                       .of_exchange = exchange.inside,
                                       .data = data.use.rate,
                                       .exchange = use.rate,
                                       .data_share = data_inside,
                                       .exchange_share = exchange_inside}
                                .together();
    return worst(across, inside);
  }
  // What leaves the domain meets what stays inside where a device has one link for both (PCIe).
  if (crosses && data.group.ranks_per_domain == 1 && !exchange.one_link) return {};
  const BytesPerSecond capacity = exchange.one_link ? exchange.inside : data.group.inside;
  return SharedLink{.capacity = capacity,
                    .of_exchange = exchange.inside,
                    .data = data.use.rate,
                    .exchange = use.rate}
      .together();
}

// `moving` holds while bytes of the communication of parameters move. For a share `free` of its
// time (alone) it leaves the links free, and the exchange meets it only in the rest.
Together some_of_the_time(Together moving, double free) {
  const double cycle = free + (1 - free) / moving.pace;
  const double met = (cycle - free) / cycle;
  return {1 / (1 - met + met / moving.stretch), 1 / cycle};
}

Together beside(const DataTraffic& data, const GroupLinks& exchange, const WireUse& use) {
  const LinksInUse& met = data.met_by(exchange);
  return some_of_the_time(at_work(met, exchange, use), met.use.free);
}

}  // namespace

double stretched_beside(const DataTraffic& data, const GroupLinks& group, const WireUse& use) {
  return beside(data, group, use).stretch;
}

Seconds hidden_beside(Seconds time, const DataTraffic& data, Seconds other, const GroupLinks& group,
                      const WireUse& use) {
  const auto [stretch, pace] = beside(data, group, use);
  const Seconds both = std::min(stretch * other, 1 / pace * time);  // until one of them is done
  return (pace + 1 / stretch - 1) * both;
}

Cover cover_of(Seconds time, const ExchangeTimes& exchanges, double slowdown,
               const DataTraffic& data, const PlanLinks& links, const ExchangeUse& use) {
  if (time <= Seconds(0)) return {};
  const Seconds kernels = time - exchanges.total();
  const double pace = 1 / std::max(0.01, 1 - slowdown);  // beside kernels
  Seconds done = kernels * pace;
  Seconds lost = done - kernels;
  const auto add = [&](Seconds exchange, const GroupLinks& group, const WireUse& of) {
    if (exchange <= Seconds(0)) return;
    const Together together = beside(data, group, of);
    const Seconds moving = exchange * (1 - of.free);
    done += exchange * of.free + moving * (together.stretch * together.pace);
    lost += moving * (together.stretch - 1);
  };
  add(exchanges.tensor, links.tensor, use.tensor);
  add(exchanges.context, links.context, use.context);
  add(exchanges.expert, links.expert, use.expert);
  if (exchanges.ring_hidden > Seconds(0)) {
    // The hidden ring messages take longer. The pass grows by what exceeds the blocks beside them.
    const Together together = beside(data, links.context, use.context);
    const Seconds moving = exchanges.ring_hidden * (1 - use.context.free);
    const Seconds longer = moving * (together.stretch - 1);
    const Seconds spared = std::min(longer, exchanges.ring_spare);
    done += moving * (together.stretch * together.pace) - (moving + spared) * pace;
    lost += longer - spared;
  }
  if (done <= Seconds(0)) return {};
  return {done / time, lost / done};
}

}  // namespace trainyard
