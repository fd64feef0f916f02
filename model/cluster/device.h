// A device as a datasheet describes it, and what its kernels attain (fitted; handbook §5).
//
// A rate that was fitted is a property of the device and carries its provenance in the catalog
// document; none is a property of a run.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/residual_grid.h"
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

// How the devices of a node are wired.
enum class IntraNodeKind { nvswitch, nvlink_mesh, pcie };
inline constexpr std::array<std::string_view, 3> kIntraNodeKinds{"nvswitch", "nvlink-mesh", "pcie"};
inline std::string_view name_of(IntraNodeKind kind) {
  return kIntraNodeKinds[static_cast<std::size_t>(kind)];
}

// Fitted time of a collective among `gpus` devices of one NVLink domain:
// latency + S/bandwidth + root·√S. The √S term is the slow rise of the attained bandwidth between
// the latency-bound and the bandwidth-bound end (handbook §6). `S` is the message of handbook §6.
struct CollectiveCurve {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  int gpus = 0;
  Seconds latency;
  BytesPerSecond bandwidth;
  double root = 0;        // s / √byte
  ResidualGrid residual;  // over log2 of the bytes
};

// GEMM of one dtype by the tile model of model/cost/kernels/gemm.h. One rate for all shapes is the
// special case of no fill, no rounding and equal tiles.
struct GemmRates {
  // Of a 128×256 tile in its steady loop; 0: the dtype is not supported.
  FlopsPerSecond per_multiprocessor;
  Seconds overhead;           // launch and tail of a kernel
  double fill = 0;            // k-elements that filling and draining a tile costs
  double memory_share = 0.8;  // of the HBM bandwidth, where memory bounds
  double wave_round = 0;      // how far a partial wave costs a whole one: 0 not, 1 fully
  double wave_tail = 0;       // waves lost at the end of a kernel
  double clock_drop = 0;      // slow-down of a long kernel at full power
  std::array<double, 3> tile_efficiency{1, 1, 1};  // of 128×256, 128×128 and 64×64 tiles
  double split_bytes = 0;  // traffic an output element of each further split of k
  double ragged_rows = 1;  // compute of an m that is no multiple of 8, over that of its neighbours
  double tile_round = 1;   // how far a partial tile costs a whole one: 0 not, 1 fully
  Bytes cache;             // operands up to this size stay in the last-level cache from run to run
  double cache_speed = 1;  // its bandwidth over the attained HBM bandwidth
  // The measured tables of low-precision GEMMs include casting the activation: beside the GEMM, not
  // part of it.
  Seconds cast_overhead;
  double cast_bytes = 0;  // traffic an element of the activation
  ResidualGrid residual;  // over log2 of m, of n, of k
};

// Forward attention of one head dimension, with or without a sliding window; between two head
// dimensions it is interpolated.
struct AttentionRates {
  int head_dim = 0;
  FlopsPerSecond per_multiprocessor;  // of a 128×128 tile of scores
  Seconds overhead;
  double tail = 0;          // share of the longest row that stays exposed at the end
  Seconds query_tile;       // a tile of 128 queries, at head dimension 128
  double window_tiles = 1;  // key tiles that a sliding window touches beyond its width
  int row_tile = 128;       // queries that a tile holds: short sequences are rounded up to it
  bool sliding = false;     // rates of the kernel with a window
  int window = 0;           // of that one: the widest that was measured; 0: as if any had been
  // The measured kernel also writes the KV cache: its traffic over reading Q, K and V and writing O
  // once, for the queries' heads and for the KV heads.
  double query_traffic = 1, kv_traffic = 1;
  Bytes cache;              // traffic of which half misses the last-level cache; 0: all of it does
  double cached_share = 1;  // time of traffic that hits over time of traffic that misses
  ResidualGrid residual;    // over log2 of sequence, of batch × heads, of heads / KV heads
};

// Grouped GEMMs of routed experts.
struct ExpertRates {
  FlopsPerSecond per_multiprocessor;
  Seconds overhead;         // of the whole expert block: both GEMMs, activation, permutation
  double padding_rows = 0;  // rows an expert's group is rounded up by, on average
  double fill = 0;
  double memory_share = 1;  // of the HBM bandwidth, for weights
  // Of the measured block, whose activation and permutation are operators of their own elsewhere:
  double lone_share = 1;     // bandwidth of a rank with one expert over `memory_share`
  double hidden_passes = 0;  // times a routed row of the hidden width crosses the HBM
  double ffn_passes = 0;     // … of the experts' width
  double group_passes = 0;   // … a row of every token of the expert-parallel group
  double skew_gain = 1;      // excess of the busiest rank over the expected one of its power law
  ResidualGrid residual;  // over log2 of rows an expert, of experts a rank, of the experts' width
                          // on a rank, and the kind of routing (model/cost/kernels/experts.h)
};

// What kernels attain (handbook §5). Figures of `device` documents: fitted, with provenance there.
struct ComputeRates {
  std::array<GemmRates, kDtypes> gemm{};
  double batched_gemm = 0.34;  // unfused attention's GEMMs, of their dtype's peak
  // Those without a window, one at least, before those with one; by head_dim, ascending.
  std::vector<AttentionRates> attention;
  ExpertRates experts;
  double memory = 0.8;         // memory-bound operators, of the HBM bandwidth
  Seconds launch{3e-6};        // start and tail of a memory-bound kernel
  double sustained_clock = 1;  // clock in training over the clock at which kernels were measured

  const GemmRates& of(Dtype dtype) const { return gemm[static_cast<std::size_t>(dtype)]; }
};

// Of NVIDIA's data-centre devices: those that published runs and releases of software are of.
enum class DeviceGeneration { ampere, hopper, blackwell };
inline constexpr std::array<std::string_view, 3> kDeviceGenerations{"ampere", "hopper",
                                                                    "blackwell"};
inline std::string_view name_of(DeviceGeneration generation) {
  return kDeviceGenerations[static_cast<std::size_t>(generation)];
}

struct Device {
  std::string name;
  std::string source;
  std::optional<DeviceGeneration> generation;  // none: another, of which no stack has a run
  std::array<FlopsPerSecond, kDtypes> peak{};  // dense; 0: not supported
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  BytesPerSecond link_bandwidth;  // NVLink (or PCIe), per direction
  BytesPerSecond host_bandwidth;  // to host memory, per direction
  // Measured: share of its pace that compute loses beside communication, in place of the stack's
  // Stack::overlap_slowdown.
  std::optional<double> overlap_slowdown;
  Watts power;  // at full load
  std::optional<DollarsPerSecond> price;
  int multiprocessors = 0;
  ComputeRates rates;
  // Of every interval, in logarithm (model/cost/interval.h). Above 1: the rates are another
  // device's, carried over by ratios of the datasheets.
  double interval_widening = 1;
  std::vector<CollectiveCurve> collectives;
  // Of the links of `link_bandwidth` that `collectives` were measured on; none: they are taken to
  // hold on those of any node.
  std::optional<IntraNodeKind> link_kind;

  FlopsPerSecond peak_of(Dtype dtype) const { return peak[static_cast<std::size_t>(dtype)]; }
  bool supports(Dtype dtype) const { return rates.of(dtype).per_multiprocessor.value() > 0; }
  // Its GEMMs. Those whose operands have a scale a block (OCP Microscaling Formats 1.0) are
  // instructions that came with those of 4 bits, on Blackwell as on CDNA 4: a device without a rate
  // for 4 bits has them not.
  bool supports(const PrecisionRecipe& recipe) const {
    const bool scales_blocks = recipe.input_cast.block > 0;
    return supports(recipe.layer_gemm) && supports(recipe.head_gemm) &&
           (!scales_blocks || supports(Dtype::fp4));
  }

  // Dense rate of `dtype` over that of the dtype which attention and experts were measured in: 16
  // bits, of which older devices have fp16 alone and others bf16 alone; fp32 where it has neither.
  // Requires: supports(dtype).
  double rate_over_measured(Dtype dtype) const {
    Dtype measured = Dtype::fp32;
    for (const Dtype half : {Dtype::fp16, Dtype::bf16}) {
      if (supports(half)) measured = half;
    }
    return rates.of(dtype).per_multiprocessor / rates.of(measured).per_multiprocessor;
  }
};

}  // namespace trainyard
