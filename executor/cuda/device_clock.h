// Times single pieces of work on a device by events, for calibrations and benchmarks. Assumes that
// nothing else runs on the device meanwhile.
#pragma once

#include <algorithm>

#include "executor/cuda/device_memory.h"
#include "executor/measure/timing.h"

namespace trainyard {

class DeviceClock {
 public:
  explicit DeviceClock(int device);
  ~DeviceClock();
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  CudaStatus& status() { return status_; }
  Queue queue() { return {status_, stream_, memory_.pool()}; }

  // Time of one call of `work`, which hands work to the queue. Short work is called several times
  // in a row, so that launching it is hidden; that is repeated until the median is certain or the
  // budget is spent.
  template <typename Work>
  Timing time_of(const Work& work, Seconds budget) {
    constexpr double kLong = 1e-3;  // s
    const auto start = TimingClock::now();
    run_of(work, 1);  // warm-up: libraries choose and load their kernels
    const double once = run_of(work, 1);
    const int repeats = std::clamp(static_cast<int>(kLong / std::max(once, 1e-6)), 1, 200);
    return repeated_timing([&] { return Seconds(run_of(work, repeats)); },
                           budget - Seconds(seconds_since(start)));
  }

  // Seconds of one call, averaged over `repeats` in a row.
  template <typename Work>
  double run_of(const Work& work, int repeats) {
    begin();
    for (int i = 0; i < repeats; ++i) work();
    return std::max(seconds_since_begin() / repeats, 1e-9);
  }

  // Fills `view` with random numbers around zero, at most 1: products of zeros run faster than any
  // in training.
  void make_noise(const View& view);

 private:
  void begin();
  double seconds_since_begin();

  CudaStatus status_;
  DeviceMemory memory_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace trainyard
