// Progress on stderr, for work that takes more than a second, where someone can see it.
#pragma once

#include <chrono>
#include <string>

namespace trainyard {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // takes the line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(double fraction);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool visible_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace trainyard
