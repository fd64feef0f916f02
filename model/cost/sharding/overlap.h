// Communication of a stage's parameters beside its passes, unit by unit (embedding, layers, head):
// what is left of it where a pass ends, how late it makes one, and what both lose where they use
// the same links. Each unit's message waits for those before it, as on one stream of a library.
//
// Assumes layers of equal work (others: model/cost/sharding/unlike_units.h). Links that are shared
// go to both at equal rates (max-min fairness, as in simulator/network/flow_network.h).
#pragma once

#include <algorithm>
#include <utility>

#include "model/cost/messages/traffic.h"
#include "model/units.h"

namespace trainyard {

struct PassUnit {
  Seconds work;
  Seconds gather, reduce;  // its messages, in the time of the pass beside them
};

// The units of one chunk in the order of a pass.
struct UnitSequence {
  PassUnit first, layer, last;  // an end that the chunk does not have: nothing of all
  int layers = 0;
  bool has_first = false, has_last = false;

  // `visit` takes a unit and how many of it follow each other.
  template <typename Visit>
  void for_each(Visit visit) const {
    if (has_first) visit(first, 1);
    if (layers > 0) visit(layer, layers);
    if (has_last) visit(last, 1);
  }
};

// The same in the order of a pass the other way.
inline UnitSequence backwards(UnitSequence units) {
  std::swap(units.first, units.last);
  std::swap(units.has_first, units.has_last);
  return units;
}

// Reductions begin where their unit ends. What is left of them, and of `before`, at the end.
Seconds left_of_reductions(const UnitSequence& units, Seconds before = Seconds(0));

// All gathers begin with the pass, `before` ahead of them.
class GathersAhead {
 public:
  explicit GathersAhead(Seconds before) : gathered_(before) {}
  void pass(const UnitSequence& units);
  void other_work(Seconds time) { worked_ += time; }
  // Both so many times in turn.
  void pass_in_turn(int times, const UnitSequence& units, Seconds other);
  Seconds late() const { return late_; }

 private:
  Seconds gathered_, worked_, late_;
};

// What a pass shows of its messages, and the part of it that stands before its first unit and
// behind its last: a stage that waits for another one shows nothing of that.
struct ShownInPass {
  Seconds all, at_ends;
  ShownInPass& operator+=(ShownInPass other) {
    all += other.all;
    at_ends += other.at_ends;
    return *this;
  }
};
ShownInPass operator*(double times, ShownInPass shown);

// Each unit's gather runs beside the unit before it, behind the reductions of the one before that;
// no unit begins before the reduction of the unit before the last one has ended, and the pass ends
// with its last reduction.
ShownInPass shown_in_pass(const UnitSequence& units);

// Exchanges of a pass, by the group that makes them.
struct ExchangeTimes {
  Seconds tensor, context, expert;
  // Of a ring, not among those: what the pass's blocks hide, and how much longer those are.
  Seconds ring_hidden, ring_spare;
  Seconds total() const { return tensor + context + expert; }
};

// What a pass offers to communication beside it.
struct Cover {
  double rate = 1;  // seconds of communication that get done in a second of the pass
  double lost = 0;  // seconds that the pass grows by for each second of communication
};
// Communication of parameters.
struct DataTraffic {
  const GroupLinks& group;
  WireUse use;
};
// How many times longer a message of the group takes while that goes on beside it.
double stretched_beside(const DataTraffic& data, const GroupLinks& group, const WireUse& use);
// A pass of `time`, its exchanges included, whose kernels lose `slowdown` of their pace to
// communication of the group `data`.
Cover cover_of(Seconds time, const ExchangeTimes& exchanges, double slowdown,
               const DataTraffic& data, const PlanLinks& links, const ExchangeUse& use);

}  // namespace trainyard
