// The kind of a slice of a timeline, which chooses its colour. It comes from the simulated task,
// or, in a saved trace, from the names of the track and the operation. Communication that has a
// stream of its own in the program has the kind of that stream, even if the simulation plays it on
// the compute stream. Other communication has the kind of its process group: "all-reduce (tensor),
// forward" is `tensor_parallel`. A kernel has the kind of its pass; its name may say less than its
// task, such as "backward" for a weight gradient. Traces of other programs are mostly `other`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trainyard {

struct StepTask;

enum class SliceKind : std::uint8_t {
  forward,
  backward,
  weight_gradient,
  recompute,
  optimizer,
  launch,
  tensor_parallel,
  context_parallel,
  expert_parallel,
  pipeline,
  data_parallel,
  copy,
  other,
};
// The enumerator's name, which is the key of its colour.
const char* key_of(SliceKind kind);
inline constexpr int kSliceKinds = 13;

SliceKind kind_of(const StepTask& task);

// The kind of all slices on a track of this name; nothing: it depends on the operation.
std::optional<SliceKind> kind_of_track(std::string_view track);
// The kind of an operation of this name, on a track for which kind_of_track() gives nothing.
SliceKind kind_of_operation(std::string_view operation);

}  // namespace trainyard
