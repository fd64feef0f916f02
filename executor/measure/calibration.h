// From measured operations of a backend to a device, a software stack and the links of a node as
// the cost model knows them. Fits with the code that fits tables of kernels (model/calibration). On
// the host a rank is one thread, so the device has one multiprocessor; kernels that are not bound
// by memory there, such as exponentials, count as traffic all the same: the stack says how much.
#pragma once

#include <optional>

#include "executor/measure/samples.h"
#include "model/calibration/fit_fabric.h"
#include "model/calibration/kernel_samples.h"
#include "model/cluster/cluster.h"
#include "model/workload/stack.h"

namespace trainyard {

// What is known of it without measuring.
struct DeviceFrame {
  Bytes memory;
  int multiprocessors = 1;
  BytesPerSecond host;  // to the host's memory, per direction; 0: that is where it computes
  std::optional<double> overlap_slowdown;      // nothing where no second rank was there
  std::optional<DeviceGeneration> generation;  // none: the host, or a GPU of another
};

// Of an NVIDIA GPU by its compute capability (CUDA C++ Programming Guide, "Compute Capabilities");
// none where no stack has runs of it: Volta, Turing, Ada, consumer Blackwell.
std::optional<DeviceGeneration> generation_of(int major, int minor);

Expected<Device> fitted_device(const HostSamples& samples,
                               const std::vector<CollectiveSample>& collectives,
                               const DeviceFrame& frame);

// What the executor is to the cost model, on `device`, which was fitted to the same samples. On the
// host nothing runs beside anything else.
Stack fitted_stack(const HostSamples& samples, const Device& device);

// Messages from one rank to another; as `device` has them where none were measured.
IntraNode fitted_links(const std::vector<CollectiveSample>& collectives, const Device& device);

// What connects hosts like `host` (a cluster of one), from collectives among all ranks of several:
// one NIC a host, as fast as the most that a host was seen to receive. The error: too few of them.
Expected<InterNode> fitted_fabric(const std::vector<CollectiveSample>& collectives,
                                  const Cluster& host);
FabricSample fabric_sample(const CollectiveSample& sample, const Cluster& host);

}  // namespace trainyard
