// Greedy list scheduling of one pipeline step: in the order of virtual time, each stage that is
// free begins the next pass that its policy prefers. Internal to planner/passes.
#pragma once

#include <queue>
#include <vector>

#include "model/schedule/ticks.h"
#include "planner/passes/pass_order.h"

namespace trainyard {

// Which pass a stage prefers next.
struct StagePolicy {
  int ahead = 1;     // most forward passes whose input gradient has not run yet
  double slack = 0;  // share of a weight gradient that may delay a pass that is on its way
  // True: forward passes come before gradients until `ahead` of them wait for theirs. A weight
  // gradient then also delays either where the stage would else have been idle longest of all.
  bool in_turn = false;
};

class ListScheduler {
 public:
  explicit ListScheduler(const PassOrderProblem& problem);

  // Time of the step under these policies, one a stage; the largest value: stages are stuck.
  Ticks run(const std::vector<StagePolicy>& policies);
  Seconds seconds(Ticks time) const { return clock_.seconds(time); }
  // The lists of the last run.
  PassList passes() const;

 private:
  struct Stage {
    Ticks forward, input, weight;   // times of its passes
    double room;                    // micro-batches
    int forwards, inputs, weights;  // passes done
    Ticks start, now, waited;
    int version;  // of its decision: older versions in the queue are void
    PassKind next;
  };
  struct Decision {
    Ticks at;
    int stage, version;
    bool operator>(const Decision& other) const {
      return at != other.at ? at > other.at : stage > other.stage;
    }
  };

  void reset();
  bool has_room(const Stage& stage) const;
  // Chooses the stage's next pass (Stage::next) and returns when it begins; kNever: the stage waits
  // for others.
  Ticks decide(int index, const StagePolicy& policy);
  void enqueue(int index, const StagePolicy& policy);
  // Whether a weight gradient goes before the next pass, which can begin at `next`.
  bool prefers_weight(const Stage& stage, Ticks next, const StagePolicy& policy) const;
  // Runs the stage's next pass; returns the stage that gets its output, −1: none.
  int commit(int index, Ticks at);
  Ticks& forward_input(int stage, int microbatch) {
    return forward_inputs_[place(stage, microbatch)];
  }
  Ticks& gradient(int stage, int microbatch) { return gradients_[place(stage, microbatch)]; }
  std::size_t place(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(problem_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }
  Ticks result() const;

  const PassOrderProblem& problem_;
  TickClock clock_;
  Ticks send_;
  Ticks most_waited_ = 0;  // of any stage, between its passes
  std::vector<Stage> stages_;
  // [stage][micro-batch]: when the input of a forward pass, and an output's gradient, are there.
  std::vector<Ticks> forward_inputs_, gradients_;
  std::vector<std::vector<PassKind>> order_;
  std::priority_queue<Decision, std::vector<Decision>, std::greater<>> queue_;
};

}  // namespace trainyard
