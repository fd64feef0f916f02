// A device stops inside an operation, after the host has enqueued the whole step and waits. The
// board names that operation, and when the device goes on, the step ends.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "executor/cuda/cuda_backend.h"
#include "executor/rank_run.h"
#include "executor/supervision/whereabouts.h"
#include "model/program/lower.h"
#include "tests/gpu/emulated/runtime.h"
#include "tests/gpu/silent.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

// Stops the device between begin and end of one operation.
class StopsIn final : public Watch {
 public:
  explicit StopsIn(std::int64_t operation) : operation_(operation) {}
  void begins(std::int64_t number, const IssuedOperation&) override {
    handed_over = number;
    if (number == operation_) stop_emulated_device(1);
  }
  std::atomic<std::int64_t> handed_over{-1};

 private:
  std::int64_t operation_;
};

// The number of the first operation of this kind in the rank's list.
std::int64_t first_of(const Program& program, OperationKind kind) {
  std::int64_t number = 0;
  for (const IssuedOperation issued : operations_of(program, 0)) {
    if (issued.operation->kind == kind) return number;
    ++number;
  }
  return -1;
}

TEST(DeviceProgress, IsTheCollectiveThatHangsAndNotTheLastOperationOfTheStep) {
  PlanRequest request;
  request.data_parallel = 2;
  request.zero_stage = 3;
  const Setting setting = tiny_setting(tiny_llama(false), tiny_training(), request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  const std::int64_t hanging = first_of(*program, OperationKind::all_gather);
  const std::int64_t last = program->stages[0].operations - 1;
  ASSERT_GE(hanging, 0);
  ASSERT_LT(hanging, last);
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const auto transport = make_stand_in_transport(layout, 0);
  const auto backend = make_cuda_backend({setting, *program, layout, *transport, true});
  ASSERT_TRUE(backend) << backend.error().message;
  ASSERT_TRUE((*backend)->runs_later());
  Silent silent;
  RankExecutor executor(setting, *program, layout, 0, **backend, silent);
  StopsIn watch(hanging);
  std::atomic<bool> ended = false;
  std::thread host([&] {
    EXPECT_TRUE(executor.step(0, 0, watch));
    ended = true;
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (watch.handed_over < last && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  const DeviceProgress::Look look = executor.progress().look();
  EXPECT_EQ(watch.handed_over, last);
  EXPECT_EQ(look.under_way, std::vector<std::int64_t>{hanging});
  EXPECT_FALSE(ended);
  go_on_emulated_device();
  host.join();
  EXPECT_TRUE(executor.progress().look().under_way.empty());
  EXPECT_GT(executor.progress().look().done, look.done);
}

// Waits, for a minute at most, until the condition holds for a run in another thread.
template <typename Condition>
void wait_until(const Condition& is_so) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!is_so() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

class CountsFills final : public Watch {
 public:
  void begins(std::int64_t, const IssuedOperation&) override {}
  void goes_on() override { ++count; }
  std::int64_t count = 0;
};

constexpr std::chrono::milliseconds kLooks{100};  // long enough for some

// Checks the board of a rank under ZeRO-3 whose device stops in the first operation of this kind. A
// beat is a filled tensor, an enqueued operation, or a look that found progress on the device.
void expect_published(OperationKind kind, bool computes) {
  PlanRequest request;
  request.data_parallel = 2;
  request.zero_stage = 3;
  const Setting setting = tiny_setting(tiny_llama(false), tiny_training(), request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  const std::int64_t hanging = first_of(*program, kind);
  ASSERT_GE(hanging, 0);
  const std::int64_t operations = program->stages[0].operations;
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const auto transport = make_stand_in_transport(layout, 0);
  CountsFills fills;
  {
    const auto backend = make_cuda_backend({setting, *program, layout, *transport, true});
    ASSERT_TRUE(backend);
    const RankExecutor executor(setting, *program, layout, 0, **backend, fills);
  }
  auto board = Board::create(testing::TempDir(), 11, operations, 1);
  ASSERT_TRUE(board);
  const BoardHead& head = board->head();
  stop_emulated_device(static_cast<int>(2 * hanging + 1));  // after its begin
  const RunPlan plan{.backend = BackendKind::cuda, .warmup = 0, .steps = 1, .alone = 0};
  std::thread rank(
      [&] { EXPECT_TRUE(run_rank(setting, plan, *program, layout, *transport, *board)); });
  // All of the step are handed over. The number of the last one stands there for a moment only.
  wait_until([&] { return head.operation == operations && head.under_way[0] == hanging; });
  EXPECT_EQ(head.operation, operations);
  std::this_thread::sleep_for(kLooks);
  const std::int64_t stopped = head.beats;
  EXPECT_GT(stopped, fills.count + operations);
  std::this_thread::sleep_for(kLooks);
  EXPECT_EQ(head.beats, stopped);
  EXPECT_EQ(operations_at(head), std::vector<std::int64_t>{hanging});
  EXPECT_EQ(head.computes, computes);
  EXPECT_EQ(head.steps_done, 0);
  finish_emulated_work();
  wait_until([&] { return head.beats > stopped && head.under_way[0] < 0 && !head.computes; });
  EXPECT_GT(head.beats, stopped);
  EXPECT_EQ(head.under_way[0], -1);
  EXPECT_FALSE(head.computes);
  go_on_emulated_device();
  rank.join();
  EXPECT_EQ(head.state, RankState::done);
}

TEST(PublishedProgress, IsTheCollectiveThatHangsAndNoBeatUntilItEnds) {
  expect_published(OperationKind::all_gather, false);
}

TEST(PublishedProgress, TellsAComputationThatHangsFromACommunication) {
  expect_published(OperationKind::linear, true);
}

}  // namespace
}  // namespace trainyard
