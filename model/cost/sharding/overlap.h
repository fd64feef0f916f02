// Communication of a stage's parameters beside its passes, unit by unit (embedding, layers, head):
// what is left of it where a pass ends, how late it makes a pass, and what both lose where they use
// the same links. Every message waits for those before it, as on one stream of a library.
//
// Example, ZeRO-3: layers of 10 ms whose gathers take 4 ms. Each gather is hidden beside the layer
// before; only the first one shows. If gathers take 12 ms, each layer waits 2 ms besides.
//
// Assumes layers of equal work (others: model/cost/sharding/unlike_units.h). Shared links go to
// both at equal rates (max-min fairness, as in simulator/network/flow_network.h).
#pragma once

#include <algorithm>
#include <utility>

#include "model/cost/messages/traffic.h"
#include "model/units.h"

namespace trainyard {

struct PassUnit {
  Seconds work;
  Seconds gather, reduce;  // its messages: seconds of the pass in which they get done beside it
  PassUnit& operator+=(const PassUnit& other) {
    work += other.work;
    gather += other.gather;
    reduce += other.reduce;
    return *this;
  }
};
inline PassUnit operator+(PassUnit a, const PassUnit& b) { return a += b; }
inline PassUnit operator*(double times, const PassUnit& unit) {
  return {times * unit.work, times * unit.gather, times * unit.reduce};
}

// The units of one chunk in the order of a pass.
struct UnitSequence {
  PassUnit first, layer, last;  // an end that the chunk does not have: all zero
  int layers = 0;
  bool has_first = false, has_last = false;

  // Calls `visit(unit, count)` for each run of `count` equal units.
  template <typename Visit>
  void for_each(Visit visit) const {
    if (has_first) visit(first, 1);
    if (layers > 0) visit(layer, layers);
    if (has_last) visit(last, 1);
  }
};

// The same units in the order of a pass the other way.
inline UnitSequence backwards(UnitSequence units) {
  std::swap(units.first, units.last);
  std::swap(units.has_first, units.has_last);
  return units;
}

// Reductions still to do when the pass has ended, where each may begin when its unit has ended.
// `before`: reductions that were left when the pass began.
Seconds left_of_reductions(const UnitSequence& units, Seconds before = Seconds(0));

// How late passes are whose gathers are all asked for at their beginning and come one after
// another, `before` ahead of the first.
class GathersAhead {
 public:
  explicit GathersAhead(Seconds before) : gathered_(before) {}
  void pass(const UnitSequence& units);
  void other_work(Seconds time) { worked_ += time; }
  // pass(units), then other_work(other), so many times.
  void pass_in_turn(int times, const UnitSequence& units, Seconds other);
  Seconds late() const { return late_; }

 private:
  Seconds gathered_, worked_, late_;
};

// Exposed messages of a pass, and the part of them before its first unit and behind its last. A
// stage that waits for another one anyway does not show the latter.
struct ShownInPass {
  Seconds all, at_ends;
  ShownInPass& operator+=(ShownInPass other) {
    all += other.all;
    at_ends += other.at_ends;
    return *this;
  }
};
ShownInPass operator*(double times, ShownInPass shown);

// A unit's gather runs beside the unit before it, behind the reduction of the unit before that one;
// a unit begins when both have ended, and the pass ends with its last reduction.
ShownInPass shown_in_pass(const UnitSequence& units);

// Exposed exchanges of a pass, by the group that makes them.
struct ExchangeTimes {
  Seconds tensor, context, expert;
  // Not among those: messages of ring attention that its blocks hide, and how much longer than
  // these messages the blocks are.
  Seconds ring_hidden, ring_spare;
  Seconds total() const { return tensor + context + expert; }
};

// What a pass offers to communication beside it.
struct Cover {
  double rate = 1;  // seconds of communication that get done in a second of the pass
  double lost = 0;  // seconds that the pass grows by for each second of communication
};
// A group of communication of parameters, and how its messages use links.
struct LinksInUse {
  const GroupLinks& group;
  WireUse use;
};
// Communication of parameters. Those of one class (experts) may stay inside domains while those of
// the other leave them.
struct DataTraffic {
  LinksInUse all;      // the mean of all
  LinksInUse leaving;  // what leaves domains; beside the rest, links between domains are free
  const LinksInUse& met_by(const GroupLinks& exchange) const {
    return exchange.domains > 1 ? leaving : all;
  }
};
// How many times as long a message of `group`, which uses links as `use` says, takes while `data`
// goes on beside it.
double stretched_beside(const DataTraffic& data, const GroupLinks& group, const WireUse& use);
// By how much `time` of that and `other` of messages of `group` are done earlier side by side than
// one after the other. 0 where they fill the same links.
Seconds hidden_beside(Seconds time, const DataTraffic& data, Seconds other, const GroupLinks& group,
                      const WireUse& use);
// What a pass of `time`, its exchanges included, offers to `data`. `slowdown`: share of their pace
// that kernels lose beside it.
Cover cover_of(Seconds time, const ExchangeTimes& exchanges, double slowdown,
               const DataTraffic& data, const PlanLinks& links, const ExchangeUse& use);

}  // namespace trainyard
