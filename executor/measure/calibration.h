// Turns measured operations of a backend into a device, a software stack and the links of a node,
// as the cost model knows them; the fits are those for tables of kernels (model/calibration). On
// the host a rank is one thread, so the device has one multiprocessor. Kernels that are bound by
// arithmetic there, such as exponentials, count as memory traffic all the same; the stack says how
// much.
#pragma once

#include <optional>

#include "executor/measure/samples.h"
#include "model/calibration/fit_fabric.h"
#include "model/calibration/kernel_samples.h"
#include "model/cluster/cluster.h"
#include "model/workload/stack.h"

namespace trainyard {

// What is known of the device without measuring.
struct DeviceFrame {
  Bytes memory;
  int multiprocessors = 1;
  BytesPerSecond host;  // to the host's memory, per direction; 0: the device is the host
  std::optional<double> overlap_slowdown;      // nothing: there was no second rank
  std::optional<DeviceGeneration> generation;  // none: the host, or a GPU of no known generation
};

// Generation of an NVIDIA GPU by its compute capability (CUDA C++ Programming Guide, "Compute
// Capabilities"); none where no stack was measured on it: Volta, Turing, Ada, consumer Blackwell.
std::optional<DeviceGeneration> generation_of(int major, int minor);

Expected<Device> fitted_device(const HostSamples& samples,
                               const std::vector<CollectiveSample>& collectives,
                               const DeviceFrame& frame);

// The stack that describes the executor to the cost model, on `device`, which was fitted to the
// same samples. On the host nothing overlaps.
Stack fitted_stack(const HostSamples& samples, const Device& device);

// The links of a node, from messages between two ranks; from `device` where none were measured.
IntraNode fitted_links(const std::vector<CollectiveSample>& collectives, const Device& device);

// The fabric between hosts like `host` (a cluster of one), from collectives among all ranks of
// several hosts: one NIC a host, as fast as the most that a host was seen to receive. The error:
// too few collectives.
Expected<InterNode> fitted_fabric(const std::vector<CollectiveSample>& collectives,
                                  const Cluster& host);
FabricSample fabric_sample(const CollectiveSample& sample, const Cluster& host);

}  // namespace trainyard
