// What tests set and count on the emulated device. The counts run from the start of the program.
#pragma once

#include <cstddef>
#include <vector>

namespace trainyard {

void set_emulated_memory(std::size_t bytes);
void set_emulated_capability(int major);  // 10 at the start
// Matrix products with operands of 8 bits; `fast` counts those with
// CUBLASLT_MATMUL_DESC_FAST_ACCUM.
struct NarrowProducts {
  int all = 0, fast = 0;
  int of_e4m3 = 0;  // both operands are e4m3
  int fast_of_e5m2 = 0;
};
NarrowProducts emulated_narrow_products();
void set_emulated_devices(int count);  // 1 at the start
// Stops the device after `after_events` more timing events. Events that are recorded later are not
// reached, and streams report unfinished work, until go_on_emulated_device().
void stop_emulated_device(int after_events);
void go_on_emulated_device();
// Finishes the work that a stopped device was given: all events are reached, but streams still
// report unfinished work until go_on_emulated_device().
void finish_emulated_work();
// How often any stream was made to wait for an event.
int emulated_waits();
// The same, counted per stream that was waited for, in ascending order. Only streams that do
// nothing but give memory back count: they free memory, and no timing event is recorded on them.
std::vector<int> emulated_waits_for_give_backs();
void set_emulated_nccl_error(bool fails);  // for every communicator
int aborted_emulated_communicators();

}  // namespace trainyard
