// trainyard sweep as its users start, stop and kill it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "scenarios/sweep/result_file.h"
#include "scenarios/sweep/row_json.h"
#include "tests/cli/program.h"

extern char** environ;

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::int64_t kPoints = 32;

// Lives of runs, tens of milliseconds a point.
fs::path slow_sweep() {
  return write_scratch("slow.json", R"({ "trainyard": "sweep/1", "evaluate": "goodput",
    "scenario": { "name": "slow", "model": "llama-3.1-8b",
      "cluster": { "node": "dgx-h100-80gb", "nodes": 64 },
      "training": { "global_batch": 4096, "sequence_length": 8192 },
      "plan": { "tensor_parallel": 2 }, "run": { "duration": "90 days", "runs": 3 } },
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

// The program in the background.
class Background {
 public:
  explicit Background(std::vector<std::string> arguments, const fs::path& out = "/dev/null") {
    arguments.insert(arguments.begin(), TRAINYARD_PROGRAM);
    std::vector<char*> raw;
    for (std::string& argument : arguments) raw.push_back(argument.data());
    raw.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0644);
    posix_spawn(&pid_, TRAINYARD_PROGRAM, &actions, nullptr, raw.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
  }

  pid_t pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }
  int wait() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
};

// Until `done`, or a minute has passed.
bool wait_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

TEST(SweepCommand, SaysWhatItFound) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  const Ran ran = run_trainyard(sweep_command(sweep, out));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("32 fit, 0 do not fit, 0 refused"));
  EXPECT_THAT(ran.out, HasSubstr("reliability.device_mtbf 80000 h"));  // the rarest failures
  const Ran again = run_trainyard(sweep_command(sweep, out) + " --format json");
  EXPECT_EQ(again.status, 0) << again.err;
  const auto json = nlohmann::json::parse(again.out);
  EXPECT_EQ(json.at("answered"), 0);
  EXPECT_EQ(json.at("found"), kPoints);
  EXPECT_EQ(json.at("best").at("point"), kPoints - 1);
}

TEST(SweepCommand, KilledLosesThePointsInFlightAloneAndContinues) {
  const fs::path sweep = slow_sweep();
  const fs::path whole = scratch_folder() / "whole.sqlite";
  const fs::path killed = scratch_folder() / "killed.sqlite";
  ASSERT_EQ(run_trainyard(sweep_command(sweep, whole)).status, 0);
  int kills = 0;
  for (const std::int64_t least : {2, 8, 14}) {
    const Background program({"sweep", sweep.string(), "-o", killed.string(), "--threads", "1"});
    EXPECT_TRUE(wait_until([&] { return rows_in(killed) >= least; }));
    const std::int64_t seen = rows_in(killed);
    program.send(SIGKILL);
    kills += program.wait() == 128 + SIGKILL ? 1 : 0;
    EXPECT_GE(rows_in(killed), seen);
  }
  EXPECT_EQ(kills, 3);
  EXPECT_LT(rows_in(killed), kPoints);
  EXPECT_EQ(run_trainyard(sweep_command(sweep, killed)).status, 0);
  EXPECT_EQ(dump(killed), dump(whole));
}

TEST(SweepCommand, InterruptedKeepsWhatIsDoneAndSaysHowToContinue) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  const Background program({"sweep", sweep.string(), "-o", out.string(), "--threads", "1"});
  EXPECT_TRUE(wait_until([&] { return rows_in(out) >= 2; }));
  program.send(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_FALSE(fs::exists(out.string() + "-wal"));
  EXPECT_GE(rows_in(out), 2);
  EXPECT_LT(rows_in(out), kPoints);
  EXPECT_EQ(run_trainyard(sweep_command(sweep, out)).status, 0);
  EXPECT_EQ(rows_in(out), kPoints);
}

// Ended, whether or not its new parent has looked after it.
bool is_gone(pid_t process) {
  const std::string state = read_text("/proc/" + std::to_string(process) + "/stat");
  const std::size_t name_ends = state.rfind(") ");
  return name_ends == std::string::npos || state[name_ends + 2] == 'Z';
}

// Processes whose parent is `parent`.
std::vector<pid_t> children_of(pid_t parent) {
  std::istringstream list(read_text("/proc/" + std::to_string(parent) + "/task/" +
                                    std::to_string(parent) + "/children"));
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

TEST(SweepCommand, WithRanksLosesNothingWhenOneOfFourIsKilled) {
  const fs::path sweep = slow_sweep();
  const fs::path whole = scratch_folder() / "whole.sqlite";
  const fs::path ranked = scratch_folder() / "ranked.sqlite";
  const fs::path log = scratch_folder() / "log";
  ASSERT_EQ(run_trainyard(sweep_command(sweep, whole)).status, 0);
  const Background program(
      {"sweep", sweep.string(), "-o", ranked.string(), "--ranks", "4", "--format", "json"}, log);
  EXPECT_TRUE(wait_until([&] { return rows_in(ranked) >= 4; }));
  const std::vector<pid_t> workers = children_of(program.pid());
  ASSERT_EQ(workers.size(), 4u);
  ::kill(workers[1], SIGKILL);
  EXPECT_EQ(program.wait(), 0);
  const auto json = nlohmann::json::parse(read_text(log));
  EXPECT_EQ(json.at("lost_workers"), 1);
  EXPECT_TRUE(json.at("complete").get<bool>());
  EXPECT_EQ(dump(ranked), dump(whole));
}

TEST(SweepCommand, WithRanksLeavesNoProcessBehindWhenItIsKilled) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  const Background program({"sweep", sweep.string(), "-o", out.string(), "--ranks", "2"});
  EXPECT_TRUE(wait_until([&] { return rows_in(out) >= 2; }));
  const std::vector<pid_t> workers = children_of(program.pid());
  ASSERT_EQ(workers.size(), 2u);
  program.send(SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  for (const pid_t worker : workers) {
    EXPECT_TRUE(wait_until([worker] { return is_gone(worker); }));
  }
  EXPECT_EQ(run_trainyard(sweep_command(sweep, out) + " --ranks 2").status, 0);
  EXPECT_EQ(rows_in(out), kPoints);
}

TEST(SweepCommand, WithRanksNamesTheCaseWhereEveryWorkerDied) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  const Background program({"sweep", sweep.string(), "-o", out.string(), "--ranks", "2"});
  EXPECT_TRUE(wait_until([&] { return rows_in(out) >= 2; }));
  for (const pid_t worker : children_of(program.pid())) ::kill(worker, SIGKILL);
  EXPECT_EQ(program.wait(), 3);
  EXPECT_EQ(run_trainyard(sweep_command(sweep, out)).status, 0);
  EXPECT_EQ(rows_in(out), kPoints);
}

TEST(SweepCommand, RefusesInOneLine) {
  const fs::path sweep = slow_sweep();
  const fs::path out = scratch_folder() / "results.sqlite";
  ASSERT_EQ(run_trainyard(sweep_command(sweep, out)).status, 0);
  const fs::path other = write_scratch("other.json", R"({ "trainyard": "sweep/1",
    "scenario": "small.json", "vary": [ { "key": "cluster.nodes", "values": [1, 2] } ] })");
  small_scenario();
  const Ran another = run_trainyard(sweep_command(other, out));
  EXPECT_EQ(another.status, 2);
  EXPECT_EQ(lines_of(another.err).size(), 1u) << another.err;
  EXPECT_THAT(another.err, HasSubstr("found the results of another sweep"));
  const Ran nowhere = run_trainyard(sweep_command(sweep, scratch_folder() / "no" / "r.sqlite"));
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_EQ(lines_of(nowhere.err).size(), 1u) << nowhere.err;
}

}  // namespace
}  // namespace trainyard
