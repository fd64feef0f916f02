// A stream that takes memory waits for what others gave back exactly where more would be in use
// than there is room for.
#include "executor/cuda/release_order.h"

#include <gtest/gtest.h>

#include "tests/gpu/emulated/runtime.h"

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

  int waits_to_take(cudaStream_t taker, std::size_t held, std::size_t bytes) {
    const int before = emulated_waits();
    order.make_room(taker, held, bytes);
    return emulated_waits() - before;
  }
};

TEST(ReleaseOrder, HasNobodyWaitWhereNothingWasGivenBackOrThereIsRoom) {
  OrderOf100Bytes of;
  EXPECT_EQ(of.waits_to_take(of.one, 90, 20), 0);
  of.order.released(30);
  EXPECT_EQ(of.waits_to_take(of.one, 50, 20), 0);  // 30 + 50 + 20: just enough
}

TEST(ReleaseOrder, HasAStreamWaitOnceForWhatItNeeds) {
  OrderOf100Bytes of;
  of.order.released(30);
  of.order.released(40);
  EXPECT_EQ(of.waits_to_take(of.one, 30, 1), 1);   // for the first 30
  EXPECT_EQ(of.waits_to_take(of.one, 30, 30), 0);  // 40 + 30 + 30
  EXPECT_EQ(of.waits_to_take(of.one, 30, 31), 1);  // for the 40
  EXPECT_EQ(of.waits_to_take(of.one, 90, 31), 0);  // there is no more to wait for
}

TEST(ReleaseOrder, TellsStreamsApartAndForgetsWhenNothingRuns) {
  OrderOf100Bytes of;
  of.order.released(60);
  EXPECT_EQ(of.waits_to_take(of.one, 50, 10), 1);
  EXPECT_EQ(of.waits_to_take(of.other, 50, 10), 1);
  of.order.forget();
  EXPECT_EQ(of.waits_to_take(of.other, 90, 20), 0);
  of.order.released(60);
  EXPECT_EQ(of.waits_to_take(of.one, 50, 10), 1);
  EXPECT_TRUE(of.status.ok());
}

}  // namespace
}  // namespace trainyard
