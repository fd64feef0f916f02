// If a call to another rank fails, the rank's run ends with a message that names the call. The
// message is also on its board, where the supervisor finds it.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "executor/rank_run.h"
#include "model/program/lower.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

// The transport of a single rank, whose collectives fail from a given call on.
class FailingTransport final : public Transport {
 public:
  using Fail = std::function<Expected<void>()>;
  FailingTransport(int calls, Fail fail) : Transport(0, 1), left_(calls), fail_(std::move(fail)) {}
  Expected<void> all_reduce(Group, float*, std::int64_t, Reduction) override {
    return left_-- > 0 ? Expected<void>{} : fail_();
  }
  Expected<void> reduce_scatter(Group group, const float* all, const Counts& counts,
                                float* mine) override {
    return single_->reduce_scatter(group, all, counts, mine);
  }
  Expected<void> all_gather(Group group, const float* mine, const Counts& counts,
                            float* all) override {
    return single_->all_gather(group, mine, counts, all);
  }
  Expected<void> all_to_all(Group group, const float* to, const Counts& to_counts, float* from,
                            const Counts& from_counts) override {
    return single_->all_to_all(group, to, to_counts, from, from_counts);
  }
  Expected<void> pass(Group group, RingWay way, const float* mine, float* received,
                      std::int64_t count) override {
    return single_->pass(group, way, mine, received, count);
  }
  Expected<void> send(int to, int way, const float* numbers, std::int64_t count) override {
    return single_->send(to, way, numbers, count);
  }
  Expected<void> receive(int from, int way, float* numbers, std::int64_t count) override {
    return single_->receive(from, way, numbers, count);
  }
  Expected<void> wait_for_messages() override { return {}; }
  Expected<void> broadcast(std::string&, int) override { return {}; }

 private:
  std::unique_ptr<Transport> single_ = make_single_rank_transport();
  int left_;
  Fail fail_;
};

// The message of a run of four steps whose third fails.
std::string said_of(const FailingTransport::Fail& fail) {
  PlanRequest request;
  request.data_parallel = 1;
  const Setting setting = tiny_setting(tiny_llama(false), tiny_training(), request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const RunPlan plan{.warmup = 0, .steps = 4};
  auto board =
      Board::create(testing::TempDir(), 6, program->stages[0].operations, plan.all_steps());
  FailingTransport transport(2, fail);  // the loss of each step is a sum over all ranks
  const auto ran = run_rank(setting, plan, *program, layout, transport, *board);
  EXPECT_EQ(board->head().state, RankState::failed);
  EXPECT_EQ(board->head().steps_done, 2);
  std::string said(board->head().message.data());
  EXPECT_EQ(said, ran ? "" : ran.error().message);
  return said;
}

TEST(RankRun, EndsWithTheCallThatFailedAndKeepsTheStepsBefore) {
  const std::string what = "MPI_Allreduce failed: MPI_ERR_OTHER: known error not in list";
  EXPECT_EQ(said_of([&] { return failure("", what); }), what);
}

// A size that no memory has, and a thread that the system does not start.
TEST(RankRun, SaysWhatWasThrown) {
  EXPECT_EQ(said_of([]() -> Expected<void> { throw std::bad_alloc(); }),
            "has no memory left on its host");
  EXPECT_EQ(said_of([]() -> Expected<void> { throw std::length_error("vector::resize"); }),
            "has no memory left on its host");
  const std::error_code again(EAGAIN, std::generic_category());
  EXPECT_EQ(said_of([&]() -> Expected<void> { throw std::system_error(again); }),
            "failed: " + again.message());
}

}  // namespace
}  // namespace trainyard
