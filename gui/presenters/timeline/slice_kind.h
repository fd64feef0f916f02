// What a slice of a timeline is, for its colour: of a task that was simulated, or by the names that
// a saved trace has for its track and operation. An operation that has a stream of its own in the
// program is of that stream, though the simulation may play it among the kernels; what the program
// has among them goes by what it does and whom it joins. Of what moves bytes both say the same; of
// kernels a name says the pass alone. What other programs write is mostly `other`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trainyard {

struct StepTask;

// The name of a kind is the key of its colour.
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
const char* key_of(SliceKind kind);
inline constexpr int kSliceKinds = 13;

SliceKind kind_of(const StepTask& task);

// Of all that is on a track of that name; nothing: it depends on the operation.
std::optional<SliceKind> kind_of_track(std::string_view track);
// Of an operation of that name on any other track.
SliceKind kind_of_operation(std::string_view operation);

}  // namespace trainyard
