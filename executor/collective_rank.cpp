#include "executor/collective_rank.h"

#include "executor/cpu/measure.h"
#ifdef TRAINYARD_HAS_MPI
#include "executor/cpu/mpi_transport.h"
#endif

namespace trainyard {
namespace {

constexpr std::int64_t kMostSamples = 256;

}  // namespace

#ifdef TRAINYARD_HAS_MPI
Expected<void> run_collective_rank(const std::filesystem::path& folder, Seconds budget) {
  const MpiWorld world;
  auto board = Board::create(folder, world.rank(), kMostSamples, 1);
  if (!board) return tl::unexpected(board.error());
  Plan plan;
  plan.data_parallel = world.ranks();
  const Program nothing;
  const RankLayout layout(plan, 1);
  const auto transport = make_mpi_transport(world, nothing, layout, board->head().call);
  board->head().state = RankState::running;
  const auto samples = measure_collectives(*transport, budget);
  if (!samples) {
    set_text(board->head().message, samples.error().message);
    board->head().state = RankState::failed;
    return tl::unexpected(samples.error());
  }
  OperationRecord* record = board->operations();
  for (const CollectiveSample& sample : *samples) {
    *record++ = {static_cast<double>(sample.operation), sample.bytes.value(), sample.time.value()};
  }
  board->head().operation = static_cast<std::int64_t>(samples->size());
  board->head().state = RankState::done;
  return {};
}
#else
Expected<void> run_collective_rank(const std::filesystem::path&, Seconds) {
  return failure("", "built without MPI: there is one rank, and nobody to talk to");
}
#endif

std::vector<CollectiveSample> collective_samples(Board& board, int ranks) {
  std::vector<CollectiveSample> samples;
  const OperationRecord* record = board.operations();
  for (std::int64_t i = 0; i < board.head().operation; ++i, ++record) {
    samples.push_back({static_cast<CollectiveOperation>(record->begin), ranks, Bytes(record->end),
                       Seconds(record->total)});
  }
  return samples;
}

}  // namespace trainyard
