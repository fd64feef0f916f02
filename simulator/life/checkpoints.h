// The checkpoints of a run in their tiers: which are being written, which can be loaded, what each
// costs. A tier that is still writing leaves a checkpoint out; the first one decides when the next
// may begin. Memory and NVMe go with the nodes that held all copies of a part.
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

  // What training stands for if one is begun now.
  Nanoseconds blocking(Nanoseconds now) const;
  // A checkpoint of `work` whose blocking part ended now.
  void put(Nanoseconds work, Nanoseconds now);
  // When the next may begin, and when the newest one can be loaded.
  Nanoseconds first_free() const { return shelves_.front().busy_until; }

  // A failure: what was not yet written never will be.
  void drop_unwritten(Nanoseconds now);
  // The nodes are gone for good, and with them the tiers that had too few copies.
  void lose_nodes(int nodes);
  // Those of more work than this hold corrupt state.
  void drop_after(Nanoseconds work);

  struct Loaded {
    Nanoseconds work{0};  // 0: nothing is left, the run begins again
    Nanoseconds time{0};  // of loading, with those that validation refused
  };
  // The newest that can be loaded, from the fastest tier that has it.
  Loaded load();

 private:
  struct Copy {
    Nanoseconds work, usable_from;
    int increments = 0;  // to be read after the full one
  };
  struct Shelf {
    TierCost cost;
    Nanoseconds write{0}, read{0};
    Nanoseconds busy_until{0};
    std::vector<Copy> copies;  // by work; increments behind the full one that they need
    int chain = 0;             // increments the next one needs; 0: it is full
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
