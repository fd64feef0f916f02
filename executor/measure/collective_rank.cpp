#include "executor/measure/collective_rank.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>

#ifdef TRAINYARD_HAS_MPI
#include <mpi.h>

#include "executor/cuda/device_party.h"
#include "executor/transport/mpi_transport.h"
#endif

namespace trainyard {

#ifdef TRAINYARD_HAS_MPI
namespace {

constexpr std::int64_t kMostRecords = 4096;
constexpr std::int64_t kParts = 1000;  // parts of the work, published as steps

struct MeasuredRanks {
  const MpiWorld& world;
  int per_host;
  std::atomic<RankCall>& call;
  std::function<void(double fraction)> progress;

  // The transport among the first `ranks` ranks; null on the others.
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

// An exception on one rank would leave the others in a collective: `give_up` ends them.
Expected<GroupSamples> measured_or_given_up(BackendKind backend, const MeasuredRanks& ranks,
                                            Seconds budget, void (*give_up)(const Error& why)) {
  try {
    return measured_by(backend, ranks, budget);
  } catch (const std::exception& error) {
    Error why{"", fmt::format("rank {} failed: {}", ranks.world.rank(), error.what())};
    give_up(why);
    return tl::unexpected(std::move(why));
  }
}

// Under a launcher of the user's, where no supervisor watches.
void end_all_ranks(const Error& why) {
  constexpr int kFailed = 3;
  fmt::print(stderr, "trainyard: {}\n", why.message);
  MpiWorld::abort(kFailed);
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
  const auto left_to_supervisor = [](const Error&) {};
  const auto samples = measured_or_given_up(
      backend, {world, world.ranks(), board->head().call, progress}, budget, left_to_supervisor);
  if (!samples) {
    set_text(board->head().message, samples.error().message);
    board->head().state = RankState::failed;
    return tl::unexpected(samples.error());
  }
  auto written = write_samples(*samples, *board);
  if (!written) set_text(board->head().message, written.error().message);
  board->head().state = written ? RankState::done : RankState::failed;
  return written;
}

Expected<LaunchedSamples> measure_launched(BackendKind backend, const Launcher& launcher,
                                           Seconds budget,
                                           const std::function<void(double fraction)>& progress) {
  const MpiWorld world;
  if (world.ranks() != launcher.ranks) return tl::unexpected(strangers(launcher.ranks));
  std::atomic<RankCall> call = RankCall::none;
  auto groups = measured_or_given_up(backend, {world, launcher.local_ranks, call, progress}, budget,
                                     end_all_ranks);
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

namespace {

// How samples lie in a board's room: this head, then a record for each collective.
struct WrittenSamples {
  std::int64_t collectives = 0;
  double overlap_slowdown = 0;
  bool staged = false;
};
struct WrittenCollective {
  CollectiveOperation operation{};
  std::int32_t ranks = 0;
  double bytes = 0;
  double median = 0, deviation = 0;  // s
  std::int32_t runs = 0, outliers = 0;
};
static_assert(std::is_trivially_copyable_v<WrittenSamples> &&
              std::is_trivially_copyable_v<WrittenCollective>);

WrittenCollective record_of(const TimedCollective& of) {
  return {.operation = of.sample.operation,
          .ranks = of.sample.gpus,
          .bytes = of.sample.bytes.value(),
          .median = of.timing.median.value(),
          .deviation = of.timing.deviation.value(),
          .runs = of.timing.runs,
          .outliers = of.timing.outliers};
}

TimedCollective collective_of(const WrittenCollective& of) {
  const Timing timing{Seconds(of.median), Seconds(of.deviation), of.runs, of.outliers};
  return {{of.operation, of.ranks, Bytes(of.bytes), timing.median}, timing};
}

}  // namespace

Expected<void> write_samples(const GroupSamples& samples, Board& board) {
  const std::span<char> room = board.room();
  const std::size_t count = samples.collectives.size();
  const std::size_t most = (room.size() - sizeof(WrittenSamples)) / sizeof(WrittenCollective);
  if (room.size() < sizeof(WrittenSamples) || count > most) {
    return failure("", fmt::format("{} collectives were measured, there is room for {}", count,
                                   room.size() < sizeof(WrittenSamples) ? 0 : most));
  }
  const WrittenSamples head{static_cast<std::int64_t>(count), samples.overlap_slowdown,
                            samples.staged};
  std::memcpy(room.data(), &head, sizeof(head));
  char* to = room.data() + sizeof(head);
  for (const TimedCollective& of : samples.collectives) {
    const WrittenCollective record = record_of(of);
    std::memcpy(std::exchange(to, to + sizeof(record)), &record, sizeof(record));
  }
  return {};
}

GroupSamples written_samples(Board& board) {
  const char* from = board.room().data();
  WrittenSamples head;
  std::memcpy(&head, std::exchange(from, from + sizeof(head)), sizeof(head));
  GroupSamples samples{.overlap_slowdown = head.overlap_slowdown, .staged = head.staged};
  for (std::int64_t i = 0; i < head.collectives; ++i) {
    WrittenCollective record;
    std::memcpy(&record, std::exchange(from, from + sizeof(record)), sizeof(record));
    samples.collectives.push_back(collective_of(record));
  }
  return samples;
}

}  // namespace trainyard
