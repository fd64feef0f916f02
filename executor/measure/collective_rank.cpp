#include "executor/measure/collective_rank.h"

#include <algorithm>
#include <array>
#include <cmath>

#ifdef TRAINYARD_HAS_MPI
#include <mpi.h>

#include "executor/cpu/mpi_transport.h"
#include "executor/cuda/device_party.h"
#endif

namespace trainyard {

#ifdef TRAINYARD_HAS_MPI
namespace {

constexpr std::int64_t kMostRecords = 4096;
constexpr std::int64_t kParts = 1000;  // of the work, which count as steps

// A collective is two records, what and how long; behind the last one stands the slow-down,
// and whether ranks shared a device.
void write(const GroupSamples& samples, Board& board) {
  OperationRecord* record = board.operations();
  for (const auto& [sample, timing] : samples.collectives) {
    *record++ = {static_cast<double>(sample.operation), static_cast<double>(sample.gpus),
                 sample.bytes.value()};
    *record++ = {timing.median.value(), timing.deviation.value(),
                 timing.runs + 1e-3 * timing.outliers};
  }
  *record++ = {samples.overlap_slowdown, samples.staged ? 1.0 : 0.0, 0};
  board.head().operation = record - board.operations();
}

struct MeasuredRanks {
  const MpiWorld& world;
  int per_host;
  std::atomic<RankCall>& call;
  std::function<void(double fraction)> progress;

  // Among the first so many ranks; nothing on the others.
  std::unique_ptr<Transport> group(int ranks) const {
    Plan plan;
    plan.data_parallel = ranks;
    return make_mpi_transport(world, {}, RankLayout(plan, 1), call);
  }
};

Expected<GroupSamples> measured_by(BackendKind backend, const MeasuredRanks& ranks,
                                   Seconds budget) {
  const auto all = ranks.group(ranks.world.ranks());
  const auto group = [&ranks](int size) { return ranks.group(size); };
  if (backend == BackendKind::cpu) {
    return measure_collectives({*all, ranks.per_host, host_party(group), ranks.progress}, budget);
  }
  const auto party = make_device_party(*all, group);
  if (!party) return tl::unexpected(party.error());
  auto samples =
      measure_collectives({*all, ranks.per_host, (*party)->party(), ranks.progress}, budget);
  if (auto state = (*party)->state(); !state) return tl::unexpected(state.error());
  if (samples) samples->staged = (*party)->shared();
  return samples;
}

}  // namespace

Expected<void> run_collective_rank(const std::filesystem::path& folder, BackendKind backend,
                                   Seconds budget) {
  const MpiWorld world;
  auto board = Board::create(folder, world.rank(), kMostRecords, kParts);
  if (!board) return tl::unexpected(board.error());
  board->head().state = RankState::running;
  const auto progress = [&](double fraction) {
    board->head().steps_done = std::llround(fraction * kParts);
  };
  const auto samples =
      measured_by(backend, {world, world.ranks(), board->head().call, progress}, budget);
  if (!samples) {
    set_text(board->head().message, samples.error().message);
    board->head().state = RankState::failed;
    return tl::unexpected(samples.error());
  }
  write(*samples, *board);
  board->head().state = RankState::done;
  return {};
}

Expected<LaunchedSamples> measure_launched(BackendKind backend, const Launcher& launcher,
                                           Seconds budget,
                                           const std::function<void(double fraction)>& progress) {
  const MpiWorld world;
  if (world.ranks() != launcher.ranks) return tl::unexpected(strangers(launcher.ranks));
  std::atomic<RankCall> call = RankCall::none;
  auto groups = measured_by(backend, {world, launcher.local_ranks, call, progress}, budget);
  if (!groups) return tl::unexpected(groups.error());
  return LaunchedSamples{world.rank(), world.ranks() / launcher.local_ranks, *std::move(groups)};
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view all(text.data(), static_cast<std::size_t>(length));
  return std::string(all.substr(0, all.find_first_of(",\n")));
}
#else
std::string mpi_library() { return "no MPI"; }

Expected<void> run_collective_rank(const std::filesystem::path&, BackendKind, Seconds) {
  return failure("", "built without MPI: there is one rank, and nobody to talk to");
}

Expected<LaunchedSamples> measure_launched(BackendKind, const Launcher&, Seconds,
                                           const std::function<void(double fraction)>&) {
  return failure("", "built without MPI: there is one rank, and nobody to talk to");
}
#endif

GroupSamples group_samples(Board& board) {
  GroupSamples samples;
  const OperationRecord* record = board.operations();
  const OperationRecord* last = record + std::max<std::int64_t>(board.head().operation, 1) - 1;
  for (; record < last; record += 2) {
    const OperationRecord &what = record[0], &how_long = record[1];
    const double runs = std::floor(how_long.total);
    const Timing timing{Seconds(how_long.begin), Seconds(how_long.end), static_cast<int>(runs),
                        static_cast<int>(std::lround(1e3 * (how_long.total - runs)))};
    samples.collectives.push_back({{static_cast<CollectiveOperation>(what.begin),
                                    static_cast<int>(what.end), Bytes(what.total), timing.median},
                                   timing});
  }
  samples.overlap_slowdown = last->begin;
  samples.staged = last->end > 0;
  return samples;
}

}  // namespace trainyard
