// Helpers of the tests of `trainyard sweep`: a sweep slow enough to be interrupted, and readers of
// its result file. Tests of any program that runs in the background use the rest.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace trainyard {

inline constexpr std::int64_t kPoints = 32;

// A sweep of kPoints points. Each point simulates several runs, which takes tens of milliseconds,
// times `times`.
std::filesystem::path slow_sweep(int times = 1);

std::string sweep_command(const std::filesystem::path& sweep, const std::filesystem::path& out);

// The rows of table `points`, one line each.
std::string dump(const std::filesystem::path& file);
std::int64_t rows_in(const std::filesystem::path& file);

// A program that runs in the background. The name of the program is looked up in PATH.
class BackgroundProgram {
 public:
  explicit BackgroundProgram(std::vector<std::string> command,
                             const std::filesystem::path& out = "/dev/null");

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  int wait() const;  // returns the exit status, or −signal if a signal ended it

 private:
  pid_t pid_ = 0;
};
// Starts `trainyard sweep` in the background.
BackgroundProgram sweeping(std::vector<std::string> arguments,
                           const std::filesystem::path& out = "/dev/null");

// Polls until `done` returns true; returns false after a minute.
bool wait_until(const std::function<bool()>& done);

// Whether the process has installed a handler for the signal.
bool catches(pid_t process, int signal);
// Whether the process has ended, be it gone or a zombie that its new parent has not yet reaped.
bool is_gone(pid_t process);
// The processes whose parent is `parent`.
std::vector<pid_t> children_of(pid_t parent);

}  // namespace trainyard
