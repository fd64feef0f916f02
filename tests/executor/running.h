// The command in a process of its own, that a test watches and sends signals to.
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "executor/supervision/board.h"
#include "tests/cli/program.h"

namespace trainyard {

// With TMPDIR in this test's folder, so that its boards can be found.
class Running {
 public:
  // `name`: of its files, where a test has several of them.
  explicit Running(const std::string& arguments, const std::string& launcher = "",
                   const std::string& name = "") {
    folder_ = scratch_folder() / ("boards" + name);
    output_ = scratch_folder() / ("out" + name);
    error_ = scratch_folder() / ("err" + name);
    std::filesystem::create_directories(folder_);
    const std::string command =
        fmt::format("TMPDIR='{}' exec {} {} {} >'{}' 2>'{}'", folder_.string(), launcher,
                    TRAINYARD_PROGRAM, arguments, output_.string(), error_.string());
    process_ = fork();
    if (process_ == 0) {
      setpgid(0, 0);
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
  }

  int process() const { return process_; }

  // Of a rank, when it has begun its steps.
  std::optional<Board> board(int rank) const {
    return board_when(rank, [](const BoardHead& head) { return head.steps_done > 0; });
  }
  // Waits a minute: with sanitizers, on a busy machine, a network is trained alone for 20 s before
  // the first step of a run that is verified.
  template <typename Holds>
  std::optional<Board> board_when(int rank, const Holds& holds) const {
    for (int i = 0; i < 6000; ++i) {
      for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
        auto board = Board::open(entry.path(), rank);
        if (board && holds(board->head())) return board;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return std::nullopt;
  }

  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  void end() {
    if (ended_) return;
    kill(process_, SIGKILL);
    wait();
  }

  std::string output() const { return read_text(output_); }
  std::string error() const { return read_text(error_); }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_, output_, error_;
  int process_ = 0;
  bool ended_ = false;
};

inline constexpr const char* kTwoStages = R"("pipeline_parallel": 2)";

inline std::string endless(const std::string& scenario, const std::filesystem::path& profile) {
  return fmt::format("run {} --steps 100000 --timeout 4 -o {}", scenario, profile.string());
}

}  // namespace trainyard
