#include "cli/progress.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "cli/text/layout/columns.h"
#include "cli/text/layout/style.h"
#include "cli/text/layout/table.h"
#include "executor/host/standard_error.h"
#include "scenarios/rank_status.h"

namespace trainyard {
namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::milliseconds kRefresh{200};

}  // namespace

Progress::Progress(std::string what, ProgressForm form)
    : what_(std::move(what)),
      form_(form),
      visible_(form == ProgressForm::lines || is_terminal(stderr)),
      next_(form == ProgressForm::lines ? Clock::now() : Clock::now() + kPatience) {}

Progress::~Progress() {
  if (shown_) {
    to_stderr("\r\x1b[K");
  }
}

void Progress::show(double fraction) {
  if (!visible_ || Clock::now() < next_) {
    return;
  }
  next_ = Clock::now() + kRefresh;
  if (form_ == ProgressForm::lines) {
    to_stderr(fmt::format("{}\n", progress_line(fraction)));
    return;
  }
  shown_ = true;
  to_stderr(fmt::format("\r\x1b[K{}  {} %  {}", what_, pad_left(percent(fraction), 5),
                        bar(fraction, 30)));
}

}  // namespace trainyard
