#include "tests/cli/sweeping.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <sstream>
#include <string_view>
#include <thread>

#include "scenarios/sweep/results/result_file.h"
#include "scenarios/sweep/results/row_json.h"
#include "tests/support/random_cases.h"

extern char** environ;

namespace trainyard {

namespace fs = std::filesystem;

// As many lives a point as take tens of milliseconds: fewer where the program is instrumented.
constexpr int kRuns = kSanitized ? 1 : 12;

fs::path slow_sweep(int times) {
  return write_scratch("slow.json", R"({ "trainyard": "sweep/1", "evaluate": "goodput",
    "scenario": { "name": "slow", "model": "llama-3.1-8b",
      "cluster": { "node": "dgx-h100-80gb", "nodes": 64 },
      "training": { "global_batch": 4096, "sequence_length": 8192 },
      "plan": { "tensor_parallel": 2 }, "run": { "duration": "90 days", "runs": )" +
                                        std::to_string(times * kRuns) +
                                        R"( } },
    "vary": [ { "key": "reliability.device_mtbf", "from": "10000 h", "to": "80000 h", "steps": 32 } ] })");
}

std::string sweep_command(const fs::path& sweep, const fs::path& out) {
  return "sweep '" + sweep.string() + "' -o '" + out.string() + "'";
}

std::string dump(const fs::path& file) {
  auto results = ResultFile::open(file);
  if (!results) return results.error().message;
  std::string text;
  const auto read = results->each({}, [&text](const PointRow& row) {
    text += row_value(row).dump() + "\n";
    return true;
  });
  return read ? text : read.error().message;
}

std::int64_t rows_in(const fs::path& file) {
  auto results = ResultFile::open(file);
  if (!results) return 0;
  const auto counts = results->counts();
  if (!counts) return 0;
  std::int64_t rows = 0;
  for (const std::int64_t count : counts->counts) rows += count;
  return rows;
}

BackgroundProgram::BackgroundProgram(std::vector<std::string> command, const fs::path& out) {
  std::vector<char*> raw;
  raw.reserve(command.size() + 1);
  for (std::string& word : command) raw.push_back(word.data());
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0644);
  posix_spawnp(&pid_, raw.front(), &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
}

void BackgroundProgram::send(int signal) const { ::kill(pid_, signal); }

int BackgroundProgram::wait() const {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

BackgroundProgram sweeping(std::vector<std::string> arguments, const fs::path& out) {
  arguments.insert(arguments.begin(), {TRAINYARD_PROGRAM, "sweep"});
  return BackgroundProgram(std::move(arguments), out);
}

bool wait_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

bool catches(pid_t process, int signal) {
  constexpr std::string_view kCaught = "\nSigCgt:";
  const std::string status = read_text("/proc/" + std::to_string(process) + "/status");
  const std::size_t found = status.find(kCaught);
  if (found == std::string::npos) return false;
  const std::uint64_t caught = std::stoull(status.substr(found + kCaught.size()), nullptr, 16);
  return (caught >> (signal - 1) & 1) != 0;
}

bool is_gone(pid_t process) {
  const std::string state = read_text("/proc/" + std::to_string(process) + "/stat");
  const std::size_t name_ends = state.rfind(") ");
  return name_ends == std::string::npos || state[name_ends + 2] == 'Z';
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& thread :
       fs::directory_iterator("/proc/" + std::to_string(parent) + "/task", error)) {
    std::istringstream list(read_text(thread.path() / "children"));
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace trainyard
