// What tests of `trainyard sweep` share: a sweep that takes its time, what is in a result file; and
// what all tests of a program in the background do.
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

// Lives of runs, `times` tens of milliseconds a point, kPoints of them.
std::filesystem::path slow_sweep(int times = 1);

std::string sweep_command(const std::filesystem::path& sweep, const std::filesystem::path& out);

// Table `points`, a line a row.
std::string dump(const std::filesystem::path& file);
std::int64_t rows_in(const std::filesystem::path& file);

// A program in the background, found in PATH.
class BackgroundProgram {
 public:
  explicit BackgroundProgram(std::vector<std::string> command,
                             const std::filesystem::path& out = "/dev/null");

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  int wait() const;  // the exit status; −signal where one ended it

 private:
  pid_t pid_ = 0;
};
// trainyard itself.
BackgroundProgram sweeping(std::vector<std::string> arguments,
                           const std::filesystem::path& out = "/dev/null");

// Until `done`, or a minute has passed.
bool wait_until(const std::function<bool()>& done);

// Whether the process has a handler of its own for a signal.
bool catches(pid_t process, int signal);
// Ended, whether or not its new parent has looked after it.
bool is_gone(pid_t process);
// Processes whose parent is `parent`.
std::vector<pid_t> children_of(pid_t parent);

}  // namespace trainyard
