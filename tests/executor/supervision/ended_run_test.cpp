// Runs that end early: a rank is killed, told to end or stopped, or the user interrupts. Uses real
// processes and real signals.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "executor/supervision/process_state.h"
#include "tests/executor/running.h"
#include "tests/executor/tiny_scenario.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Expects that no process is left and that the profile has what was measured.
void expect_ended(Running& running, const std::vector<int>& processes, const fs::path& profile,
                  int status) {
  EXPECT_EQ(running.wait(), status) << running.error();
  for (const int process : processes) EXPECT_FALSE(is_alive(process)) << process;
  const std::string text = read_text(profile);
  EXPECT_NE(text.find("\"steps\""), std::string::npos);
  EXPECT_NE(text.find("\"failure\""), std::string::npos);
}

TEST(RunCommand, NamesARankThatIsKilled) {
  const fs::path profile = scratch_folder() / "profile.json";
  Running running(endless(tiny_scenario(kTwoStages, 4), profile));
  const auto victim = running.board(2);
  ASSERT_TRUE(victim);
  std::vector<int> processes;
  for (const int rank : {0, 1, 2, 3}) processes.push_back(running.board(rank)->head().process);
  kill(victim->head().process, SIGKILL);
  expect_ended(running, processes, profile, 3);
  EXPECT_NE(running.error().find("rank 2 on "), std::string::npos) << running.error();
  EXPECT_NE(running.error().find("was killed: step "), std::string::npos) << running.error();
}

TEST(RunCommand, NamesARankThatIsToldToEnd) {
  const fs::path profile = scratch_folder() / "profile.json";
  Running running(endless(tiny_scenario(kTwoStages, 2), profile));
  const auto victim = running.board(1);
  ASSERT_TRUE(victim);
  std::vector<int> processes = {running.board(0)->head().process, victim->head().process};
  kill(victim->head().process, SIGTERM);
  expect_ended(running, processes, profile, 3);
  EXPECT_NE(running.error().find("told to end (SIGTERM): step "), std::string::npos)
      << running.error();
}

// Ranks of several plans are stopped at different moments. Whatever the rank was doing and the
// others wait in, the message names it.
class HangingRun : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(HangingRun, NamesTheRankThatIsStopped) {
  const fs::path profile = scratch_folder() / "profile.json";
  for (const int rank : {0, 3, 1, 2}) {
    if (!is_next_tried()) continue;
    Running running(endless(tiny_scenario(GetParam().second, 4), profile));
    const auto victim = running.board(rank);
    ASSERT_TRUE(victim);
    std::vector<int> processes;
    for (const int each : {0, 1, 2, 3}) processes.push_back(running.board(each)->head().process);
    std::this_thread::sleep_for(37ms * rank);
    kill(victim->head().process, SIGSTOP);
    expect_ended(running, processes, profile, 3);
    const std::string error = running.error();
    EXPECT_TRUE(error.starts_with(fmt::format("trainyard: rank {} on ", rank))) << error;
    EXPECT_NE(error.find(" is stopped and has not gone on for 2 s: step "), std::string::npos)
        << error;
    EXPECT_EQ(lines_of(error).size(), 1U) << error;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Plans, HangingRun,
    testing::Values(
        std::pair("TensorAndData", R"("tensor_parallel": 2, "data_parallel": 2)"),
        std::pair("OneForwardOneBackward", R"("pipeline_parallel": 4)"),
        std::pair("Interleaved",
                  R"("tensor_parallel": 2, "pipeline_parallel": 2, "virtual_stages": 2)"),
        std::pair("ShardedRing", R"("data_parallel": 2, "context_parallel": 2, "zero_stage": 3)")),
    [](const auto& plan) { return plan.param.first; });

TEST(RunCommand, EndsEveryRankOnCtrlCAndSavesWhatWasMeasured) {
  const fs::path profile = scratch_folder() / "profile.json";
  Running running(endless(tiny_scenario(kTwoStages, 2), profile));
  const auto board = running.board(0);
  ASSERT_TRUE(board);
  const std::vector<int> processes = {board->head().process, running.board(1)->head().process};
  kill(-running.process(), SIGINT);  // as a terminal does: to the whole group
  expect_ended(running, processes, profile, 0);
}

// While rank 0 trains the network alone, the others wait in a broadcast, however long that takes.
// It has more steps than it could do during this test.
TEST(RunCommand, NamesARankThatIsStoppedWhileAnotherWorksOn) {
  Running running(
      fmt::format("run {} --steps 1000000 --timeout 2 --verify", tiny_scenario(kTwoStages, 2)));
  const auto in_unsharded = [](const BoardHead& head) {
    return head.state == RankState::unsharded;
  };
  const auto victim = running.board_when(1, in_unsharded),
             first = running.board_when(0, in_unsharded);
  ASSERT_TRUE(victim && first);
  kill(victim->head().process, SIGSTOP);
  EXPECT_EQ(running.wait(), 3);
  const std::string error = running.error();
  EXPECT_TRUE(error.starts_with("trainyard: rank 1 on ")) << error;
  EXPECT_NE(error.find(" is stopped and has not gone on for 2 s: while the network is trained on "
                       "one rank, to compare with"),
            std::string::npos)
      << error;
  EXPECT_EQ(first->head().state, RankState::terminated);
}

// A stopped rank keeps the others from ending until the supervisor's patience is over. Signals that
// are sent in the meantime must not end the supervisor before it has written and removed
// everything, nor change what it says at its end.
TEST(RunCommand, SavesWhatWasMeasuredHoweverOftenItIsInterrupted) {
  const fs::path profile = scratch_folder() / "profile.json";
  Running running(endless(tiny_scenario(kTwoStages, 2), profile));
  const auto board = running.board(1);
  ASSERT_TRUE(board);
  const std::vector<int> processes = {running.board(0)->head().process, board->head().process};
  kill(board->head().process, SIGSTOP);
  const std::jthread impatient([&](const std::stop_token& ended) {
    for (; !ended.stop_requested(); std::this_thread::sleep_for(1ms)) {
      kill(running.process(), SIGINT);
    }
  });
  for (const int signal : {SIGINT, SIGINT, SIGTERM}) {
    kill(-running.process(), signal);
    std::this_thread::sleep_for(100ms);
  }
  expect_ended(running, processes, profile, 0);
  EXPECT_TRUE(fs::is_empty(running.folder()));
}

// The interrupt comes after the first step, whose gradients are compared, and before the last,
// after which weights are.
TEST(RunCommand, SaysThatNothingIsVerifiedWhereItIsInterrupted) {
  const std::string scenario = tiny_scenario(kTwoStages, 2);
  Running running(fmt::format("run {} --steps 500 --verify", scenario));
  const auto board = running.board(0);
  ASSERT_TRUE(board);
  while (board->head().steps_done < 3) std::this_thread::sleep_for(1ms);
  kill(running.process(), SIGINT);
  EXPECT_EQ(running.wait(), 130) << running.error();
  const std::string out = running.output();
  EXPECT_EQ(out.find("Verified"), std::string::npos) << out;
  EXPECT_NE(out.find("Interrupted: NOT VERIFIED, the weights were not compared."),
            std::string::npos)
      << out;
}

TEST(RunCommand, EndsEveryRankAndSavesWhenASchedulerEndsItOrItsTerminalIsGone) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    const fs::path profile = scratch_folder() / fmt::format("{}.json", signal);
    Running running(endless(tiny_scenario(kTwoStages, 2), profile));
    const auto board = running.board(0);
    ASSERT_TRUE(board);
    const std::vector<int> processes = {board->head().process, running.board(1)->head().process};
    kill(running.process(), signal);
    expect_ended(running, processes, profile, 0);
  }
}

}  // namespace
}  // namespace trainyard
