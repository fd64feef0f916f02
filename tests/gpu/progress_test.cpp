// A device that stops within an operation, while the host has handed over the whole step and waits:
// what is published is that operation, and when it goes on the step ends.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "executor/cuda/cuda_backend.h"
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

// Of the rank's list, the first of its kind.
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
  const auto transport = make_alone_transport(layout, 0);
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

}  // namespace
}  // namespace trainyard
