#include "cli/progress.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "cli/style.h"
#include "cli/table.h"
#include "cli/text.h"

namespace trainyard {
namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::milliseconds kRefresh{200};

}  // namespace

Progress::Progress(std::string what)
    : what_(std::move(what)), visible_(is_terminal(stderr)), next_(Clock::now() + kPatience) {}

Progress::~Progress() {
  if (shown_) {
    fmt::print(stderr, "\r\x1b[K");
  }
}

void Progress::show(double fraction) {
  if (!visible_ || Clock::now() < next_) {
    return;
  }
  next_ = Clock::now() + kRefresh;
  shown_ = true;
  fmt::print(stderr, "\r\x1b[K{}  {} %  {}", what_, pad_left(percent(fraction), 5),
             bar(fraction, 30));
}

}  // namespace trainyard
