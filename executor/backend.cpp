#include "executor/backend.h"

#include "executor/cpu/cpu_backend.h"
#include "executor/cuda/cuda_backend.h"

namespace trainyard {

Lane lane_of(const IssuedOperation& issued) {
  const Operation& operation = *issued.operation;
  Lane lane{.stream = operation.stream};
  const bool sends = operation.kind == OperationKind::send;
  if (!sends && operation.kind != OperationKind::receive) return lane;
  lane.peer = issued.call->peer;
  lane.sends = sends;
  lane.pass = operation.phase;
  return lane;
}

std::string_view name_of(BackendKind kind) { return kind == BackendKind::cpu ? "cpu" : "cuda"; }

std::optional<Error> not_available(BackendKind kind) {
  return kind == BackendKind::cuda ? no_cuda_device() : std::nullopt;
}

Expected<std::unique_ptr<Backend>> make_backend(BackendKind kind, const BackendWorld& world) {
  if (kind == BackendKind::cuda) return make_cuda_backend(world);
  return make_cpu_backend(world.setting, world.program, world.layout, world.transport);
}

}  // namespace trainyard
