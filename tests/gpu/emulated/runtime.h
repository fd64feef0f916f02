// Of the emulated device what tests change.
#pragma once

#include <cstddef>
#include <vector>

namespace trainyard {

void set_emulated_memory(std::size_t bytes);
void set_emulated_capability(int major);  // 10 at the start
// Matrix products in 8 bits since the start; `fast`: with CUBLASLT_MATMUL_DESC_FAST_ACCUM.
struct NarrowProducts {
  int all = 0, fast = 0;
  int of_e4m3 = 0;  // both operands
  int fast_of_e5m2 = 0;
};
NarrowProducts emulated_narrow_products();
void set_emulated_devices(int count);  // 1 at the start
// The device stops after so many more of the events that keep time: no later one is reached, and
// streams are never done, until it goes on.
void stop_emulated_device(int after_events);
void go_on_emulated_device();
// What a device that has stopped was given is done, but streams do not say so until it goes on.
void finish_emulated_work();
// Waits of streams for events since the start.
int emulated_waits();
// The same for what each stream recorded that is there for nothing but giving memory back, the
// least first: one that does, and on which no event keeps time.
std::vector<int> emulated_waits_for_give_backs();
void set_emulated_nccl_error(bool fails);  // of every communicator
int aborted_emulated_communicators();

}  // namespace trainyard
