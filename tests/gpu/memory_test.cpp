// If a device has too little memory for a plan, the message names the call.
#include <gtest/gtest.h>

#include "executor/cuda/cuda_backend.h"
#include "executor/cuda/device_memory.h"
#include "executor/transport/transport.h"
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
  const auto transport = make_single_rank_transport();
  set_emulated_memory(1000);
  const auto backend = make_cuda_backend({setting, *program, layout, *transport});
  set_emulated_memory(std::size_t{1} << 30);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().message, "cudaMallocFromPoolAsync failed: out of memory");
}

// If the pool waited by itself, a stream could wait for any other stream, sends included
// (executor/cuda/release_order.h).
TEST(DeviceMemory, HasAPoolThatMakesNoStreamWaitForAnother) {
  CudaStatus status;
  const DeviceMemory memory(status, 0, 1000);
  int waits = -1;
  ASSERT_EQ(
      cudaMemPoolGetAttribute(memory.pool(), cudaMemPoolReuseAllowInternalDependencies, &waits),
      cudaSuccess);
  EXPECT_EQ(waits, 0);
  EXPECT_TRUE(status.ok());
}

// The libraries that are present; cuDNN is not.
TEST(DeviceProvenance, NamesTheLibrariesThatATimeDependsOn) {
  const std::string text = cuda_provenance();
  EXPECT_NE(text.find(", cuBLASLt "), std::string::npos) << text;
  EXPECT_NE(text.find(", NCCL 0.0.0"), std::string::npos) << text;
  EXPECT_EQ(text.find("cuDNN"), std::string::npos) << text;
}

// Under every sharding the device stores a weight in as many bytes as the program counts for it: in
// fp32 if the stack has no second copy, even on one rank.
TEST(DeviceMemory, StoresWeightsAsTheProgramCountsThem) {
  for (const int ranks : {1, 2}) {
    for (const int zero : {0, 3}) {
      for (const bool keeps_copy : {false, true}) {
        PlanRequest request;
        request.data_parallel = ranks;
        request.zero_stage = zero;
        Training training = tiny_training();
        training.stack.keeps_weight_copy = keeps_copy;
        const Setting setting = tiny_setting(tiny_llama(false), training, request);
        const auto program = lower(setting.model, setting.training, setting.plan);
        ASSERT_TRUE(program);
        for (const ProgramBuffer& buffer : program->buffers) {
          if (buffer.role != BufferRole::weight) continue;
          EXPECT_EQ(static_cast<double>(bytes_of(element_type(buffer, {}))), buffer.element_bytes)
              << buffer.name << ", " << ranks << " ranks, zero " << zero;
          EXPECT_EQ(buffer.element_bytes, zero == 3 && !keeps_copy ? 4 : 2);
        }
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
