// The checkpoints of a run in their tiers: which are being written, which can be loaded, what each
// costs. A tier that is still writing skips a checkpoint; a new checkpoint begins only when the
// first tier is free. A tier on nodes (memory, NVMe) loses all its checkpoints when at least as
// many nodes are lost as hold copies of the same part.
#pragma once

#include <optional>
#include <vector>

#include "simulator/engine/random.h"
#include "simulator/life/clock.h"
#include "simulator/life/settings.h"

namespace trainyard {

class Checkpoints {
 public:
  Checkpoints(const LifeSettings& settings, std::uint64_t seed);

  // How long training would be blocked by a checkpoint that begins now.
  Nanoseconds blocking(Nanoseconds now) const;
  // A checkpoint whose blocking part ended now; `work`: the training that it saves.
  void put(Nanoseconds work, Nanoseconds now);
  // When the first tier is free: the next checkpoint may begin, and the newest one can be loaded.
  Nanoseconds first_free() const { return shelves_.front().busy_until; }

  // A failure: checkpoints that are still being written are lost.
  void drop_unwritten(Nanoseconds now);
  // These nodes are gone for good, and with them the checkpoints of tiers with too few copies.
  void lose_nodes(int nodes);
  // Drops the checkpoints of more work than this, because they hold corrupt state.
  void drop_after(Nanoseconds work);

  struct Loaded {
    Nanoseconds work{0};  // 0: no checkpoint is left, the run begins again
    Nanoseconds time{0};  // of loading, including loads that validation refused
  };
  // Loads the newest checkpoint, from the fastest tier that has it. One that validation refuses is
  // dropped and the next one tried.
  Loaded load();

 private:
  struct Copy {
    Nanoseconds work, usable_from;
    int increments = 0;  // increments to be read after the full checkpoint
  };
  struct Shelf {
    TierCost cost;
    Nanoseconds write{0}, read{0};
    Nanoseconds busy_until{0};
    std::vector<Copy> copies;  // in order of work; increments follow the full one they need
    int chain = 0;             // increments since the last full one; 0: the next is full
  };
  double share(int chain) const;
  bool writes(const Shelf& shelf, Nanoseconds now) const;
  Nanoseconds write_time(const Shelf& shelf) const;
  Nanoseconds read_time(const Shelf& shelf, const Copy& copy) const;
  void discard(Shelf& shelf) const;
  Shelf* newest();

  const LifeSettings& settings_;
  RandomStream random_;
  std::vector<Shelf> shelves_;
  Nanoseconds copy_{0}, validation_{0};
  std::int64_t taken_ = 0;
};

}  // namespace trainyard
