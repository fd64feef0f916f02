// A device: its datasheet, and the rates that its kernels attain, fitted to measurements
// (handbook §5). Every fitted rate is a property of the device, never of a run, and carries its
// provenance in the catalog document.
//
// Fields without a unit are factors and shares of the formulas in model/cost/kernels/.
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
// (latency + S/bandwidth + root·√S) times a correction, S the message of handbook §6. The √S term
// is the slow rise of the attained bandwidth from small messages to large ones (handbook §6).
struct CollectiveCurve {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  int gpus = 0;
  Seconds latency;
  BytesPerSecond bandwidth;
  double root = 0;        // s / √byte
  ResidualGrid residual;  // logarithm of the correction, over log2 of the bytes
};

// GEMM of one dtype by the tile model of model/cost/kernels/gemm.h. One rate for all shapes is the
// special case of no fill, no rounding and equal tiles.
struct GemmRates {
  // Rate of one multiprocessor in the k loop of a 128×256 tile; 0: the dtype is not supported.
  FlopsPerSecond per_multiprocessor;
  Seconds overhead;           // launch and tail of a kernel
  double fill = 0;            // filling and draining a tile costs as much as so many k-elements
  double memory_share = 0.8;  // of the HBM bandwidth, where memory bounds
  double wave_round = 0;      // how far a partial wave costs a whole one: 0 not, 1 fully
  double wave_tail = 0;       // waves lost at the end of a kernel
  double clock_drop = 0;      // slow-down of a long kernel at full power
  std::array<double, 3> tile_efficiency{1, 1, 1};  // of 128×256, 128×128 and 64×64 tiles
  double split_bytes = 0;  // bytes for each output element and each further split of k
  double ragged_rows = 1;  // compute time if m is no multiple of 8, over that of its neighbours
  double tile_round = 1;   // how far a partial tile costs a whole one: 0 not, 1 fully
  Bytes cache;             // operands up to this size stay in the last-level cache from run to run
  double cache_speed = 1;  // its bandwidth over the attained HBM bandwidth
  // Casting the activation, which the measured tables of low-precision GEMMs include. It is no part
  // of the GEMM's time.
  Seconds cast_overhead;
  double cast_bytes = 0;  // bytes for each element of the activation
  ResidualGrid residual;  // over log2 of m, of n, of k
};

// Forward attention of one head dimension, with or without a sliding window. Times of other head
// dimensions are interpolated.
struct AttentionRates {
  int head_dim = 0;
  FlopsPerSecond per_multiprocessor;  // in a 128×128 tile of scores
  Seconds overhead;
  double tail = 0;          // share of the longest row that stays exposed at the end
  Seconds query_tile;       // fixed cost of a tile of 128 queries, at head dimension 128
  double window_tiles = 1;  // key tiles that a sliding window touches beyond its width
  int row_tile = 128;       // queries that a tile holds: short sequences are rounded up to it
  bool sliding = false;     // these are rates of the kernel with a window
  int window = 0;           // of that kernel: widest window measured; 0: rates hold for any window
  // Traffic of the measured kernel, which also writes the KV cache, over once reading Q and writing
  // O (query_traffic) and once reading K and V (kv_traffic).
  double query_traffic = 1, kv_traffic = 1;
  Bytes cache;              // footprint of which half misses the last-level cache; 0: all misses
  double cached_share = 1;  // time of a byte that hits over that of one that misses
  ResidualGrid residual;    // over log2 of sequence, of batch × heads, of heads / KV heads
};

// Grouped GEMMs of routed experts.
struct ExpertRates {
  FlopsPerSecond per_multiprocessor;
  Seconds overhead;         // of the whole expert block: both GEMMs, activation, permutation
  double padding_rows = 0;  // mean number of rows by which an expert's group is rounded up
  double fill = 0;          // as in GemmRates
  double memory_share = 1;  // of the HBM bandwidth, for weights
  // Used for the measured expert block only. In a training step its activation and permutation are
  // operators of their own.
  double lone_share = 1;     // bandwidth of a rank with one expert, over that of `memory_share`
  double hidden_passes = 0;  // how often a routed row of the hidden width crosses the HBM
  double ffn_passes = 0;     // … a routed row of the experts' width
  double group_passes = 0;   // … a row of every token of the expert-parallel group
  double skew_gain = 1;      // measured excess load of the busiest rank over that of its power law
  ResidualGrid residual;  // over log2 of rows an expert, of experts a rank, of the experts' width
                          // on a rank, and the kind of routing (model/cost/kernels/experts.h)
};

// Rates that kernels attain (handbook §5), from `device` documents, where their provenance stands.
struct ComputeRates {
  std::array<GemmRates, kDtypes> gemm{};
  double batched_gemm = 0.34;  // share of their dtype's peak that unfused attention's GEMMs attain
  // First the entries without a window (at least one), then those with one; each part by ascending
  // head_dim.
  std::vector<AttentionRates> attention;
  ExpertRates experts;
  double memory = 0.8;         // share of the HBM bandwidth of memory-bound operators
  Seconds launch{3e-6};        // start and tail of a memory-bound kernel
  double sustained_clock = 1;  // clock in training over the clock at which kernels were measured

  const GemmRates& of(Dtype dtype) const { return gemm[static_cast<std::size_t>(dtype)]; }
};

// Generations of NVIDIA's data-centre devices on which there are published runs and releases of
// software.
enum class DeviceGeneration { ampere, hopper, blackwell };
inline constexpr std::array<std::string_view, 3> kDeviceGenerations{"ampere", "hopper",
                                                                    "blackwell"};
inline std::string_view name_of(DeviceGeneration generation) {
  return kDeviceGenerations[static_cast<std::size_t>(generation)];
}

struct Device {
  std::string name;
  std::string source;
  std::optional<DeviceGeneration> generation;  // none: another one, on which no stack has a run
  std::array<FlopsPerSecond, kDtypes> peak{};  // dense; 0: not supported
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  BytesPerSecond link_bandwidth;  // NVLink (or PCIe), per direction
  BytesPerSecond host_bandwidth;  // to host memory, per direction
  // Measured share of its pace that compute loses beside communication; replaces
  // Stack::overlap_slowdown.
  std::optional<double> overlap_slowdown;
  Watts power;  // at full load
  std::optional<DollarsPerSecond> price;
  int multiprocessors = 0;
  ComputeRates rates;
  // Factor on the logarithm of the step's interval (model/cost/interval.h). Above 1 where the rates
  // are another device's, carried over by ratios of the datasheets.
  double interval_widening = 1;
  std::vector<CollectiveCurve> collectives;
  // Kind of the links (of link_bandwidth) on which `collectives` were measured. None: they are
  // taken to hold on the links of any node.
  std::optional<IntraNodeKind> link_kind;

  FlopsPerSecond peak_of(Dtype dtype) const { return peak[static_cast<std::size_t>(dtype)]; }
  bool supports(Dtype dtype) const { return rates.of(dtype).per_multiprocessor.value() > 0; }
  // Whether the device can run the recipe's GEMMs. Instructions for operands with a scale for each
  // block (OCP Microscaling Formats 1.0) came with those for 4 bits, on Blackwell as on CDNA 4, so
  // a device without a rate for 4 bits does not have them.
  bool supports(const PrecisionRecipe& recipe) const {
    const bool scales_blocks = recipe.input_cast.block > 0;
    return supports(recipe.layer_gemm) && supports(recipe.head_gemm) &&
           (!scales_blocks || supports(Dtype::fp4));
  }

  // Dense rate of `dtype` over that of the dtype in which attention and experts were measured:
  // bf16; fp16 on devices without it; fp32 on those with neither. Requires: supports(dtype).
  double rate_over_measured(Dtype dtype) const {
    Dtype measured = Dtype::fp32;
    for (const Dtype half : {Dtype::fp16, Dtype::bf16}) {
      if (supports(half)) measured = half;
    }
    return rates.of(dtype).per_multiprocessor / rates.of(measured).per_multiprocessor;
  }
};

}  // namespace trainyard
