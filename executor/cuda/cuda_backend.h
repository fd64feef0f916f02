// The backend for NVIDIA devices, one process for each rank: kernels of our own, matrix products by
// cuBLASLt, collectives by NCCL. Each lane has a stream of its own, and events order the streams as
// the program says. Memory comes from a pool in the order of streams, reserved at once at the size
// that the program's buffers need. Ranks that share a device communicate through the host, because
// NCCL does not allow it.
//
// CUDA's libraries take a tenth of a second to load, so they are linked into a program of their own
// (trainyard-cuda), which `trainyard run --backend cuda` becomes; all others link none.cpp instead.
#pragma once

#include "executor/backend.h"

namespace trainyard {

// Whether this program is linked with CUDA.
bool has_cuda();
// Why no CUDA device can be used; nothing: there is one.
std::optional<Error> no_cuda_device();
Expected<std::unique_ptr<Backend>> make_cuda_backend(const BackendWorld& world);

// Versions of driver and libraries, the device and its clock, for provenance.
std::string cuda_provenance();
std::string cuda_device_name();  // "NVIDIA H200"
int cuda_devices();              // number of devices that this process sees

}  // namespace trainyard
