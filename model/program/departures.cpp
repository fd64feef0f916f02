#include "model/program/departures.h"

#include <algorithm>
#include <functional>

#include "model/program/parts/unit.h"

namespace trainyard {
namespace {

std::vector<std::size_t> layers_among(const std::vector<ChunkUnit>& units) {
  std::vector<std::size_t> layers;
  for (const ChunkUnit& unit : units) {
    if (unit.is_layer) layers.push_back(unit.place);
  }
  return layers;
}

}  // namespace

int DepartureMaker::wait_for(const UnitBlocks& layer, int layers) {
  std::vector<Block>& all = lowering_.program.blocks;
  const auto [found, is_new] = waits_.try_emplace({&layer, layers}, static_cast<int>(all.size()));
  if (!is_new) return found->second;
  Operation wait{.kind = OperationKind::await, .dtype = lowering_.dtype};
  for (const Operation& restore : layer.restores) {
    for (const Operand& operand : restore.operands) {
      if (operand.access == Access::read) wait.operands.push_back(reads(operand.buffer, -layers));
    }
  }
  all.push_back({.name = "activations gone", .kind = {}, .operations = {std::move(wait)}});
  return found->second;
}

// The copies wait for the gradient that the layer behind reads as its backward pass begins.
int DepartureMaker::recall_of(const UnitBlocks& layer, int layers) {
  std::vector<Block>& all = lowering_.program.blocks;
  const auto [found, is_new] = recalls_.try_emplace({&layer, layers}, static_cast<int>(all.size()));
  if (!is_new) return found->second;
  std::vector<Operation> restores = layer.restores;
  for (Operation& restore : restores) {
    restore.operands.push_back(reads(lowering_.gradient, layers + 1));
  }
  all.push_back({.name = "activations come", .kind = {}, .operations = std::move(restores)});
  return found->second;
}

ChunkDepartures DepartureMaker::departures_of(const std::vector<ChunkUnit>& units) {
  const std::vector<std::size_t> layers = layers_among(units);
  const auto all = static_cast<int>(layers.size());
  const auto leaving =
      static_cast<int>(std::ranges::count_if(units, std::mem_fn(&ChunkUnit::leaves)));
  if (leaving == 0 || leaving == all) return {};
  const auto layer = [&](int i) -> const ChunkUnit& {
    return units[layers[static_cast<std::size_t>(i)]];
  };
  // At least one layer is between, as where all layers' activations leave.
  const int to_leave = std::max(2, all - leaving);
  const int to_come = std::max(1, all - leaving - 1);
  ChunkDepartures departures(units.size());
  for (int i = 0; i < leaving; ++i) {
    const ChunkUnit& away = layer(i);
    if (i + to_leave < all) {
      const ChunkUnit& waits = layer(i + to_leave);
      departures[waits.place].left = waits.at;
      departures[waits.place].left.block = wait_for(*away.blocks, to_leave);
    }
    UnitDepartures& calls = departures[layer(i + to_come).place];
    calls.called_back = away.at;
    calls.called_back.block = recall_of(*away.blocks, to_come);
  }
  return departures;
}

std::vector<ChunkDepartures> DepartureMaker::departures_of(const StageChunks& chunks) {
  std::vector<ChunkDepartures> departures;
  for (std::size_t i = 0; i < chunks.layouts().size(); ++i) {
    departures.push_back(departures_of(chunks.units(static_cast<int>(i))));
  }
  return departures;
}

}  // namespace trainyard
