// Runs the command in a process of its own, so that a test can watch it and send signals to it.
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

// The process has its TMPDIR in this test's folder, so that the test finds the boards of its ranks.
class Running {
 public:
  // `name` ends the names of the process's files; it is needed where a test runs several processes.
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

  // The board of a rank, once the rank has done its first step.
  std::optional<Board> board(int rank) const {
    return board_when(rank, [](const BoardHead& head) { return head.steps_done > 0; });
  }
  // The board of a rank, once `holds` is true of its head; nothing after a minute. A minute is
  // needed: with sanitizers on a busy machine, a verified run trains the network on one rank for 20
  // s before its first step.
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
  return fmt::format("run {} --steps 100000 --timeout 2 -o {}", scenario, profile.string());
}

}  // namespace trainyard
