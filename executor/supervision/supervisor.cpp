#include "executor/supervision/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <regex>
#include <thread>
#include <utility>

#include "executor/host/temporary_folder.h"
#include "executor/supervision/process_state.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::seconds kGrace{2};  // between SIGTERM and SIGKILL

// Temporary folders of a run.
struct Folders {
  fs::path files;
  fs::path memory;  // shared memory of messages; a disk would be written to all the time
};

// The command that starts the ranks: Open MPI, allowed as root and on fewer cores than ranks, on
// one host. Whatever it leaves behind when it is killed lies in the folders of the run.
std::vector<std::string> command_of(const RankLaunch& what, const Folders& folders) {
  if (what.ranks == 1) return what.command;
  std::vector<std::string> command = {"mpirun",
                                      "--allow-run-as-root",
                                      "--oversubscribe",
                                      "--bind-to",
                                      "none",
                                      "--mca",
                                      "btl",
                                      "self,vader",
                                      "--mca",
                                      "btl_vader_single_copy_mechanism",
                                      "none",
                                      "--mca",
                                      "btl_vader_backing_directory",
                                      folders.memory.string(),
                                      "--mca",
                                      "orte_tmpdir_base",
                                      folders.files.string(),
                                      "--mca",
                                      "mpi_yield_when_idle",
                                      "1",
                                      "-n",
                                      fmt::format("{}", what.ranks)};
  command.insert(command.end(), what.command.begin(), what.command.end());
  return command;
}

// Removes the variables that a launcher above this process has set: mpirun would take itself for
// one of its ranks. What the user has set (OMPI_MCA_btl and the like) stays.
void forget_launcher() {
  constexpr std::array kPrefixes = {
      "PMIX_", "PMI_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE", "OMPI_MCA_orte_", "OMPI_MCA_ess"};
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto begins = [text](const char* prefix) { return text.starts_with(prefix); };
    if (std::ranges::any_of(kPrefixes, begins)) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

// Becomes the launcher, in a process group of its own, so that Ctrl-C reaches the supervisor alone.
// It is killed when the supervisor ends. Does not return.
[[noreturn]] void become(std::vector<char*>& arguments, const fs::path& folder) {
  ::setpgid(0, 0);
  forget_launcher();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output =
      ::open((folder / "output").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvp(arguments.front(), arguments.data());
  ::dprintf(STDERR_FILENO, "%s cannot be started: %s\n", arguments.front(), std::strerror(errno));
  ::_exit(127);
}

int start(const RankLaunch& what, const Folders& folders) {
  const fs::path& folder = folders.files;
  std::vector<std::string> command = command_of(what, folders);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  ::setenv(kRunFolder, folder.c_str(), 1);
  const int child = ::fork();
  if (child == 0) become(arguments, folder);
  ::unsetenv(kRunFolder);
  return child;
}

// Why nothing can be written into a folder, found by trying or from mpirun's output; empty: it can.
std::string no_room(const fs::path& folder, const std::vector<std::string>& output) {
  const auto told = [](const std::string& line) {
    return line.find("OUT-OF-RESOURCE") != std::string::npos;
  };
  if (std::ranges::any_of(output, told)) {
    return fmt::format(": {} has no room for the files of mpirun", folder.string());
  }
  constexpr off_t kEnough = 1 << 20;  // bytes; the board of a rank has some thousand
  const fs::path file = folder / "room";
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int error = descriptor < 0 ? errno : ::posix_fallocate(descriptor, 0, kEnough);
  if (descriptor >= 0) ::close(descriptor);
  ::unlink(file.c_str());
  if (error == 0) return "";
  return fmt::format(": {} cannot be written: {}", folder.string(), std::strerror(error));
}

// ---- What is wrong with a run -------------------------------------------------------------

class Diagnosis {
 public:
  Diagnosis(const RankLaunch& what, const Boards& boards, const fs::path& folder)
      : what_(what), boards_(boards), folder_(folder) {}

  std::optional<std::string> failed() const { return failure_of(boards_, what_.words); }
  std::optional<std::string> dead() const { return death_of(boards_, what_.words); }

  bool is_stopped(int rank) const {
    const auto& board = boards_[static_cast<std::size_t>(rank)];
    return board && trainyard::is_stopped(board->head().process);
  }
  // Requires: the rank is stopped.
  std::string stopped(int rank) const {
    return sentence_of(boards_[static_cast<std::size_t>(rank)]->head(),
                       "is stopped and " + not_gone_on(what_.timeout), what_.words.described);
  }

  std::string hanging() const {
    for (int rank = 0; rank < what_.ranks; ++rank) {
      if (!boards_[static_cast<std::size_t>(rank)]) return never_started(rank);
    }
    const auto sentence = standstill_of(boards_, what_.words, what_.timeout);
    return sentence ? *sentence : "the ranks are done and their launcher does not end";
  }

  // The sentence on a launcher that has ended by itself.
  std::string ended() const {
    for (int rank = 0; rank < what_.ranks; ++rank) {
      if (!boards_[static_cast<std::size_t>(rank)]) return never_started(rank);
    }
    const std::vector<std::string> lines = output_lines();
    return said_by_a_rank(lines).value_or("the launcher of the ranks ended before them" +
                                          last_of(lines));
  }

 private:
  std::string never_started(int rank) const {
    const std::vector<std::string> lines = output_lines();
    for (const std::string& line : lines) {
      if (const auto killed = killed_rank(line)) return *killed;
    }
    const std::string full = no_room(folder_, lines);
    const auto said = said_by_a_rank(lines);
    if (full.empty() && said) return *said;
    return fmt::format("rank {} of {} never started{}", rank, what_.ranks,
                       full.empty() ? last_of(lines) : full);
  }

  // What a rank that failed without a board said last. The launcher's own words come before or
  // after it, as it happens.
  static std::optional<std::string> said_by_a_rank(const std::vector<std::string>& lines) {
    constexpr std::string_view kName = "trainyard: ";  // of the command, before whatever it says
    const auto said = std::find_if(lines.rbegin(), lines.rend(), [&](const std::string& line) {
      return line.starts_with(kName);
    });
    if (said == lines.rend()) return std::nullopt;
    std::string_view words = *said;
    while (words.starts_with(kName)) words.remove_prefix(kName.size());
    return std::string(words);
  }

  // The sentence on a rank that mpirun saw end before the rank could write a board.
  std::optional<std::string> killed_rank(const std::string& line) const {
    static const std::regex noticed(
        R"(process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+)(?: \((.+)\))?)");
    std::smatch found;
    if (!std::regex_search(line, found, noticed)) return std::nullopt;
    return fmt::format("rank {} on {} was ended by signal {}{} before its first operation",
                       found.str(1), found.str(2), found.str(3),
                       found[4].matched ? " (" + found.str(4) + ")" : "");
  }

  // Lines that the launcher and the ranks wrote, without frames of dashes or stars.
  std::vector<std::string> output_lines() const {
    std::ifstream file(folder_ / "output");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      if (std::ranges::any_of(line, [](unsigned char c) { return std::isalnum(c) != 0; })) {
        lines.push_back(line);
      }
    }
    return lines;
  }
  static std::string last_of(const std::vector<std::string>& lines) {
    return lines.empty() ? "" : ": " + lines.back();
  }

  const RankLaunch& what_;
  const Boards& boards_;
  const fs::path& folder_;
};

// ---- The run ----------------------------------------------------------------------------------

class Supervision {
 public:
  Supervision(const RankLaunch& what, const fs::path& folder, int launcher)
      : what_(what),
        folder_(folder),
        launcher_(launcher),
        diagnosis_(what, launched_.boards, folder),
        changed_(Clock::now()),
        clocks_(static_cast<std::size_t>(what.ranks)) {
    launched_.boards.resize(static_cast<std::size_t>(what.ranks));
  }

  Launched run() {
    while (!is_over()) std::this_thread::sleep_for(kLook);
    end_all();
    return std::move(launched_);
  }

 private:
  bool is_over() {
    const bool ended = !launcher_ended_ && ::waitpid(launcher_, &status_, WNOHANG) == launcher_;
    launcher_ended_ = launcher_ended_ || ended;
    look();
    if (what_.interrupted()) {
      launched_.interrupted = true;
      return true;
    }
    if (const auto failed = diagnosis_.failed()) {
      launched_.failure = *failed;
      return wait_for_the_culprit();
    }
    if (const auto dead = diagnosis_.dead()) {
      launched_.failure = *dead;
      return true;
    }
    if (launcher_ended_) {
      if (!all_done()) launched_.failure = diagnosis_.ended();
      return true;
    }
    const auto timeout = std::chrono::duration<double>(what_.timeout.value());
    if (Clock::now() - changed_ >= timeout) {
      launched_.failure = diagnosis_.hanging();
      return true;
    }
    if (const int rank = stopped_alone(); rank >= 0) launched_.failure = diagnosis_.stopped(rank);
    return !launched_.failure.empty();
  }

  // A rank that has been stopped for the timeout while another one works on (as rank 0 does for
  // long before it can be compared with); −1: none. Where nobody works on, hanging() finds the
  // culprit soon.
  int stopped_alone() const {
    const auto timeout = std::chrono::duration<double>(what_.timeout.value());
    if (Clock::now() - changed_ >= timeout / 2) return -1;
    for (int rank = 0; rank < what_.ranks; ++rank) {
      const auto since = Clock::now() - clocks_[static_cast<std::size_t>(rank)].changed;
      if (since >= timeout && diagnosis_.is_stopped(rank)) return rank;
    }
    return -1;
  }

  // A rank that fails because of another may report before that other one does.
  bool wait_for_the_culprit() {
    if (launched_.failure.find(kAnotherRank) == std::string::npos || launcher_ended_) return true;
    return patience_-- <= 0;
  }

  void look() {
    std::int64_t steps = 0, all_steps = 0;
    for (int rank = 0; rank < what_.ranks; ++rank) {
      auto& board = launched_.boards[static_cast<std::size_t>(rank)];
      if (!board) board = Board::open(folder_, rank);
      if (!board) continue;
      RankClock& clock = clocks_[static_cast<std::size_t>(rank)];
      const std::int64_t beats =
          1 + board->head().beats + static_cast<std::int64_t>(board->head().state.load());
      if (beats != std::exchange(clock.beats, beats)) changed_ = clock.changed = Clock::now();
      steps += board->head().steps_done;
      all_steps += board->head().steps;
    }
    if (all_steps > 0) {
      what_.progress(static_cast<double>(steps) / static_cast<double>(all_steps));
    }
    if (what_.looked) what_.looked(launched_.boards);
  }

  bool all_done() const {
    return std::all_of(launched_.boards.begin(), launched_.boards.end(), [](const auto& board) {
      return board && board->head().state == RankState::done;
    });
  }

  void signal_all(int signal) {
    if (!launcher_ended_) ::kill(-launcher_, signal);
    for (const auto& board : launched_.boards) {
      if (board && is_alive(board->head().process)) ::kill(board->head().process, signal);
    }
  }

  bool anyone_left() {
    if (!launcher_ended_ && ::waitpid(launcher_, &status_, WNOHANG) == launcher_) {
      launcher_ended_ = true;
    }
    const bool rank_left =
        std::any_of(launched_.boards.begin(), launched_.boards.end(),
                    [](const auto& board) { return board && is_alive(board->head().process); });
    return !launcher_ended_ || rank_left;
  }

  void end_all() {
    if (all_done() && !anyone_left()) return;
    signal_all(SIGTERM);
    const auto until = Clock::now() + kGrace;
    while (anyone_left() && Clock::now() < until) {
      std::this_thread::sleep_for(kLook);
      look();
    }
    while (anyone_left()) {
      signal_all(SIGKILL);
      std::this_thread::sleep_for(kLook);
    }
  }

  const RankLaunch& what_;
  const fs::path& folder_;
  int launcher_;
  int status_ = 0;
  bool launcher_ended_ = false;
  int patience_ = 25;  // looks left while waiting for the culprit
  Launched launched_;
  Diagnosis diagnosis_;
  Clock::time_point changed_;  // last progress of any rank
  struct RankClock {
    std::int64_t beats = 0;  // 0: not seen yet
    Clock::time_point changed = Clock::now();
  };
  std::vector<RankClock> clocks_;
};

}  // namespace

Expected<Launched> launch(const RankLaunch& what) {
  const auto files = TemporaryFolder::make("run");
  if (!files) return tl::unexpected(files.error());
  const auto memory = TemporaryFolder::make("run", "/dev/shm");
  const Folders folders{files->path(), memory ? memory->path() : files->path()};
  const int launcher = start(what, folders);
  if (launcher < 0) return failure("", fmt::format("fork: {}", std::strerror(errno)));
  return Supervision(what, folders.files, launcher).run();
}

}  // namespace trainyard
