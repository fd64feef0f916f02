#include "model/cost/compute.h"

#include <array>
#include <cmath>

#include "model/cost/kernels/attention.h"
#include "model/cost/kernels/experts.h"
#include "model/cost/kernels/gemm.h"
#include "model/cost/kernels/memory_bound.h"

namespace trainyard {
namespace {

// Whether the operator's traffic is counted kernel by kernel, so that Stack::memory_traffic, which
// is over the fused minimum, does not apply.
bool counted_whole(const Operator& op) {
  return op.kind == OperatorKind::cross_entropy || is_sequence_copy(op.kind);
}

// Whether the GEMM runs in the recipe's precision for the head.
bool is_outside_layers(OperatorKind kind) {
  return kind == OperatorKind::output_head || kind == OperatorKind::router;
}

Dtype gemm_dtype(const PrecisionRecipe& recipe, OperatorKind kind) {
  return is_outside_layers(kind) ? recipe.head_gemm : recipe.layer_gemm;
}

// Traffic of accumulating the gradients of a GEMM's weights: each main gradient is read and written
// by the GEMM that accumulates into it, or by a kernel of its own that also reads the GEMM's
// output.
Bytes accumulation_traffic(const Training& training, double weights) {
  const double gradient = kept_gradient_bytes(training);
  return Bytes(weights *
               (training.stack.gradient_accumulation_fused ? gradient : 2 * gradient + 4));
}

// Whether tensor cores work asynchronously on operands in shared memory: kernels written for older
// devices leave half of them idle. Other devices with 8 bits (L40S, MI300X) have rates that were
// measured with kernels of the older kind.
bool is_hopper_or_later(const Device& device) {
  return device.generation == DeviceGeneration::hopper ||
         device.generation == DeviceGeneration::blackwell;
}

// Speed of the stack's GEMM library over the one with which the device's rates were measured.
double library_speed(const Device& device, const Stack& stack) {
  const bool hopper = is_hopper_or_later(device) && stack.gemm_speed_hopper > 0;
  return hopper ? stack.gemm_speed_hopper : 1;
}

// Times of the operator's GEMMs in the three passes.
std::array<Seconds, 3> gemm_times(const Device& device, const Stack& stack, Dtype dtype,
                                  const Operator& op, const GemmTimeTable* known) {
  const GemmShape& g = op.gemm;
  if (op.cls == OperatorClass::grouped_gemm) {
    const auto time = [&](const GemmShape& shape) {
      return grouped_gemm_time(device, dtype, shape) / stack.expert_speed;
    };
    return {time(g), time({g.m, g.k, g.n, g.groups}), time({g.k, g.n, g.m, g.groups})};
  }
  auto times = known == nullptr ? gemm_pass_times(device, dtype, g) : known->pass_times(dtype, g);
  const double library = library_speed(device, stack);
  for (Seconds& time : times) time /= library;
  return times;
}

OperatorTime gemm_operator_time(const Device& device, const Training& training, const Operator& op,
                                const GemmTimeTable* known) {
  const Dtype dtype = gemm_dtype(training.precision, op.kind);
  const auto [forward, input_gradient, weight_gradient] =
      gemm_times(device, training.stack, dtype, op, known);
  const double factor = training.stack.memory_traffic;
  const Seconds accumulation =
      accumulation_traffic(training, op.weights) / (device.memory_bandwidth * device.rates.memory);
  return {forward + memory_bound_time(device, op.forward_traffic * factor),
          input_gradient + memory_bound_time(device, op.backward_traffic * factor),
          weight_gradient + accumulation};
}

// Tensor cores need 16-bit rows of a multiple of 16 bytes (NVIDIA, Matrix Multiplication Background
// User's Guide). Other batched GEMMs run on the vector units, at a quarter of the peak on A100.
constexpr double kAlignedElements = 8;
constexpr double kWithoutTensorCores = 0.25;

// Unfused attention: batched GEMMs, and a softmax over the score matrix in memory. In fp32 all run
// on the vector units.
OperatorTime unfused_attention_time(const Device& device, const Training& training,
                                    const Operator& op) {
  const Dtype dtype = training.precision.attention;
  const bool aligned = std::fmod(op.attention.query_head_dim, kAlignedElements) == 0;
  const double share = aligned || dtype == Dtype::fp32 ? 1 : kWithoutTensorCores;
  const FlopsPerSecond rate = device.peak_of(dtype) * device.rates.batched_gemm * share;
  const double factor = training.stack.memory_traffic;
  return {op.forward / rate + memory_bound_time(device, op.forward_traffic * factor),
          2 * op.forward / rate + memory_bound_time(device, op.backward_traffic * factor),
          Seconds(0)};
}

OperatorTime flash_attention_time(const Device& device, const Training& training,
                                  const Operator& op) {
  const Stack& stack = training.stack;
  const bool hopper = is_hopper_or_later(device) && stack.attention_speed_hopper > 0;
  const double speed = hopper ? stack.attention_speed_hopper : stack.attention_speed;
  const Seconds forward = attention_time(device, training.precision.attention, op.attention,
                                         speed * stack.attention_generation);
  return {forward, forward * stack.attention_backward, Seconds(0)};
}

}  // namespace

OperatorTime cast_time(const Device& device, const Training& training, const Operator& op) {
  const bool gemm = op.cls == OperatorClass::gemm || op.cls == OperatorClass::grouped_gemm;
  const PrecisionRecipe& precision = training.precision;
  const bool casts = gemm && precision.casts_gemm_inputs() && !is_outside_layers(op.kind);
  if (!casts) return {};
  const double factor = training.stack.memory_traffic;
  return {memory_bound_time(device, op.forward_traffic * factor),
          memory_bound_time(device, op.backward_traffic * factor), Seconds(0)};
}

OperatorTime operator_time(const Device& device, const Training& training, const Operator& op,
                           const GemmTimeTable* known) {
  switch (op.cls) {
    case OperatorClass::gemm:
    case OperatorClass::grouped_gemm:
      return gemm_operator_time(device, training, op, known);
    case OperatorClass::attention:
      return training.stack.flash_attention ? flash_attention_time(device, training, op)
                                            : unfused_attention_time(device, training, op);
    case OperatorClass::memory_bound:
      break;
  }
  const double factor = counted_whole(op) ? 1 : training.stack.memory_traffic;
  return {memory_bound_time(device, op.forward_traffic * factor),
          memory_bound_time(device, op.backward_traffic * factor), Seconds(0)};
}

}  // namespace trainyard
