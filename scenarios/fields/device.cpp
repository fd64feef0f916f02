// The fields of a device: what its datasheet says, and the fitted rates of its kernels and
// collectives. Handbook §5 and §6.
#include <algorithm>

#include "scenarios/fields/documents.h"
#include "scenarios/fields/residual.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, kDtypes> kDtypeNames = {"fp32", "fp16", "bf16", "fp8",
                                                               "fp4"};
using Peaks = std::array<FlopsPerSecond, kDtypes>;
using GemmTable = std::array<GemmRates, kDtypes>;
constexpr auto kFp16 = static_cast<std::size_t>(Dtype::fp16);
constexpr auto kBf16 = static_cast<std::size_t>(Dtype::bf16);
constexpr NumberShape kShare{.least = 1e-4, .most = 1.5};
constexpr NumberShape kShareOrZero{.least = 0, .most = 1.5};
constexpr NumberShape kWidening{.least = 1, .most = 10};
constexpr NumberShape kElements{.least = 0, .most = 1e5};

// A key for each dtype; an absent one is not supported, and its peak stays 0.
Field<Peaks> peak_of(std::size_t dtype) {
  return {
      {.key = std::string(kDtypeNames[dtype]),
       .shape = {QuantityShape{Dimension::flops_per_second}},
       .doc = "dense datasheet peak of this dtype, without sparsity"},
      [dtype](const Json& value, Peaks& peaks, const Place&) -> Expected<void> {
        peaks[dtype] = FlopsPerSecond(
            parse_quantity(value.get<std::string>(), Dimension::flops_per_second, false).value());
        return {};
      },
      [dtype](const Peaks& peaks) -> std::optional<Json> {
        if (peaks[dtype].value() == 0) return std::nullopt;
        return format_quantity(peaks[dtype].value(), Dimension::flops_per_second);
      }};
}

Field<GemmRates> tile_efficiency_field() {
  return {
      {.key = "tile_efficiency",
       .shape = {ListShape{.element = {{kShare}}, .size = 3}},
       .doc = "rates of 128×256, 128×128 and 64×64 tiles, as shares of `per_multiprocessor`"},
      [](const Json& value, GemmRates& rates, const Place&) -> Expected<void> {
        for (std::size_t i = 0; i < rates.tile_efficiency.size(); ++i) {
          rates.tile_efficiency[i] = value[i].get<double>();
        }
        return {};
      },
      [](const GemmRates& rates) -> std::optional<Json> { return Json(rates.tile_efficiency); }};
}

const Section<GemmRates>& gemm_section() {
  using G = GemmRates;
  static const Section<G> section(
      "gemm", "Fitted rates of GEMMs of one dtype, by the tile model (model/cost/kernels/gemm.h).",
      {
          quantity("per_multiprocessor", &G::per_multiprocessor,
                   "rate of one SM in the steady k loop of a 128×256 tile")
              .required(),
          quantity("overhead", &G::overhead, "fixed time of a kernel: launch and tail",
                   Zero::allowed),
          number("fill", &G::fill,
                 "cost of filling and draining a tile's k loop, as extra elements of k", kElements),
          number("memory_share", &G::memory_share,
                 "share of `memory_bandwidth` that a memory-bound GEMM attains", kShare),
          number("wave_round", &G::wave_round,
                 "how far a partial wave of tiles costs a whole one: 0 in proportion, 1 fully",
                 kShareOrZero),
          number("wave_tail", &G::wave_tail, "time lost at the end of a kernel, in waves of tiles",
                 {0, 10}),
          number("clock_drop", &G::clock_drop,
                 "relative slow-down of a long GEMM, whose power draw lowers the clock",
                 kShareOrZero),
          tile_efficiency_field(),
          number(
              "split_bytes", &G::split_bytes,
              "memory traffic per output element, in bytes, of each further split of k (split-k)",
              {0, 1000}),
          number("tile_round", &G::tile_round,
                 "how far a partial tile costs a whole one: 0 in proportion, 1 fully",
                 kShareOrZero),
          number("ragged_rows", &G::ragged_rows,
                 "compute time where m is no multiple of 8, over that of neighbouring shapes",
                 kShare),
          quantity("cache", &G::cache,
                   "size of operands and result up to which repeated runs find them in the "
                   "last-level cache",
                   Zero::allowed),
          number("cache_speed", &G::cache_speed,
                 "bandwidth of the last-level cache over the attained HBM bandwidth", {1, 100}),
          quantity("cast_overhead", &G::cast_overhead,
                   "fixed time to cast the activation, which measured tables include; in a step it "
                   "is priced apart",
                   Zero::allowed),
          number("cast_bytes", &G::cast_bytes,
                 "memory traffic per element of the activation, in bytes, of that cast", {0, 1000}),
          residual("residual", &G::residual, "log2 of m, of n, of k"),
      });
  return section;
}

Field<GemmTable> gemm_of(std::size_t dtype) {
  return {{.key = std::string(kDtypeNames[dtype]),
           .shape = {ObjectShape{&spec_of<gemm_section>, {}}},
           .doc = "fitted rates of GEMMs of this dtype"},
          [dtype](const Json& value, GemmTable& table, const Place& place) {
            return gemm_section().read(value, table[dtype], place);
          },
          [dtype](const GemmTable& table) -> std::optional<Json> {
            if (table[dtype].per_multiprocessor.value() == 0) return std::nullopt;
            Json written = gemm_section().write(table[dtype]);
            const bool as_bf16 = dtype == kFp16 && written == gemm_section().write(table[kBf16]);
            return as_bf16 ? std::nullopt : std::optional<Json>(std::move(written));
          }};
}

template <typename Table, typename MakeField>
std::vector<Field<Table>> by_dtype(MakeField make_field,
                                   const std::string& fp16_absent = "not supported") {
  std::vector<Field<Table>> fields;
  for (std::size_t dtype = 0; dtype < kDtypeNames.size(); ++dtype) {
    fields.push_back(make_field(dtype).absent(dtype == kFp16 ? fp16_absent : "not supported"));
  }
  return fields;
}

const Section<Peaks>& peak_section() {
  static const Section<Peaks> section("peak", "Datasheet peak by dtype.", by_dtype<Peaks>(peak_of));
  return section;
}

const Section<GemmTable>& gemm_table_section() {
  static const Section<GemmTable> section(
      "gemm_by_dtype", "Fitted rates of GEMMs by dtype.",
      by_dtype<GemmTable>(gemm_of, "as bf16 where their peaks are equal, else not supported"));
  return section;
}

const Section<AttentionRates>& attention_section() {
  using A = AttentionRates;
  static const Section<A> section(
      "attention",
      "Fitted rates of forward attention for one head dimension (model/cost/kernels/attention.h).",
      {
          count("head_dim", &A::head_dim,
                "d: head dimension of this entry; times between two entries are interpolated")
              .required(),
          quantity("per_multiprocessor", &A::per_multiprocessor,
                   "rate of one SM on a 128×128 tile of attention scores")
              .required(),
          quantity("overhead", &A::overhead, "fixed time of a kernel: launch and tail",
                   Zero::allowed),
          number("tail", &A::tail,
                 "share of the longest row of tiles that stays exposed at the end of a kernel",
                 {0, 10}),
          quantity("query_tile", &A::query_tile,
                   "fixed time of a tile of 128 queries, at head dimension 128", Zero::allowed),
          number("window_tiles", &A::window_tiles,
                 "tiles of keys that a sliding window touches beyond its width", {0, 100}),
          count("row_tile", &A::row_tile,
                "queries that a tile holds: sequences are rounded up to its multiples",
                {.least = 1, .most = 1024}),
          flag("sliding", &A::sliding,
               "whether these are the rates of the kernel with a sliding window"),
          count("window", &A::window,
                "widest sliding window that was measured, in keys; keys beyond it cost as without "
                "a window")
              .absent("the rates hold for any width"),
          number("query_traffic", &A::query_traffic,
                 "memory traffic of the measured kernel for Q and O, over reading Q and writing O "
                 "once",
                 {0, 100}),
          number("kv_traffic", &A::kv_traffic,
                 "memory traffic of the measured kernel for K and V, over reading them once",
                 {0, 100}),
          quantity("cache", &A::cache,
                   "traffic of a kernel at which half of it misses the last-level cache",
                   Zero::allowed),
          number("cached_share", &A::cached_share,
                 "time of a byte in the last-level cache over that of one in the HBM",
                 kShareOrZero),
          residual("residual", &A::residual,
                   "log2 of the sequence length, of batch × heads, of query heads per KV head"),
      });
  return section;
}

const Section<ExpertRates>& experts_section() {
  using E = ExpertRates;
  static const Section<E> section(
      "experts",
      "Fitted rates of the routed experts' grouped GEMMs (model/cost/kernels/experts.h).",
      {
          quantity("per_multiprocessor", &E::per_multiprocessor,
                   "rate of one SM in the experts' GEMMs")
              .required(),
          quantity("overhead", &E::overhead,
                   "fixed time of a whole expert block: GEMMs, activation, permutation",
                   Zero::allowed),
          number("padding_rows", &E::padding_rows,
                 "mean number of rows by which an expert's tokens are padded", kElements),
          number("fill", &E::fill,
                 "cost of filling and draining a tile's k loop, as extra elements of k", kElements),
          number("memory_share", &E::memory_share,
                 "share of `memory_bandwidth` that reading expert weights attains", kShare),
          number("lone_share", &E::lone_share,
                 "bandwidth of a rank with one expert, over that of a rank with several", kShare),
          number("hidden_passes", &E::hidden_passes,
                 "times each routed token's row of the hidden size crosses the HBM in the measured "
                 "block",
                 {0, 100}),
          number("ffn_passes", &E::ffn_passes,
                 "times each routed token's row of the experts' width crosses the HBM in the "
                 "measured block",
                 {0, 100}),
          number("group_passes", &E::group_passes,
                 "times a row of each token of the expert-parallel group crosses the HBM in the "
                 "measured block",
                 {0, 100}),
          number("skew_gain", &E::skew_gain,
                 "measured excess load of the busiest rank over the excess that the routing's "
                 "power law predicts",
                 {0, 10}),
          residual("residual", &E::residual,
                   "log2 of rows per expert, of experts per rank, of the experts' width on a rank, "
                   "and the routing: 0 balanced, 1 and 2 power laws of exponent 1.01 and 1.2"),
      });
  return section;
}

Expected<void> check_attention(ComputeRates& rates, const Place& place) {
  const auto order = [](const AttentionRates& entry) {
    return std::pair(entry.sliding, entry.head_dim);
  };
  if (!std::ranges::is_sorted(rates.attention, {}, order)) {
    return (place / "attention")
        .error("found head_dim out of order; allowed: ascending, first without a window");
  }
  if (!rates.attention.front().sliding) return {};
  return (place / "attention" / 0).error("found no entry without a window; allowed: one or more");
}

const Section<ComputeRates>& rates_section() {
  using R = ComputeRates;
  static const Section<R> section(
      "rates", "Fitted rates: what kernels attain of the datasheet's figures.",
      {
          object<gemm_table_section>("gemm", &R::gemm, "fitted rates of GEMMs by dtype").required(),
          number("batched_gemm", &R::batched_gemm,
                 "share of their dtype's peak that the GEMMs of unfused attention attain", kShare),
          objects<attention_section>("attention", &R::attention,
                                     "fitted rates of fused attention: first without a window, by "
                                     "ascending `head_dim`, then with one")
              .required(),
          object<experts_section>("experts", &R::experts,
                                  "fitted rates of the experts' grouped GEMMs")
              .absent("a MoE network cannot be priced"),
          number("memory", &R::memory,
                 "share of `memory_bandwidth` that memory-bound operators attain", kShare),
          quantity("launch", &R::launch, "fixed time of a memory-bound kernel: launch and tail",
                   Zero::allowed),
          number("sustained_clock", &R::sustained_clock,
                 "clock in training over the clock at which the kernels were measured", kShare),
          sources<rates_section, R>(),
      },
      {.finish = check_attention});
  return section;
}

const Section<CollectiveCurve>& curve_section() {
  using C = CollectiveCurve;
  using Operation = Named<CollectiveOperation>;
  static const Section<C> section(
      "collective",
      "Fitted time of a collective of S bytes inside one NVLink domain: latency + S/bandwidth + "
      "root·√S.",
      {
          choice("operation", &C::operation,
                 std::array{Operation{"all-reduce", CollectiveOperation::all_reduce},
                            Operation{"all-gather", CollectiveOperation::all_gather},
                            Operation{"reduce-scatter", CollectiveOperation::reduce_scatter},
                            Operation{"all-to-all", CollectiveOperation::all_to_all},
                            Operation{"broadcast", CollectiveOperation::broadcast},
                            Operation{"send", CollectiveOperation::send}},
                 "operation of the curve")
              .required(),
          count("gpus", &C::gpus, "number of devices that take part", {.least = 2}).required(),
          quantity("latency", &C::latency, "constant term of the time", Zero::allowed).required(),
          quantity("bandwidth", &C::bandwidth, "bandwidth of the linear term: S over its time")
              .required(),
          number("root", &C::root, "factor of the √S term, in seconds per √byte", {0, 1}),
          residual("residual", &C::residual, "log2 of S"),
      });
  return section;
}

// Kernels with equal peaks that differ only in rounding share one set of rates.
Expected<void> complete_device(Device& device, const Place& /*place*/) {
  auto& gemm = device.rates.gemm;
  const bool equal_peaks = device.peak[kFp16].value() == device.peak[kBf16].value();
  if (equal_peaks && gemm[kFp16].per_multiprocessor.value() == 0) gemm[kFp16] = gemm[kBf16];
  return {};
}

}  // namespace

const Section<Device>& device_section() {
  using D = Device;
  static const Section<D> section(
      "device", "An accelerator: datasheet figures and fitted rates.",
      {
          text("name", &D::name, "name that tables show").absent("the name of the catalog entry"),
          text("source", &D::source, "where the datasheet figures come from"),
          choice("generation", &D::generation, named<DeviceGeneration>(kDeviceGenerations),
                 "device generation: decides which published runs are alike and which of a stack's "
                 "`releases` hold")
              .absent("another one: no stack has published runs on it, so intervals are wider"),
          object<peak_section>("peak", &D::peak,
                               "dense datasheet peak by dtype, which MFU divides by; times of "
                               "kernels come from `rates`")
              .required(),
          quantity("memory", &D::memory, "capacity of the device memory").required(),
          quantity("memory_bandwidth", &D::memory_bandwidth,
                   "datasheet bandwidth of the device memory")
              .required(),
          quantity("link_bandwidth", &D::link_bandwidth,
                   "bandwidth of its NVLink (or PCIe where there is none), per direction")
              .required(),
          quantity("host_bandwidth", &D::host_bandwidth, "bandwidth to host memory, per direction")
              .absent("unknown: nothing can be offloaded; checkpoints are copied at 25 GB/s"),
          number("overlap_slowdown", &D::overlap_slowdown,
                 "seconds of compute lost per second of overlapped communication, as measured on "
                 "the device",
                 kPart)
              .absent("as the stack has it"),
          quantity("power", &D::power, "power draw at full load")
              .absent("unknown: no energy is stated"),
          quantity("price", &D::price, "price of one device").absent("unknown: no cost is stated"),
          count("multiprocessors", &D::multiprocessors, "number of SMs (multiprocessors)"),
          number("interval_widening", &D::interval_widening,
                 "factor on the logarithm of step-time intervals: above 1 where the rates are "
                 "another device's; `trainyard fit` to its own GEMMs removes it",
                 kWidening),
          object<rates_section>("rates", &D::rates, "fitted rates of its kernels").required(),
          objects<curve_section>("collectives", &D::collectives,
                                 "fitted times of collectives inside one NVLink domain")
              .absent("the formulas of the collective algorithms are used"),
          choice("link_kind", &D::link_kind, named<IntraNodeKind>(kIntraNodeKinds),
                 "kind of the links that `collectives` were measured on: on links of another "
                 "bandwidth the time of bytes is scaled, on links of another kind the algorithms' "
                 "formulas are used")
              .absent("the curves are taken to hold on the links of any node"),
          sources<device_section, D>(),
      },
      {.finish = complete_device});
  return section;
}

}  // namespace trainyard
