// Stands in for the CUDA backend in a program that is not linked with it.
#include "executor/cuda/cuda_backend.h"
#include "executor/cuda/device_measure.h"
#include "executor/cuda/device_party.h"

namespace trainyard {
namespace {

Error without() { return {"--backend cuda", "this program was built without CUDA"}; }

}  // namespace

bool has_cuda() { return false; }
std::optional<Error> no_cuda_device() { return without(); }
Expected<std::unique_ptr<Backend>> make_cuda_backend(const BackendWorld&) {
  return tl::unexpected(without());
}
std::string cuda_provenance() { return ""; }
std::string cuda_device_name() { return ""; }
int cuda_devices() { return 0; }
Expected<std::unique_ptr<DeviceParty>> make_device_party(
    Transport&, std::function<std::unique_ptr<Transport>(int ranks)>) {
  return tl::unexpected(without());
}
Expected<MeasuredDevice> measure_device(const MeasureLimits&) { return tl::unexpected(without()); }

}  // namespace trainyard
