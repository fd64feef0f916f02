// Progress on stderr, for work that takes more than a second: a bar where someone can see it, or
// lines of JSON for another program (scenarios/rank_status.h).
#pragma once

#include <chrono>
#include <string>

namespace trainyard {

enum class ProgressForm { bar, lines };

class Progress {
 public:
  explicit Progress(std::string what, ProgressForm form = ProgressForm::bar);
  ~Progress();  // erases the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(double fraction);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  ProgressForm form_;
  bool visible_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace trainyard
