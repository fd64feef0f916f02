// A device as a datasheet describes it, and what its kernels attain (fitted; handbook §5).
//
// A rate that was fitted is a property of the device and carries its provenance in the catalog
// document; none is a property of a run.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/units.h"
#include "model/workload/precision.h"

namespace trainyard {

enum class CollectiveOperation {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send
};
inline constexpr int kCollectiveOperations = 6;

// Fitted time of a collective among `gpus` devices of one NVLink domain:
// latency + S/bandwidth + root·√S. The √S term is the slow rise of the attained bandwidth between
// the latency-bound and the bandwidth-bound end (handbook §6). `S` is the message of handbook §6.
struct CollectiveCurve {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  int gpus = 0;
  Seconds latency;
  BytesPerSecond bandwidth;
  double root = 0;  // s / √byte
};

// Attainable share of the datasheet's peak, an operator class (handbook §5).
struct ComputeRates {
  std::array<double, kDtypes> gemm{};  // of the dtype's peak, for large GEMMs; 0: not supported
  double gemm_fill = 128;              // k₀: k-elements that filling and draining a tile costs
  double batched_gemm = 0.34;          // attention's GEMMs when it is not fused, of the fp16 peak
  double attention_forward = 0.5;      // flash attention, causal work only, of the bf16 peak
  double grouped_gemm = 0.6;           // experts' GEMMs, of the gemm share above
  double memory = 0.8;                 // memory-bound operators, of the HBM bandwidth
  Seconds launch{3e-6};                // start and tail of a kernel
};

struct Device {
  std::string name;
  std::string source;
  std::array<FlopsPerSecond, kDtypes> peak{};  // dense; 0: not supported
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  BytesPerSecond link_bandwidth;  // NVLink (or PCIe), per direction
  BytesPerSecond host_bandwidth;  // to host memory, per direction
  Watts power;                    // at full load
  std::optional<DollarsPerSecond> price;
  int multiprocessors = 0;
  ComputeRates rates;
  std::vector<CollectiveCurve> collectives;

  FlopsPerSecond peak_of(Dtype dtype) const { return peak[static_cast<std::size_t>(dtype)]; }
};

}  // namespace trainyard
