#include "executor/supervision/start.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "executor/host/standard_error.h"
#include "executor/host/temporary_folder.h"
#include "executor/supervision/diagnosis.h"
#include "executor/supervision/end_watch.h"
#include "executor/supervision/host_boards.h"
#include "executor/supervision/supervisor.h"
#include "executor/transport/socket_transport.h"
#include "model/program/check.h"
#include "model/program/lower.h"
#ifdef TRAINYARD_HAS_MPI
#include "executor/transport/mpi_transport.h"
#endif

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// How long a rank that was told to end waits before it exits, so that the others can save too:
// mpirun gives its ranks a second to end, but cuts that short as soon as the first of them is gone.
constexpr std::chrono::seconds kOthersSave(2);

// The signals that tell a rank to end. Ctrl-C is for the supervisor where there is one.
sigset_t termination(const Started& started) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  if (!started.folder) sigaddset(&signals, SIGINT);
  return signals;
}

// The boards of all ranks; only its own for a rank that runs alone.
Expected<std::vector<Board>> collected(Transport& transport, const Board& own, bool alone) {
  std::vector<Board> boards;
  if (alone) {
    auto board = Board::copied(own.bytes());
    if (!board) return tl::unexpected(board.error());
    boards.push_back(*std::move(board));
    return boards;
  }
  for (int from = 0; from < transport.ranks(); ++from) {
    std::string bytes;
    if (transport.rank() == from) bytes = std::string(own.bytes());
    if (auto told = transport.broadcast(bytes, from); !told) return tl::unexpected(told.error());
    auto board = Board::copied(bytes);
    if (!board) return tl::unexpected(board.error());
    boards.push_back(*std::move(board));
  }
  return boards;
}

// The folder of the boards: the supervisor's, or a temporary one of the rank's own.
class BoardFolder {
 public:
  explicit BoardFolder(const Started& started) {
    if (started.folder) {
      path_ = *started.folder;
      return;
    }
    auto made = TemporaryFolder::make("rank");
    if (made) {
      own_ = *std::move(made);
      path_ = own_->path();
    } else {
      path_ = tl::unexpected(made.error());
    }
  }

  Expected<Board> board(int place, std::int64_t operations, std::int64_t steps) const {
    if (!path_) return tl::unexpected(path_.error());
    return Board::create(*path_, place, operations, steps);
  }
  // Requires: there is a board in it.
  const fs::path& path() const { return *path_; }
  void remove() const { remover()(); }
  std::function<void()> remover() const {
    return own_ ? own_->remover() : [] {};
  }

 private:
  std::optional<TemporaryFolder> own_;
  Expected<fs::path> path_;
};

// Takes the rank's board off its host's folder when the rank is done.
struct Leaving {
  HostBoards& host;
  ~Leaving() { host.leave(); }
};

struct RankWorld {
  const Started& started;
  HostBoards& host;
  const Setting& setting;
  const RunPlan& plan;
  const SaveBoard& save;
  const BoardFolder& folder;
  EndWatch& ends;
};

// While it lives, the rank's board is saved if the rank is told to end or hangs.
class Watched {
 public:
  Watched(const RankWorld& world, const RunWords& words, Board& board) : ends_(world.ends) {
    BoardHead& head = board.head();
    WatchedRank rank;
    if (!world.started.folder) rank.timeout = world.plan.timeout;
    // The others wait for rank 0 while it trains the network alone.
    rank.beats = [&head, &host = world.host]() -> std::optional<std::int64_t> {
      if (head.state == RankState::unsharded && head.rank != 0) return std::nullopt;
      return head.beats + static_cast<std::int64_t>(head.state.load()) + host.beats();
    };
    rank.hanging = [&world, &words, &head] {
      const auto seen = world.host.said_of([&](const Boards& boards) {
        return standstill_of(boards, words, world.plan.timeout).value_or("");
      });
      return world.host.agree_on(
          !seen.empty() ? seen
                        : sentence_of(head, not_gone_on(world.plan.timeout), words.described));
    };
    rank.save = [&](const std::string& why) {
      head.state = RankState::terminated;
      if (!world.started.folder) world.save(board, why);
    };
    ends_.watch(std::move(rank));
  }
  ~Watched() { ends_.let_go(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  EndWatch& ends_;
};

// The sentence on a rank that failed. If a peer has gone, waits a moment until that peer is found
// dead: its connections close before its process has ended, and its board says what it was doing.
std::string why_failed(HostBoards& host, const RunWords& words, const BoardHead& head,
                       std::string_view message) {
  constexpr std::chrono::milliseconds kLook{20};
  constexpr int kLooks = 50;
  for (int i = 0; i < kLooks && message.ends_with(kHasGone); ++i) {
    std::string dead =
        host.said_of([&](const Boards& boards) { return death_of(boards, words).value_or(""); });
    if (!dead.empty()) return dead;
    std::this_thread::sleep_for(kLook);
  }
  return sentence_of(head, message, words.described);
}

Expected<RankResult> run_on(const RankWorld& world, const Program& program,
                            const RankLayout& layout, Transport& transport, Board& board) {
  const RunWords words = words_of(program, layout);
  const Leaving leaving{world.host};
  const Watched watched(world, words, board);
  const bool is_watched = world.started.folder.has_value();
  RankResult result{.rank = transport.rank()};
  Expected<void> done;
  if (!is_watched && transport.ranks() > 1 && !world.plan.alone) {
    done = world.host.join(transport, Board::file_in(world.folder.path(), result.rank));
  }
  if (done) done = run_rank(world.setting, world.plan, program, layout, transport, board);
  if (is_watched) {
    if (!done) result.failure = fmt::format("rank {}: {}", result.rank, done.error().message);
    return result;
  }
  if (done) {
    auto boards = collected(transport, board, world.plan.alone.has_value());
    if (!boards) {
      done = tl::unexpected(boards.error());
    } else {
      result.boards = *std::move(boards);
    }
  }
  if (done) return result;
  const std::string& message = done.error().message;
  result.failure = why_failed(world.host, words, board.head(), message);
  result.is_said = message == kAnotherRank;
  if (!result.is_said) {
    Verdict verdict = world.host.agree_on(result.failure);
    result.failure = std::move(verdict.sentence);
    result.is_said = !verdict.is_own;
  }
  world.save(board, result.failure);
  return result;
}

Error wrong_ranks(int of_plan, int started) {
  return {"", fmt::format("the plan has {} ranks, {} were started", of_plan, started)};
}

// Runs a rank of a launcher that sets RANK and WORLD_SIZE.
template <typename BoardOf>
Expected<RankResult> run_at(const Rendezvous& at, const RankWorld& world, const Program& program,
                            const RankLayout& layout, const BoardOf& board_of) {
  if (at.ranks != layout.ranks()) return tl::unexpected(wrong_ranks(layout.ranks(), at.ranks));
  auto board = board_of(at.rank);
  if (!board) return tl::unexpected(board.error());
  const auto transport = make_socket_transport(at, layout, board->head().call, world.plan.timeout);
  if (!transport) return tl::unexpected(transport.error());
  return run_on(world, program, layout, **transport, *board);
}

// Runs a rank that reaches the others, if there are any, through `transport`.
template <typename BoardOf>
Expected<RankResult> run_over(const std::unique_ptr<Transport>& transport, const RankWorld& world,
                              const Program& program, const RankLayout& layout,
                              const BoardOf& board_of) {
  auto board = board_of(transport->rank());
  if (!board) return tl::unexpected(board.error());
  return run_on(world, program, layout, *transport, *board);
}

#ifdef TRAINYARD_HAS_MPI
constexpr int kRankFailed = 3;  // exit status, as of every run whose machine failed

// Without a supervisor, a rank that fails ends the others too: MPI_Finalize would wait for them,
// and they for this rank. If another rank is at fault, that one reports the sentence and ends them.
Expected<RankResult> ended(const MpiWorld& mpi, const RankWorld& world,
                           Expected<RankResult> result) {
  if (world.started.folder) return result;
  if (result && (result->failure.empty() || result->is_said)) return result;
  if (result) {
    to_stderr(fmt::format("trainyard: {}\n", result->failure));
  } else {
    const Error& error = result.error();
    to_stderr(fmt::format("trainyard: rank {}: {}{}{}\n", mpi.rank(), error.where,
                          error.where.empty() ? "" : ": ", error.message));
  }
  world.folder.remove();
  MpiWorld::abort(kRankFailed);
  return result;
}
#endif

// Runs a rank of mpirun or srun.
template <typename BoardOf>
Expected<RankResult> run_under_mpi([[maybe_unused]] const RankWorld& world,
                                   [[maybe_unused]] const Program& program,
                                   const RankLayout& layout,
                                   [[maybe_unused]] const BoardOf& board_of) {
#ifdef TRAINYARD_HAS_MPI
  const MpiWorld mpi;
  const int started = world.started.launcher.ranks;
  if (mpi.ranks() == 1 && started > 1) return tl::unexpected(strangers(started));
  if (mpi.ranks() != layout.ranks()) {
    return tl::unexpected(wrong_ranks(layout.ranks(), mpi.ranks()));
  }
  auto board = board_of(mpi.rank());
  if (!board) return ended(mpi, world, tl::unexpected(board.error()));
  const auto transport = make_mpi_transport(mpi, program, layout, board->head().call);
  return ended(mpi, world, run_on(world, program, layout, *transport, *board));
#else
  return failure("", fmt::format("the plan has {} ranks; built without MPI, one rank can be run",
                                 layout.ranks()));
#endif
}

}  // namespace

Expected<std::optional<Started>> started_as_rank() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
  if (const char* folder = std::getenv(kRunFolder)) return Started{folder, {}};
  auto launcher = launcher_in_environment();
  if (!launcher) return tl::unexpected(launcher.error());
  if (launcher->kind == LauncherKind::none) return std::nullopt;
  return Started{std::nullopt, *std::move(launcher)};
}

Expected<RankResult> run_as_rank(const Started& started, const Setting& setting,
                                 const RunPlan& plan, const SaveBoard& save) {
  const sigset_t signals = termination(started);
  // before the first thread is started: MPI has its own
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (started.folder) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto program = lower(setting.model, setting.training, setting.plan);
  if (!program) return tl::unexpected(program.error());
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  if (auto checked = check(*program, layout); !checked) return tl::unexpected(checked.error());
  const BoardFolder folder(started);
  const bool others_save = started.launcher.kind == LauncherKind::mpi;
  const auto host = std::make_shared<HostBoards>();
  EndWatch ends(signals, [remove = folder.remover(), host, others_save] {
    host->leave();
    remove();
    if (others_save) std::this_thread::sleep_for(kOthersSave);
  });
  const RankWorld world{started, *host, setting, plan, save, folder, ends};
  const auto board_of = [&](int rank) {
    const auto stage = static_cast<std::size_t>(layout.coordinates(rank).stage);
    const int place = plan.alone ? 0 : rank;
    auto board = folder.board(place, program->stages[stage].operations, plan.all_steps());
    if (board) board->head().rank = rank;
    return board;
  };
  if (plan.alone) {
    return run_over(make_stand_in_transport(layout, *plan.alone), world, *program, layout,
                    board_of);
  }
  if (layout.ranks() == 1) {
    return run_over(make_single_rank_transport(), world, *program, layout, board_of);
  }
  const Launcher& launcher = started.launcher;
  if (launcher.kind == LauncherKind::torchrun) {
    const Rendezvous at{launcher.rank, launcher.ranks, launcher.address, launcher.port};
    return run_at(at, world, *program, layout, board_of);
  }
  return run_under_mpi(world, *program, layout, board_of);
}

}  // namespace trainyard
