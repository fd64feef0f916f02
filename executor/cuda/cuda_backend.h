// NVIDIA devices, one process each: kernels of our own, matrix products by cuBLASLt, collectives by
// NCCL, each kind of work on a stream of its own, ordered by events as the program says. Memory
// comes from a pool in the order of streams, as large at once as the program's own count of bytes.
// Ranks that share a device speak through the host: NCCL refuses that.
//
// CUDA's libraries take a tenth of a second to load, so they are linked into a program of their own
// (trainyard-cuda), which `trainyard run --backend cuda` becomes; all others have none.cpp.
#pragma once

#include "executor/backend.h"

namespace trainyard {

// Whether this program is linked with CUDA.
bool has_cuda();
// Nothing: there is a device.
std::optional<Error> no_cuda_device();
Expected<std::unique_ptr<Backend>> make_cuda_backend(const BackendWorld& world);

// What runs: the driver, the libraries, the device and its clock, for provenance.
std::string cuda_provenance();
std::string cuda_device_name();  // "NVIDIA H200"
int cuda_devices();              // that this process sees

}  // namespace trainyard
