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
       .doc = "dense, without sparsity"},
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
       .doc = "rate of 128×256, 128×128 and 64×64 tiles over `per_multiprocessor`"},
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
      "gemm", "GEMMs of one dtype, by the tile model (model/cost/kernels/gemm.h).",
      {
          quantity("per_multiprocessor", &G::per_multiprocessor,
                   "rate of one SM in the steady loop of a 128×256 tile")
              .required(),
          quantity("overhead", &G::overhead, "launch and tail of a kernel", Zero::allowed),
          number("fill", &G::fill, "k-elements that filling and draining a tile costs", kElements),
          number("memory_share", &G::memory_share, "of `memory_bandwidth`, where memory bounds",
                 kShare),
          number("wave_round", &G::wave_round, "how far a partial wave costs a whole one",
                 kShareOrZero),
          number("wave_tail", &G::wave_tail, "waves lost at the end of a kernel", {0, 10}),
          number("clock_drop", &G::clock_drop, "slow-down of a long kernel at full power",
                 kShareOrZero),
          tile_efficiency_field(),
          number("split_bytes", &G::split_bytes,
                 "traffic an output element of each further split of k", {0, 1000}),
          number("tile_round", &G::tile_round, "how far a partial tile costs a whole one",
                 kShareOrZero),
          number("ragged_rows", &G::ragged_rows,
                 "compute of an m that is no multiple of 8, over that of its neighbours", kShare),
          quantity("cache", &G::cache,
                   "operands up to this size stay in the last-level cache from run to run",
                   Zero::allowed),
          number("cache_speed", &G::cache_speed, "its bandwidth over the attained HBM bandwidth",
                 {1, 100}),
          quantity(
              "cast_overhead", &G::cast_overhead,
              "of casting the activation, which the measured tables include and a step's price "
              "has elsewhere",
              Zero::allowed),
          number("cast_bytes", &G::cast_bytes, "likewise: traffic an element of the activation",
                 {0, 1000}),
          residual("residual", &G::residual, "log2 of m, of n, of k"),
      });
  return section;
}

Field<GemmTable> gemm_of(std::size_t dtype) {
  return {{.key = std::string(kDtypeNames[dtype]),
           .shape = {ObjectShape{&spec_of<gemm_section>, {}}},
           .doc = "GEMMs of this dtype"},
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
  static const Section<GemmTable> section("gemm_by_dtype", "GEMMs by dtype.",
                                          by_dtype<GemmTable>(gemm_of, "as bf16, at equal peaks"));
  return section;
}

const Section<AttentionRates>& attention_section() {
  using A = AttentionRates;
  static const Section<A> section(
      "attention", "Forward attention of one head dimension (model/cost/kernels/attention.h).",
      {
          count("head_dim", &A::head_dim, "d: between two entries figures are interpolated")
              .required(),
          quantity("per_multiprocessor", &A::per_multiprocessor,
                   "rate of one SM on a 128×128 tile of scores")
              .required(),
          quantity("overhead", &A::overhead, "launch and tail of a kernel", Zero::allowed),
          number("tail", &A::tail, "share of the longest row that stays exposed at the end",
                 {0, 10}),
          quantity("query_tile", &A::query_tile, "a tile of 128 queries at d = 128", Zero::allowed),
          number("window_tiles", &A::window_tiles,
                 "key tiles that a sliding window touches beyond its width", {0, 100}),
          count("row_tile", &A::row_tile, "queries that a tile holds", {.least = 1, .most = 1024}),
          flag("sliding", &A::sliding, "the kernel with a sliding window"),
          count("window", &A::window,
                "of that kernel, the widest window that was measured: beyond it keys are at the "
                "plain kernel's rate")
              .absent("any width has these rates"),
          number("query_traffic", &A::query_traffic,
                 "traffic of the measured kernel over Q and O once", {0, 100}),
          number("kv_traffic", &A::kv_traffic, "the same over K and V once", {0, 100}),
          quantity("cache", &A::cache, "traffic of which half misses the last-level cache",
                   Zero::allowed),
          number("cached_share", &A::cached_share,
                 "time of the traffic that hits over that which misses", kShareOrZero),
          residual("residual", &A::residual,
                   "log2 of the sequence, of batch × heads, of heads a KV head"),
      });
  return section;
}

const Section<ExpertRates>& experts_section() {
  using E = ExpertRates;
  static const Section<E> section(
      "experts", "Grouped GEMMs of the routed experts (model/cost/kernels/experts.h).",
      {
          quantity("per_multiprocessor", &E::per_multiprocessor, "rate of one SM").required(),
          quantity("overhead", &E::overhead, "of the block: GEMMs, activation, permutation",
                   Zero::allowed),
          number("padding_rows", &E::padding_rows, "rows by which an expert's group is rounded up",
                 kElements),
          number("fill", &E::fill, "k-elements that filling and draining a tile costs", kElements),
          number("memory_share", &E::memory_share, "of `memory_bandwidth`, for weights", kShare),
          number("lone_share", &E::lone_share,
                 "bandwidth of a rank with one expert over `memory_share`", kShare),
          number("hidden_passes", &E::hidden_passes,
                 "of the measured block: times a row of the hidden width crosses the HBM",
                 {0, 100}),
          number("ffn_passes", &E::ffn_passes, "the same of the experts' width", {0, 100}),
          number("group_passes", &E::group_passes,
                 "the same of every token of the expert-parallel group", {0, 100}),
          number("skew_gain", &E::skew_gain,
                 "excess of the busiest rank over what a power law lets expect", {0, 10}),
          residual(
              "residual", &E::residual,
              "log2 of rows an expert, of experts a rank, of the experts' width on a rank, and "
              "the routing: 0 balanced, 1 and 2 power laws of exponent 1.01 and 1.2"),
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
      "rates", "Fitted: what the kernels attain of the datasheet's figures.",
      {
          object<gemm_table_section>("gemm", &R::gemm, "GEMMs by dtype").required(),
          number("batched_gemm", &R::batched_gemm,
                 "the GEMMs of attention that is not fused, of the peak of its precision", kShare),
          objects<attention_section>("attention", &R::attention,
                                     "fused attention, by ascending `head_dim`")
              .required(),
          object<experts_section>("experts", &R::experts, "the experts' GEMMs")
              .absent("a MoE network cannot be priced"),
          number("memory", &R::memory, "memory-bound operators, of `memory_bandwidth`", kShare),
          quantity("launch", &R::launch, "start and tail of a memory-bound kernel", Zero::allowed),
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
      "Fitted time of a collective inside one NVLink domain: latency + S/bandwidth + root·√S.",
      {
          choice("operation", &C::operation,
                 std::array{Operation{"all-reduce", CollectiveOperation::all_reduce},
                            Operation{"all-gather", CollectiveOperation::all_gather},
                            Operation{"reduce-scatter", CollectiveOperation::reduce_scatter},
                            Operation{"all-to-all", CollectiveOperation::all_to_all},
                            Operation{"broadcast", CollectiveOperation::broadcast},
                            Operation{"send", CollectiveOperation::send}},
                 "what is communicated")
              .required(),
          count("gpus", &C::gpus, "devices that take part", {.least = 2}).required(),
          quantity("latency", &C::latency, "the constant term", Zero::allowed).required(),
          quantity("bandwidth", &C::bandwidth, "S over the linear term").required(),
          number("root", &C::root, "of the √S term, in seconds per √byte", {0, 1}),
          residual("residual", &C::residual, "log2 of the bytes"),
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
          text("name", &D::name, "as tables show it").absent("the name of the catalog entry"),
          text("source", &D::source, "where the datasheet figures come from"),
          choice("generation", &D::generation, named<DeviceGeneration>(kDeviceGenerations),
                 "whose runs and releases of software it shares")
              .absent("another: intervals are wider, no run of a stack was on such a device"),
          object<peak_section>(
              "peak", &D::peak,
              "dense peak by dtype, which MFU divides by; how long kernels take is "
              "`rates`")
              .required(),
          quantity("memory", &D::memory, "capacity").required(),
          quantity("memory_bandwidth", &D::memory_bandwidth, "datasheet").required(),
          quantity("link_bandwidth", &D::link_bandwidth,
                   "NVLink (or PCIe where there is none), per direction")
              .required(),
          quantity("host_bandwidth", &D::host_bandwidth, "to host memory, per direction")
              .absent("unknown: nothing can be offloaded; checkpoints are copied at 25 GB/s"),
          number("overlap_slowdown", &D::overlap_slowdown,
                 "seconds of compute lost a second of overlapped communication, measured", kPart)
              .absent("as the stack has it"),
          quantity("power", &D::power, "at full load").absent("unknown: no energy is stated"),
          quantity("price", &D::price, "of one device").absent("unknown: no cost is stated"),
          count("multiprocessors", &D::multiprocessors, "SMs"),
          number("interval_widening", &D::interval_widening,
                 "how many times wider intervals are, in logarithm: above 1 where the rates are "
                 "another device's; `fit` to GEMMs of its own takes it away",
                 kWidening),
          object<rates_section>("rates", &D::rates, "fitted rates").required(),
          objects<curve_section>("collectives", &D::collectives,
                                 "fitted curves inside one NVLink domain")
              .absent("the formulas of the algorithms are used"),
          choice("link_kind", &D::link_kind, named<IntraNodeKind>(kIntraNodeKinds),
                 "of the links of `link_bandwidth` that `collectives` were measured on: on a node "
                 "whose links have another bandwidth what bytes take is scaled to it, on another "
                 "kind of links the formulas of the algorithms are used")
              .absent("the curves are taken to hold on the links of any node"),
          sources<device_section, D>(),
      },
      {.finish = complete_device});
  return section;
}

}  // namespace trainyard
