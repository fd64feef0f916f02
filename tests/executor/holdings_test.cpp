// Filling a large weight reports progress; otherwise the supervisor would think that the rank
// hangs.
#include "executor/holdings.h"

#include <gtest/gtest.h>

#include <atomic>

#include "model/program/lower.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

TEST(Holdings, GiveASignOfLifeWithinALargeWeight) {
  Transformer model = tiny_llama(false);
  PlanRequest request;
  request.data_parallel = 1;
  model.vocabulary = static_cast<int>(2 * kBetweenBeats / model.hidden_size) + 1;
  const Setting setting = tiny_setting(model, tiny_training(), request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const Holdings holdings(setting, *program, layout, 0);
  const auto table = std::ranges::find_if(program->buffers, [](const ProgramBuffer& buffer) {
    return buffer.role == BufferRole::weight && buffer.rows * buffer.columns > 2 * kBetweenBeats;
  });
  ASSERT_NE(table, program->buffers.end());
  std::atomic<int> beats = 0;
  const auto numbers = holdings.initial_weights(*table, -1, [&] { ++beats; });
  EXPECT_EQ(numbers.size(), static_cast<std::size_t>(table->rows * table->columns));
  EXPECT_EQ(beats, 2);
}

}  // namespace
}  // namespace trainyard
