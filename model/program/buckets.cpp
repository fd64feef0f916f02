#include "model/program/buckets.h"

#include <algorithm>
#include <functional>

#include "model/cost/sharding/gradient_buckets.h"

namespace trainyard {
namespace {

bool is_of_experts(const Operation& operation) { return operation.group == Group::expert_data; }

// The operation of the list that an operation of another unit joins: the same over other
// parameters.
Operation* joined(std::vector<Operation>& list, const Operation& operation) {
  const auto same = std::find_if(list.begin(), list.end(), [&](const Operation& other) {
    return other.kind == operation.kind && other.group == operation.group;
  });
  return same == list.end() ? nullptr : &*same;
}

// Adds an operation over the parameters of a unit so many layers behind that of the call.
void join(std::vector<Operation>& list, Operation operation, int ahead) {
  for (Operand& operand : operation.operands) operand.ahead = ahead;
  Operation* const before = joined(list, operation);
  if (before == nullptr) return list.push_back(std::move(operation));
  before->message += operation.message;
  before->operands.insert(before->operands.end(), operation.operands.begin(),
                          operation.operands.end());
}

// Where the buffers of a bucket's layers are counted from: its first layer.
BlockCall first_layer(std::span<const ChunkUnit> units) {
  const auto first = std::find_if(units.begin(), units.end(), std::mem_fn(&ChunkUnit::is_layer));
  return first == units.end() ? BlockCall{} : first->at;
}

}  // namespace

double BucketMaker::parameters(const ChunkUnit& unit, Class of) const {
  double all = 0;
  for (const Operation& sum : unit.blocks->bucketed_sums) {
    if (is_of_experts(sum) != (of == Class::experts)) continue;
    double elements = 0;
    for (const Operand& operand : sum.operands) {
      const ProgramBuffer& gradient = lowering_.program.buffer(operand.buffer);
      elements += static_cast<double>(gradient.rows) * static_cast<double>(gradient.columns);
    }
    all = std::max(all, elements);  // a second operation is over the same parameters
  }
  return all;
}

int BucketMaker::block_of(Units units, Class of, Moves moves) {
  const int base = first_layer(units).local_layer;
  std::vector<const UnitBlocks*> key;
  std::vector<Operation> operations;
  for (const ChunkUnit& unit : units) {
    key.push_back(unit.blocks);
    const auto& own =
        moves == Moves::sums ? unit.blocks->bucketed_sums : unit.blocks->bucketed_gathers;
    const int ahead = unit.is_layer ? unit.at.local_layer - base : 0;
    for (const Operation& operation : own) {
      if (is_of_experts(operation) == (of == Class::experts)) join(operations, operation, ahead);
    }
  }
  if (operations.empty()) return -1;
  std::vector<Block>& all = lowering_.program.blocks;
  const auto [found, is_new] =
      blocks_.try_emplace({key, {of, moves}}, static_cast<int>(all.size()));
  if (is_new) {
    const bool sums = moves == Moves::sums;
    all.push_back({.name = sums ? "gradient bucket reduction" : "weight bucket gather",
                   .kind = {},
                   .operations = std::move(operations)});
  }
  return found->second;
}

void BucketMaker::add(Units units, Class of, UnitBuckets& out) {
  BlockCall call = first_layer(units);
  call.block = block_of(units, of, Moves::sums);
  if (call.block >= 0) out.sums.push_back(call);
  call.block = block_of(units, of, Moves::gathers);
  if (call.block >= 0) out.gathers.push_back(call);
}

void BucketMaker::cut(Units units, double limit, Class of, ChunkBuckets& out) {
  const auto has_some = [&](const ChunkUnit& unit) { return parameters(unit, of) > 0; };
  const auto first = std::find_if(units.begin(), units.end(), has_some);
  const auto lowest = static_cast<std::size_t>(first - units.begin());
  double held = 0;
  std::size_t end = units.size();
  for (std::size_t i = end; i-- > lowest;) {
    held += parameters(units[i], of);
    if (held < limit && i > lowest) continue;
    add(units.subspan(i, end - i), of, out[i]);
    held = 0;
    end = i;
  }
}

std::vector<ChunkBuckets> BucketMaker::buckets_of(const StageChunks& chunks) {
  std::vector<ChunkBuckets> buckets(chunks.layouts().size());
  if (!uses_buckets(lowering_.training, lowering_.plan)) return buckets;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const int chunk = static_cast<int>(i);
    const std::vector<ChunkUnit> units = chunks.units(chunk);
    const double limit =
        bucket_limit(lowering_.training.stack, lowering_.plan, {chunks.stage(), chunk});
    buckets[i].resize(units.size());
    for (const Class of : {Class::dense, Class::experts}) cut(units, limit, of, buckets[i]);
  }
  return buckets;
}

}  // namespace trainyard
