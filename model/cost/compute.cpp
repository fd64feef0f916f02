#include "model/cost/compute.h"

#include <algorithm>

namespace trainyard {
namespace {

std::size_t slot(Dtype dtype) { return static_cast<std::size_t>(dtype); }

double element_bytes(Dtype dtype) { return bytes_per_element(dtype); }

Dtype gemm_dtype(const PrecisionRecipe& recipe, OperatorKind kind) {
  const bool outside_layers = kind == OperatorKind::output_head || kind == OperatorKind::router;
  return outside_layers ? recipe.head_gemm : recipe.layer_gemm;
}

// Each weight's main gradient is read and written by the GEMM that accumulates into it, or by a
// kernel of its own that also reads what the GEMM wrote.
Bytes accumulation_traffic(const Stack& stack, double weights) {
  const double gradient = stack.gradient_bytes;
  return Bytes(weights * (stack.gradient_accumulation_fused ? gradient : 2 * gradient + 4));
}

OperatorTime gemm_operator_time(const Device& device, const Training& training,
                                const Operator& op) {
  const Dtype dtype = gemm_dtype(training.precision, op.kind);
  const double bytes = element_bytes(dtype);
  const GemmShape& g = op.gemm;
  const double traffic_factor = training.stack.memory_traffic;
  OperatorTime time;
  time.forward = gemm_time(device, dtype, g, bytes) +
                 memory_bound_time(device, op.forward_traffic * traffic_factor);
  time.input_gradient = gemm_time(device, dtype, {g.m, g.k, g.n, g.groups}, bytes) +
                        memory_bound_time(device, op.backward_traffic * traffic_factor);
  time.weight_gradient = gemm_time(device, dtype, {g.k, g.n, g.m, g.groups}, bytes) +
                         accumulation_traffic(training.stack, op.weights) /
                             (device.memory_bandwidth * device.rates.memory);
  return time;
}

OperatorTime attention_operator_time(const Device& device, const Training& training,
                                     const Operator& op) {
  const Stack& stack = training.stack;
  OperatorTime time;
  time.forward = attention_time(device, stack, op) +
                 memory_bound_time(device, op.forward_traffic * stack.memory_traffic);
  const double backward = stack.flash_attention ? stack.attention_backward : 2.0;
  time.input_gradient = attention_time(device, stack, op) * backward +
                        memory_bound_time(device, op.backward_traffic * stack.memory_traffic);
  return time;
}

}  // namespace

Seconds memory_bound_time(const Device& device, Bytes traffic) {
  if (traffic.value() <= 0) return Seconds(0);
  return traffic / (device.memory_bandwidth * device.rates.memory) + device.rates.launch;
}

Seconds gemm_time(const Device& device, Dtype dtype, const GemmShape& shape, double element) {
  const auto& rates = device.rates;
  double share = rates.gemm[slot(dtype)];
  if (shape.groups > 1) share *= rates.grouped_gemm;
  const double fill = 1 + rates.gemm_fill / std::max(shape.k, 1.0);
  const Flops work(2 * shape.m * shape.n * shape.k * shape.groups * fill);
  const Bytes traffic((shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) * shape.groups *
                      element);
  const Seconds compute = work / (device.peak_of(dtype) * share);
  const Seconds memory = traffic / (device.memory_bandwidth * rates.memory);
  return std::max(compute, memory) + rates.launch;
}

Seconds attention_time(const Device& device, const Stack& stack, const Operator& op) {
  const auto& rates = device.rates;
  const FlopsPerSecond peak = device.peak_of(Dtype::fp16);
  if (!stack.flash_attention) {
    return op.forward / (peak * rates.batched_gemm) + 2 * rates.launch;
  }
  // A flash kernel skips the masked half; a window is already counted in `keys`.
  const double causal = op.attention.sliding ? 1.0 : 0.5;
  return op.forward * causal / (peak * (rates.attention_forward * stack.attention_speed)) +
         rates.launch;
}

OperatorTime operator_time(const Device& device, const Training& training, const Operator& op) {
  switch (op.cls) {
    case OperatorClass::gemm:
    case OperatorClass::grouped_gemm:
      return gemm_operator_time(device, training, op);
    case OperatorClass::attention:
      return attention_operator_time(device, training, op);
    case OperatorClass::memory_bound:
      break;
  }
  const double factor = training.stack.memory_traffic;
  return {memory_bound_time(device, op.forward_traffic * factor),
          memory_bound_time(device, op.backward_traffic * factor), Seconds(0)};
}

}  // namespace trainyard
