#include "gui/presenters/execution/rank_watch.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "gui/presenters/text.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

constexpr double kWindow = 5;             // s that looks are kept
constexpr std::size_t kFewestLooks = 10;  // before a rank is said to fall behind
constexpr double kMost = 0.7;             // fraction of the looks
constexpr double kStandstill = 5;         // s without a new operation

bool is_running(const RankStatus& status) { return status.state == "running"; }
bool is_computing(const RankStatus& status) { return is_running(status) && status.call.empty(); }

// The rank that alone computes while every other rank waits; −1: there is none.
int waited_for_in(const std::vector<RankStatus>& ranks) {
  int found = -1;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!is_running(ranks[i])) return -1;
    if (!is_computing(ranks[i])) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return ranks.size() > 1 ? found : -1;
}

bool has_gone_on(const std::vector<RankStatus>& before, const std::vector<RankStatus>& now) {
  if (before.size() != now.size()) return true;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (std::tie(before[i].state, before[i].steps_done, before[i].operation) !=
        std::tie(now[i].state, now[i].steps_done, now[i].operation)) {
      return true;
    }
  }
  return false;
}

QString where_of(const RankStatus& status) {
  const QString step = RankWatch::tr("step %1").arg(status.steps_done);
  return status.at.empty() ? step : RankWatch::tr("%1, %2").arg(step, qt(status.at));
}

// Orders ranks by how likely each is to block the others: first those that run, then those that
// compute, then those that have done least.
std::tuple<bool, bool, std::int64_t, std::int64_t> progress_of(const RankStatus& status) {
  return {!is_running(status), !is_computing(status), status.steps_done, status.operation};
}

}  // namespace

void RankWatch::look(double time, std::vector<RankStatus> ranks) {
  if (has_gone_on(ranks_, ranks)) changed_ = time;
  ranks_ = std::move(ranks);
  looks_.push_back({time, waited_for_in(ranks_)});
  while (looks_.front().time < time - kWindow) looks_.pop_front();
  judge(time);
}

double RankWatch::share(std::size_t rank) const {
  if (looks_.empty()) return 0;
  const auto held = std::ranges::count(looks_, static_cast<int>(rank), &Look::waited_for);
  return static_cast<double>(held) / static_cast<double>(looks_.size());
}

void RankWatch::judge_standstill(double seconds) {
  const auto latest = std::ranges::min_element(ranks_, {}, progress_of);
  if (latest == ranks_.end() || !is_running(*latest)) return;
  const QString time = qt(number(seconds, 2));
  const QString call = latest->call.empty() ? QString() : tr(", in %1").arg(qt(latest->call));
  if (std::ranges::count(ranks_, progress_of(*latest), progress_of) > 1) {
    alert_ = tr("No rank has begun an operation for %1 s; they are at %2%3.")
                 .arg(time, where_of(*latest), call);
    return;
  }
  behind_ = static_cast<int>(latest - ranks_.begin());
  alert_ = tr("No rank has begun an operation for %1 s; rank %2 on %3 is at %4%5.")
               .arg(time)
               .arg(latest->rank)
               .arg(qt(latest->host), where_of(*latest), call);
}

void RankWatch::judge(double time) {
  behind_ = -1;
  alert_.clear();
  if (time - changed_ >= kStandstill) {
    judge_standstill(time - changed_);
    return;
  }
  if (looks_.size() < kFewestLooks) return;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (share(i) < kMost) continue;
    behind_ = static_cast<int>(i);
    alert_ = tr("Rank %1 on %2 falls behind: the others waited for it in %3 % of the last %4 s "
                "(%5).")
                 .arg(ranks_[i].rank)
                 .arg(qt(ranks_[i].host), qt(number(100 * share(i), 2)),
                      qt(number(looks_.back().time - looks_.front().time, 2)), where_of(ranks_[i]));
  }
}

}  // namespace trainyard
