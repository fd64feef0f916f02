#include "cli/run/rank_reporter.h"

#include <fmt/format.h>

#include <array>

#include "executor/host/standard_error.h"
#include "executor/supervision/whereabouts.h"
#include "scenarios/rank_status.h"

namespace trainyard {
namespace {

constexpr std::chrono::milliseconds kBetween{200};

std::string_view state_name(RankState state) {
  constexpr std::array<std::string_view, 8> kNames = {
      "absent", "starting", "unsharded", "running", "comparing", "done", "failed", "terminated"};
  return kNames.at(static_cast<std::size_t>(state));
}

RankStatus status_of(Board& board, const RankReporter::Describe& described) {
  const BoardHead& head = board.head();
  RankStatus status{.rank = head.rank,
                    .host = head.host.data(),
                    .state = std::string(state_name(head.state.load())),
                    .steps_done = head.steps_done.load(),
                    .steps = head.steps,
                    .operation = -1,
                    .operations = head.operations};
  const std::vector<std::int64_t> at = operations_at(head);
  if (!at.empty()) status.operation = at.front();
  if (head.state == RankState::running && status.operation >= 0) {
    status.at = described(status.rank, status.operation);
  }
  status.call = name_of(head.call.load());
  if (status.steps_done > 0) {
    const StepRecord& last = board.steps()[status.steps_done - 1];
    status.step_time = Seconds(last.time);
    status.loss = last.loss;
  }
  status.peak_memory = Bytes(head.peak_bytes);
  return status;
}

}  // namespace

void RankReporter::look(Boards& boards) {
  if (Clock::now() < next_) return;
  next_ = Clock::now() + kBetween;
  say(boards);
}

void RankReporter::say(Boards& boards) const {
  std::vector<RankStatus> ranks;
  ranks.reserve(boards.size());
  for (auto& board : boards) {
    const int rank = static_cast<int>(ranks.size());
    ranks.push_back(
        board ? status_of(*board, described_)
              : RankStatus{.rank = rank, .state = std::string(state_name(RankState::absent))});
  }
  to_stderr(fmt::format("{}\n", rank_status_line(ranks)));
}

}  // namespace trainyard
