// A stream that takes memory waits for what other streams gave back only if more memory would be in
// use than there is room for.
#include "executor/cuda/release_order.h"

#include <gtest/gtest.h>

#include "executor/cuda/cuda_backend.h"
#include "executor/transport/transport.h"
#include "model/program/lower.h"
#include "tests/gpu/emulated/runtime.h"
#include "tests/gpu/silent.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

struct OrderOf100Bytes {
  CudaStatus status;
  ReleaseOrder order{status, 100};
  cudaStream_t one = nullptr, other = nullptr;

  OrderOf100Bytes() {
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  }
  ~OrderOf100Bytes() {
    cudaStreamDestroy(one);
    cudaStreamDestroy(other);
  }
  OrderOf100Bytes(const OrderOf100Bytes&) = delete;
  OrderOf100Bytes& operator=(const OrderOf100Bytes&) = delete;

  void release(std::size_t bytes) { order.released(order.stream(), bytes); }
  int waits_to_take(cudaStream_t taker, std::size_t held, std::size_t bytes) {
    const int before = emulated_waits();
    order.make_room(taker, held, bytes);
    return emulated_waits() - before;
  }
};

TEST(ReleaseOrder, HasNobodyWaitWhereNothingWasGivenBackOrThereIsRoom) {
  OrderOf100Bytes of;
  EXPECT_EQ(of.waits_to_take(of.one, 90, 20), 0);
  of.release(30);
  EXPECT_EQ(of.waits_to_take(of.one, 50, 20), 0);  // 30 + 50 + 20: just enough
}

TEST(ReleaseOrder, HasAStreamWaitOnceForWhatItNeeds) {
  OrderOf100Bytes of;
  of.release(30);
  of.release(40);
  EXPECT_EQ(of.waits_to_take(of.one, 30, 1), 1);   // for the first 30
  EXPECT_EQ(of.waits_to_take(of.one, 30, 30), 0);  // 40 + 30 + 30
  EXPECT_EQ(of.waits_to_take(of.one, 30, 31), 1);  // for the 40
  EXPECT_EQ(of.waits_to_take(of.one, 90, 31), 0);  // there is no more to wait for
}

TEST(ReleaseOrder, TellsStreamsApartAndForgetsWhenNothingRuns) {
  OrderOf100Bytes of;
  of.release(60);
  EXPECT_EQ(of.waits_to_take(of.one, 50, 10), 1);
  EXPECT_EQ(of.waits_to_take(of.other, 50, 10), 1);
  of.order.forget();
  EXPECT_EQ(of.waits_to_take(of.other, 90, 20), 0);
  of.release(60);
  EXPECT_EQ(of.waits_to_take(of.one, 50, 10), 1);
  EXPECT_TRUE(of.status.ok());
}

// The memory was given back in that stream's own order, which other streams do not see.
TEST(ReleaseOrder, CountsWhatAStreamGaveBackByItselfForTheOthersAlone) {
  OrderOf100Bytes of;
  of.order.released(of.one, 60);
  EXPECT_EQ(of.waits_to_take(of.one, 40, 60), 0);
  EXPECT_EQ(of.waits_to_take(of.other, 30, 10), 0);  // 60 + 30 + 10
  EXPECT_EQ(of.waits_to_take(of.other, 30, 11), 1);
  EXPECT_EQ(of.waits_to_take(of.other, 40, 60), 0);
}

TEST(ReleaseOrder, HasAStreamWaitForEachThatGaveBackWhatItNeeds) {
  OrderOf100Bytes of;
  of.release(20);
  of.order.released(of.one, 20);
  of.order.released(of.one, 20);
  of.release(20);
  EXPECT_EQ(of.waits_to_take(of.other, 10, 40), 2);  // for 30 of 80: the first two
  EXPECT_EQ(of.waits_to_take(of.other, 20, 70), 2);  // for 30 of the 40 left
  EXPECT_EQ(of.waits_to_take(of.one, 50, 40), 1);    // its own 40 apart, for 30 of 40: both at once
}

// Memory that a stream takes again is the same memory. However often it does, others count its
// largest amount once.
TEST(ReleaseOrder, CountsWhatAStreamTakesAgainOnce) {
  OrderOf100Bytes of;
  for (int i = 0; i < 10; ++i) {
    of.order.taken(of.one, 60);
    of.order.released(of.one, 60);
  }
  EXPECT_EQ(of.waits_to_take(of.other, 0, 40), 0);
  of.order.taken(of.one, 50);
  EXPECT_EQ(of.waits_to_take(of.other, 50, 40), 0);  // 10 of the 60 may be there still
  EXPECT_EQ(of.waits_to_take(of.other, 50, 41), 1);
  EXPECT_EQ(of.waits_to_take(of.other, 50, 50), 0);
}

// As when a backward pass gives back what the forward pass has left.
TEST(ReleaseOrder, HasAStreamWaitNoLongerThanForWhatItNeeds) {
  OrderOf100Bytes of;
  of.order.taken(of.one, 90);
  for (int i = 0; i < 3; ++i) of.order.released(of.one, 30);
  EXPECT_EQ(of.waits_to_take(of.other, 0, 40), 1);  // of the first 30
  EXPECT_EQ(of.waits_to_take(of.other, 0, 40), 0);
  EXPECT_EQ(of.waits_to_take(of.other, 0, 70), 1);  // of the next
  EXPECT_EQ(of.waits_to_take(of.other, 0, 70), 0);
}

// How often streams wait for memory to be given back, in one step of ZeRO-3 with two ranks per
// stage.
std::vector<int> waits_of_step(int layers, int stages) {
  PlanRequest request;
  request.data_parallel = 2;
  request.pipeline_parallel = stages;
  request.zero_stage = 3;
  request.overlap.data_parallel = true;
  Transformer model = tiny_llama(false);
  model.layers = layers;
  const Setting setting = tiny_setting(model, tiny_training(), request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  EXPECT_TRUE(program);
  if (!program) return {};
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const auto transport = make_stand_in_transport(layout, 0);
  const auto backend = make_cuda_backend({setting, *program, layout, *transport, true});
  EXPECT_TRUE(backend) << backend.error().message;
  if (!backend) return {};
  Silent silent;
  RankExecutor executor(setting, *program, layout, 0, **backend, silent);
  EXPECT_TRUE(executor.step(0, 0, silent));
  return emulated_waits_for_give_backs();
}

// By then every layer's gathered weights were given back.
TEST(ReleaseOrder, HasTheBackendWaitMoreOftenTheDeeperTheNetworkIs) {
  const std::vector<int> shallow = waits_of_step(4, 1);
  const std::vector<int> deep = waits_of_step(16, 1);
  ASSERT_EQ(shallow.size(), 1U);
  ASSERT_EQ(deep.size(), 1U);
  EXPECT_GT(deep[0], 2 * shallow[0]);
  EXPECT_GE(deep[0], 16) << "at least one a layer";
}

// Ranks that send give memory back on a second stream.
TEST(ReleaseOrder, HasTheBackendNeverWaitForWhatIsSent) {
  const std::vector<int> waits = waits_of_step(16, 2);
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0], 0);
  EXPECT_GT(waits[1], 0);
}

}  // namespace
}  // namespace trainyard
