// The buckets in which a program reduces gradients and gathers updated weights
// (model/cost/sharding/gradient_buckets.h): each is one operation over the parameters of several
// units. Internal to model/program.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "model/program/chunk_units.h"

namespace trainyard {

// The calls of a chunk's buckets, by the unit that comes first in a forward pass: its gathers are
// for this unit and others behind it, and its backward pass completes their sums. Empty without
// buckets.
struct UnitBuckets {
  std::vector<BlockCall> sums, gathers;
};
using ChunkBuckets = std::vector<UnitBuckets>;  // [unit]

// Adds the blocks of buckets to the program; buckets of like units share one.
class BucketMaker {
 public:
  // `lowering` outlives this, and so do the blocks of the chunks' units.
  explicit BucketMaker(Lowering& lowering) : lowering_(lowering) {}
  std::vector<ChunkBuckets> buckets_of(const StageChunks& chunks);  // [chunk]

 private:
  using Units = std::span<const ChunkUnit>;
  enum class Class : std::uint8_t { dense, experts };
  enum class Moves : std::uint8_t { sums, gathers };

  void cut(Units units, double limit, Class of, ChunkBuckets& out);
  void add(Units units, Class of, UnitBuckets& out);
  int block_of(Units units, Class of, Moves moves);
  double parameters(const ChunkUnit& unit, Class of) const;

  Lowering& lowering_;
  std::map<std::pair<std::vector<const UnitBlocks*>, std::pair<Class, Moves>>, int> blocks_;
};

}  // namespace trainyard
