#include "gui/presenters/timeline/slice_kind.h"

#include <array>

#include "simulator/step/graph.h"

namespace trainyard {
namespace {

constexpr std::array<const char*, kSliceKinds> kKeys = {"forward",
                                                        "backward",
                                                        "weight_gradient",
                                                        "recompute",
                                                        "optimizer",
                                                        "launch",
                                                        "tensor_parallel",
                                                        "context_parallel",
                                                        "expert_parallel",
                                                        "pipeline",
                                                        "data_parallel",
                                                        "copy",
                                                        "other"};

std::optional<SliceKind> kind_of(ProgramStream stream) {
  switch (stream) {
    case ProgramStream::compute:
      return std::nullopt;
    case ProgramStream::tensor_parallel:
      return SliceKind::tensor_parallel;
    case ProgramStream::context_parallel:
      return SliceKind::context_parallel;
    case ProgramStream::expert_parallel:
      return SliceKind::expert_parallel;
    case ProgramStream::pipeline:
      return SliceKind::pipeline;
    case ProgramStream::data_parallel:
    case ProgramStream::embedding:
      return SliceKind::data_parallel;
    case ProgramStream::copy:
    case ProgramStream::fetch:
      break;
  }
  return SliceKind::copy;
}

std::optional<SliceKind> kind_of(Stream stream) {
  switch (stream) {
    case Stream::compute:
      return std::nullopt;
    case Stream::tensor:
      return SliceKind::tensor_parallel;
    case Stream::context:
      return SliceKind::context_parallel;
    case Stream::expert:
      return SliceKind::expert_parallel;
    case Stream::pipeline:
    case Stream::gradient:
      return SliceKind::pipeline;
    case Stream::receive:
      return SliceKind::other;  // mostly waiting for the sender
    case Stream::data:
    case Stream::embedding:
      return SliceKind::data_parallel;
    case Stream::copy:
    case Stream::fetch:
      break;
  }
  return SliceKind::copy;
}

// The kind of communication on the compute stream, by its process group.
SliceKind kind_of_move(OperationKind kind, Group group) {
  if (kind == OperationKind::copy) return SliceKind::copy;
  if (kind == OperationKind::receive) return *kind_of(Stream::receive);
  switch (group) {
    case Group::none:
      return SliceKind::pipeline;
    case Group::tensor:
    case Group::kv_head:
      return SliceKind::tensor_parallel;
    case Group::context:
      return SliceKind::context_parallel;
    case Group::expert:
    case Group::expert_tensor:
      return SliceKind::expert_parallel;
    default:
      break;
  }
  return SliceKind::data_parallel;
}

// The enumerator with this name, from 0 to `last`; nothing: there is none.
template <typename Enumerator>
std::optional<Enumerator> named(std::string_view name, Enumerator last) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (const auto one = static_cast<Enumerator>(i); name_of(one) == name) return one;
  }
  return std::nullopt;
}

// The kind of communication from its operation_name(), such as "all-reduce (tensor), forward";
// nothing: the operation moves no bytes.
std::optional<SliceKind> kind_of_move(std::string_view operation) {
  const std::string_view whole = operation.substr(0, operation.rfind(", "));
  const std::size_t open = whole.find(" (");
  const auto kind = named(whole.substr(0, open), OperationKind::receive);
  if (!kind || !moves_bytes(*kind)) return std::nullopt;
  if (open == std::string_view::npos) return kind_of_move(*kind, Group::none);
  const std::string_view joined = whole.substr(open + 2, whole.find(')') - open - 2);
  return kind_of_move(*kind, named(joined, Group::all).value_or(Group::none));
}

}  // namespace

const char* key_of(SliceKind kind) { return kKeys[static_cast<std::size_t>(kind)]; }

SliceKind kind_of(const StepTask& task) {
  if (task.kind == StepTaskKind::launch) return SliceKind::launch;
  if (task.kind == StepTaskKind::update_overhead) return SliceKind::optimizer;
  const Operation& operation = *task.issued.operation;
  if (operation.kind != OperationKind::receive) {
    if (const auto own = kind_of(operation.stream)) return *own;
  }
  if (moves_bytes(operation.kind)) return kind_of_move(operation.kind, operation.group);
  if (operation.recomputed) return SliceKind::recompute;
  switch (operation.phase) {
    case Phase::forward:
      return SliceKind::forward;
    case Phase::input_gradient:
      return SliceKind::backward;
    case Phase::weight_gradient:
      return SliceKind::weight_gradient;
    case Phase::update:
      break;
  }
  return SliceKind::optimizer;
}

std::optional<SliceKind> kind_of_track(std::string_view track) {
  const std::size_t comma = track.rfind(", ");
  const bool has_parts = comma != std::string_view::npos;
  if (const auto played = named(has_parts ? track.substr(comma + 2) : track, Stream::fetch)) {
    return kind_of(*played);
  }
  const auto stream = named(track.substr(0, comma), ProgramStream::fetch);
  return stream ? kind_of(*stream) : std::nullopt;
}

SliceKind kind_of_operation(std::string_view operation) {
  const auto has = [operation](std::string_view part) {
    return operation.find(part) != std::string_view::npos;
  };
  if (const auto moved = kind_of_move(operation)) return *moved;
  if (has(" again")) return SliceKind::recompute;
  if (has("weight gradient")) return SliceKind::weight_gradient;
  if (operation == "launch") return SliceKind::launch;
  const bool updates = has("optimizer") || has("sharded update");
  if (updates || operation.ends_with(", finish")) return SliceKind::optimizer;
  if (operation.ends_with(", forward")) return SliceKind::forward;
  const bool back = operation.ends_with(", backward") || operation.ends_with(", input gradient");
  return back ? SliceKind::backward : SliceKind::other;
}

}  // namespace trainyard
