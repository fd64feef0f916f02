// A call to another rank that fails ends the rank's run with a sentence that names the call, on its
// board too, where the supervisor finds it.
#include <gtest/gtest.h>

#include "executor/rank_run.h"
#include "model/program/lower.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

// A rank of one, whose collectives fail from one call on.
class FailingTransport final : public Transport {
 public:
  explicit FailingTransport(int calls) : Transport(0, 1), left_(calls) {}
  Expected<void> all_reduce(Group, float*, std::int64_t, Reduction) override {
    if (left_-- > 0) return {};
    return failure("", "MPI_Allreduce failed: MPI_ERR_OTHER: known error not in list");
  }
  Expected<void> reduce_scatter(Group group, const float* all, const Counts& counts,
                                float* mine) override {
    return lone_->reduce_scatter(group, all, counts, mine);
  }
  Expected<void> all_gather(Group group, const float* mine, const Counts& counts,
                            float* all) override {
    return lone_->all_gather(group, mine, counts, all);
  }
  Expected<void> all_to_all(Group group, const float* to, const Counts& to_counts, float* from,
                            const Counts& from_counts) override {
    return lone_->all_to_all(group, to, to_counts, from, from_counts);
  }
  Expected<void> pass(Group group, RingWay way, const float* mine, float* received,
                      std::int64_t count) override {
    return lone_->pass(group, way, mine, received, count);
  }
  Expected<void> send(int to, int way, const float* numbers, std::int64_t count) override {
    return lone_->send(to, way, numbers, count);
  }
  Expected<void> receive(int from, int way, float* numbers, std::int64_t count) override {
    return lone_->receive(from, way, numbers, count);
  }
  Expected<void> wait_for_messages() override { return {}; }
  Expected<void> broadcast(std::string&, int) override { return {}; }

 private:
  std::unique_ptr<Transport> lone_ = make_lone_transport();
  int left_;
};

TEST(RankRun, EndsWithTheCallThatFailedAndKeepsTheStepsBefore) {
  PlanRequest request;
  request.data_parallel = 1;
  const Setting setting = tiny_setting(tiny_llama(false), tiny_training(), request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const RunPlan plan{.warmup = 0, .steps = 4};
  auto board =
      Board::create(testing::TempDir(), 6, program->stages[0].operations, plan.all_steps());
  ASSERT_TRUE(board);
  FailingTransport transport(2);  // the loss of each step is a sum over all ranks
  const auto ran = run_rank(setting, plan, *program, layout, transport, *board);
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.error().message.find("MPI_Allreduce failed"), std::string::npos);
  EXPECT_EQ(board->head().state, RankState::failed);
  EXPECT_EQ(std::string_view(board->head().message.data()), ran.error().message);
  EXPECT_EQ(board->head().steps_done, 2);
}

}  // namespace
}  // namespace trainyard
