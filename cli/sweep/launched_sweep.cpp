#include "cli/sweep/launched_sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "executor/launcher.h"
#include "executor/supervision/meeting.h"
#include "scenarios/sweep/workers/remote.h"

namespace trainyard {
namespace {

constexpr std::chrono::seconds kPatienceWithOthers{60};

Expected<std::optional<WorkerPool>> answer_for_rank_0(const Sweep& sweep,
                                                      const LaunchedProcess& meeting,
                                                      const std::string& identity) {
  const std::size_t end = meeting.text.find(' ');
  if (end == std::string::npos) return failure("sweep", "rank 0 could not begin");
  if (meeting.text.substr(0, end) != identity) {
    return failure("sweep", fmt::format("rank {} reads another sweep, other inputs or another "
                                        "version than rank 0; allowed: the same everywhere",
                                        meeting.rank));
  }
  const auto socket = connect_to_sweep(meeting.text.substr(end + 1));
  if (!socket) return tl::unexpected(socket.error());
  std::signal(SIGINT, SIG_IGN);  // rank 0 handles interruptions
  serve_leases(sweep, *socket);
  ::close(*socket);
  return std::optional<WorkerPool>();
}

}  // namespace

Expected<std::optional<WorkerPool>> share_sweep(const Sweep& sweep, int ranks) {
  const std::string identity = identity_of(sweep, TRAINYARD_VERSION);
  std::optional<WorkerListener> listener;
  const auto meeting = meet([&]() -> Expected<std::string> {
    auto opened = WorkerListener::open();
    if (!opened) return tl::unexpected(opened.error());
    listener.emplace(std::move(*opened));
    return fmt::format("{} {}", identity, listener->address());
  });
  if (!meeting) return tl::unexpected(meeting.error());
  if (meeting->ranks == 1) return tl::unexpected(strangers(ranks));
  if (meeting->rank != 0) return answer_for_rank_0(sweep, *meeting, identity);
  WorkerPool pool = listener->accept(meeting->ranks - 1, kPatienceWithOthers);
  if (!pool.workers().empty()) return std::optional<WorkerPool>(std::move(pool));
  return failure("sweep", fmt::format("none of {} workers came to rank 0 within {} s; allowed: "
                                      "TCP between the machines",
                                      meeting->ranks - 1, kPatienceWithOthers.count()));
}

}  // namespace trainyard
