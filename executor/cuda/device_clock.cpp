#include "executor/cuda/device_clock.h"

#include "executor/cuda/kernels/kernels.h"

namespace trainyard {

DeviceClock::DeviceClock(int device) : memory_(status_, device, 1) {
  status_.check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                "cudaStreamCreateWithFlags");
  status_.check(cudaEventCreate(&begin_), "cudaEventCreate");
  status_.check(cudaEventCreate(&end_), "cudaEventCreate");
}

DeviceClock::~DeviceClock() {
  cudaStreamSynchronize(stream_);
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
  cudaStreamDestroy(stream_);
}

void DeviceClock::begin() { status_.check(cudaEventRecord(begin_, stream_), "cudaEventRecord"); }

double DeviceClock::seconds_since_begin() {
  float milliseconds = 0;
  status_.check(cudaEventRecord(end_, stream_), "cudaEventRecord");
  status_.check(cudaEventSynchronize(end_), "cudaEventSynchronize");
  status_.check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

void DeviceClock::make_noise(const View& view) {
  const Dropout noise{.seed = 1, .rate = 0.5, .kept = 2, .places = {.part = view.rows}};
  const Queue to = queue();
  if (is_scaled(view.type)) {
    const Scratch wide(to, view.rows, view.columns, ElementType::bf16);
    make_noise(*wide);
    return cast(to, view, {*wide});
  }
  const Scratch ones(to, view.rows, view.columns, view.type);
  const Scratch mask(to, view.rows, view.columns, ElementType::u8);
  fill(to, *ones, 0.5F);
  drop(to, view, *mask, *ones, noise);
  fill(to, *ones, -0.5F);
  add(to, view, view, *ones);
}

}  // namespace trainyard
