// Times of work on a device, one piece at a time, by events: for calibrations and benchmarks.
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

  // Of one call of `work`, which hands work to the queue: several in a row where it is short, so
  // that starting it is hidden; repeated until the median is sure or the budget spent.
  template <typename Work>
  Timing time_of(const Work& work, Seconds budget) {
    constexpr double kLong = 1e-3;  // s
    const auto start = TimingClock::now();
    run_of(work, 1);  // in which libraries choose kernels, and load them: it says nothing of others
    const double once = run_of(work, 1);
    const int repeats = std::clamp(static_cast<int>(kLong / std::max(once, 1e-6)), 1, 200);
    return repeated_timing([&] { return Seconds(run_of(work, repeats)); },
                           budget - Seconds(seconds_since(start)));
  }

  // Of one call, of `repeats` in a row.
  template <typename Work>
  double run_of(const Work& work, int repeats) {
    begin();
    for (int i = 0; i < repeats; ++i) work();
    return std::max(seconds_since_begin() / repeats, 1e-9);
  }

  // Numbers about zero, not above 1: products of zeros are faster than any that training sees.
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
