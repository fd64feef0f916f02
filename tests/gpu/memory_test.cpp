// A device with too little memory for a plan is a sentence that names the call.
#include <gtest/gtest.h>

#include "executor/cpu/transport.h"
#include "executor/cuda/cuda_backend.h"
#include "model/program/lower.h"
#include "tests/gpu/emulated/runtime.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

TEST(DeviceMemory, ThatIsTooLittleIsASentence) {
  PlanRequest request;
  request.data_parallel = 1;
  const Setting setting = tiny_setting(tiny_llama(false), tiny_training(), request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const auto transport = make_lone_transport();
  set_emulated_memory(1000);
  const auto backend = make_cuda_backend({setting, *program, layout, *transport});
  set_emulated_memory(std::size_t{1} << 30);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().message, "cudaMallocFromPoolAsync failed: out of memory");
}

}  // namespace
}  // namespace trainyard
