#include "scenarios/kernels/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/calibration/fit_attention.h"
#include "model/calibration/fit_collectives.h"
#include "model/calibration/fit_experts.h"
#include "model/calibration/fit_gemm.h"
#include "model/cost/kernels/attention.h"
#include "model/cost/kernels/experts.h"
#include "model/cost/kernels/gemm.h"

namespace trainyard {
namespace {

constexpr double kMostParts = 1e6;  // experts, ranks

using Scored = Expected<std::vector<ScoredKernel>>;

template <typename Sample>
std::vector<Sample>& rows_of(KernelSamples& samples) {
  if (!std::holds_alternative<std::vector<Sample>>(samples)) samples = std::vector<Sample>{};
  return std::get<std::vector<Sample>>(samples);
}

template <typename... Parts>
std::uint64_t shape_key(Parts... parts) {  // FNV-1a over whole numbers
  std::uint64_t hash = 14695981039346656037U;
  ((hash = (hash ^ static_cast<std::uint64_t>(parts)) * 1099511628211U), ...);
  return hash;
}

template <typename Sample, typename Key>
std::vector<std::uint64_t> keys_of(const KernelSamples& samples, Key key) {
  std::vector<std::uint64_t> keys;
  for (const Sample& sample : std::get<std::vector<Sample>>(samples)) keys.push_back(key(sample));
  return keys;
}

template <typename Sample, typename Roofs>
std::vector<KernelRoofs> roofs_of(const KernelSamples& samples, Roofs roofs) {
  std::vector<KernelRoofs> all;
  for (const Sample& sample : std::get<std::vector<Sample>>(samples)) all.push_back(roofs(sample));
  return all;
}

// The time of `flop` at the dtype's peak; zero if the device has no peak for it.
Seconds flop_at_peak(const Device& device, Dtype dtype, Flops flop) {
  const FlopsPerSecond peak = device.peak_of(dtype);
  return peak > FlopsPerSecond(0) ? flop / peak : Seconds(0);
}

tl::unexpected<Error> unsupported(const Device& device, Dtype dtype) {
  return tl::unexpected(Error{device.name, std::string("found rows in ") +
                                               std::string(name_of(dtype)) +
                                               "; allowed: dtypes that the device supports"});
}

// GEMM

constexpr std::array<std::string_view, 5> kGemmColumns = {"dtype", "m", "n", "k", "latency_us"};
constexpr std::array<std::string_view, 2> kUntabledGemm = {"fp32", "fp4"};

void read_gemm(KernelRow& row, KernelSamples& samples) {
  rows_of<GemmSample>(samples).push_back(
      {row.dtype(), {row.whole("m"), row.whole("n"), row.whole("k")}, row.latency()});
}

Expected<void> fit_gemm_family(Device& device, const KernelSamples& samples,
                               const FitProgress& progress) {
  return fit_gemm(device, std::get<std::vector<GemmSample>>(samples), progress);
}

ScoredKernel score_gemm_sample(const Device& device, const GemmSample& sample) {
  const Seconds multiply = gemm_flop(sample.shape) / device.peak_of(sample.dtype);
  const Seconds move = gemm_bytes(sample.dtype, sample.shape) / device.memory_bandwidth;
  const bool large = gemm_flop(sample.shape).value() >= kLargeGemmFlop;
  const std::string_view region = large ? "large" : move > multiply ? "memory-bound" : "small";
  return {sample.time, gemm_sample_time(device, sample), std::string(name_of(sample.dtype)), region,
          std::max(multiply, move)};
}

Scored score_gemm(const Device& device, const KernelSamples& samples) {
  std::vector<ScoredKernel> scored;
  for (const GemmSample& sample : std::get<std::vector<GemmSample>>(samples)) {
    if (!device.supports(sample.dtype)) return unsupported(device, sample.dtype);
    scored.push_back(score_gemm_sample(device, sample));
  }
  return scored;
}

std::vector<KernelRoofs> gemm_roofs(const Device& device, const KernelSamples& samples) {
  return roofs_of<GemmSample>(samples, [&](const GemmSample& s) -> KernelRoofs {
    return {s.dtype, flop_at_peak(device, s.dtype, gemm_flop(s.shape)),
            gemm_bytes(s.dtype, s.shape) / device.memory_bandwidth};
  });
}

// All rows of one weight matrix have one key, so they are held back together, as a new network
// would bring a new matrix.
std::vector<std::uint64_t> gemm_shapes(const KernelSamples& samples) {
  return keys_of<GemmSample>(samples,
                             [](const GemmSample& s) { return shape_key(s.shape.n, s.shape.k); });
}

// Attention, forward

constexpr std::array<std::string_view, 8> kAttentionColumns = {
    "dtype", "batch", "seq", "heads", "kv_heads", "head_dim", "window", "latency_us"};
constexpr std::array<std::string_view, 1> kUntabledAttention = {"backward"};

void read_attention(KernelRow& row, KernelSamples& samples) {
  const double sequence = row.whole("seq");
  const double window = row.whole("window", 0);
  const double head_dim = row.whole("head_dim");
  const double heads = row.whole("heads");
  const double kv_heads = row.whole("kv_heads");
  if (std::fmod(heads, kv_heads) != 0) {
    row.refuse("kv_heads", fmt::format("a divisor of the {} heads", heads));
  }
  // A sliding window has its own kernel, even if it covers all keys.
  const bool sliding = window > 0;
  const AttentionShape shape{.batch = row.whole("batch"),
                             .heads = heads,
                             .kv_heads = kv_heads,
                             .queries = sequence,
                             .keys = sliding ? window : sequence,
                             .query_head_dim = head_dim,
                             .value_head_dim = head_dim,
                             .sliding = sliding};
  rows_of<AttentionSample>(samples).push_back({row.dtype(), shape, row.latency()});
}

Expected<void> fit_attention_family(Device& device, const KernelSamples& samples,
                                    const FitProgress& progress) {
  return fit_attention(device, std::get<std::vector<AttentionSample>>(samples), progress);
}

// The arithmetic that masking leaves, at the peak rate.
Seconds ideal_attention(const Device& device, const AttentionShape& a) {
  const double keys = a.sliding ? std::min(a.keys, a.queries) : a.keys / 2;
  return Flops(4 * a.batch * a.heads * a.queries * keys * a.query_head_dim) /
         device.peak_of(Dtype::bf16);
}

Scored score_attention(const Device& device, const KernelSamples& samples) {
  std::vector<ScoredKernel> scored;
  for (const AttentionSample& sample : std::get<std::vector<AttentionSample>>(samples)) {
    const AttentionShape& a = sample.shape;
    const std::string_view region = a.queries >= 512 ? "long" : "short";
    scored.push_back(
        {sample.time, attention_prefill_time(device, a), "", region, ideal_attention(device, a)});
  }
  return scored;
}

// Bounds from exactly the scores that the mask leaves; queries, keys, values and the result are
// each moved once.
std::vector<KernelRoofs> attention_roofs(const Device& device, const KernelSamples& samples) {
  return roofs_of<AttentionSample>(samples, [&](const AttentionSample& s) -> KernelRoofs {
    const AttentionShape& a = s.shape;
    const double keys = std::min(a.keys, a.queries);
    const double scores = a.queries * keys - keys * (keys - 1) / 2;
    const Flops flop(4 * a.batch * a.heads * scores * a.query_head_dim);
    const double elements = 2 * a.batch * a.queries * (a.heads + a.kv_heads) * a.query_head_dim;
    return {s.dtype, flop_at_peak(device, s.dtype, flop),
            Bytes(bytes_per_element(s.dtype) * elements) / device.memory_bandwidth};
  });
}

std::vector<std::uint64_t> attention_shapes(const KernelSamples& samples) {
  return keys_of<AttentionSample>(samples, [](const AttentionSample& s) {
    return shape_key(s.shape.heads, s.shape.kv_heads, s.shape.query_head_dim);
  });
}

// Experts

constexpr std::array<std::string_view, 10> kExpertColumns = {
    "dtype",   "tokens", "hidden", "ffn",          "topk",
    "experts", "tp",     "ep",     "distribution", "latency_us"};

// The same rules as for scenarios: a token goes to different experts, and all ranks have equally
// many experts and equally many columns of their matrices.
void check_experts(KernelRow& row, const ExpertSample& s) {
  if (s.experts_per_token > s.experts) {
    row.refuse("topk", fmt::format("a whole number from 1 to the {} experts", s.experts));
  }
  if (std::fmod(s.ffn, s.tensor_parallel) != 0) {
    row.refuse("tp", fmt::format("a divisor of ffn, {}", s.ffn));
  }
  if (s.experts % s.expert_parallel != 0) {
    row.refuse("ep", fmt::format("a divisor of the {} experts", s.experts));
  }
}

void read_experts(KernelRow& row, KernelSamples& samples) {
  static constexpr std::array<std::string_view, 3> kDistributions = {"balanced", "power_law_1.01",
                                                                     "power_law_1.2"};
  static constexpr std::array<double, 3> kSkews = {0, 1.01, 1.2};
  const auto count = [&row](std::string_view column) {
    return static_cast<int>(row.whole(column, 1, kMostParts));
  };
  const ExpertSample sample{.dtype = row.dtype(),
                            .tokens = row.whole("tokens"),
                            .hidden = row.whole("hidden"),
                            .ffn = row.whole("ffn"),
                            .experts_per_token = count("topk"),
                            .experts = count("experts"),
                            .tensor_parallel = count("tp"),
                            .expert_parallel = count("ep"),
                            .skew = kSkews[row.choice("distribution", kDistributions)],
                            .time = row.latency()};
  check_experts(row, sample);
  rows_of<ExpertSample>(samples).push_back(sample);
}

std::vector<std::uint64_t> expert_shapes(const KernelSamples& samples) {
  return keys_of<ExpertSample>(samples, [](const ExpertSample& s) {
    return shape_key(s.hidden, s.ffn, s.experts, s.experts_per_token);
  });
}

Expected<void> fit_experts_family(Device& device, const KernelSamples& samples,
                                  const FitProgress& progress) {
  return fit_experts(device, std::get<std::vector<ExpertSample>>(samples), progress);
}

// The FLOP of a rank if all have equally many; the slowest rank has no fewer.
Flops even_expert_flop(const ExpertBlock& block) {
  const double matrices = block.gated ? 3 : 2;
  const double rows = block.routing.tokens * block.routing.experts_per_token / block.ranks;
  return Flops(2 * rows * matrices * block.hidden * block.ffn);
}

// The time to move the weights of the experts that have rows, once.
Seconds move_weights(const Device& device, Dtype dtype, const ExpertBlock& block) {
  const double matrices = block.gated ? 3 : 2;
  const double weights = matrices * block.hidden * block.ffn;
  const Routing& routing = block.routing;
  const double rows = routing.tokens * routing.experts_per_token / block.ranks;
  const double local = static_cast<double>(routing.experts) / block.ranks;
  return Bytes(bytes_per_element(dtype) * std::min(local, rows) * weights) /
         device.memory_bandwidth;
}

std::vector<KernelRoofs> expert_roofs(const Device& device, const KernelSamples& samples) {
  return roofs_of<ExpertSample>(samples, [&](const ExpertSample& s) -> KernelRoofs {
    const ExpertBlock block = expert_block(s);
    return {s.dtype, flop_at_peak(device, s.dtype, even_expert_flop(block)),
            move_weights(device, s.dtype, block)};
  });
}

Seconds ideal_experts(const Device& device, const ExpertBlock& block) {
  return std::max(even_expert_flop(block) / device.peak_of(Dtype::bf16),
                  move_weights(device, Dtype::bf16, block));
}

Scored score_experts(const Device& device, const KernelSamples& samples) {
  std::vector<ScoredKernel> scored;
  for (const ExpertSample& sample : std::get<std::vector<ExpertSample>>(samples)) {
    const ExpertBlock block = expert_block(sample);
    const std::string_view region = sample.skew == 0 ? "balanced" : "skewed";
    scored.push_back(
        {sample.time, expert_block_time(device, block), "", region, ideal_experts(device, block)});
  }
  return scored;
}

// Collectives

constexpr std::array<std::string_view, 4> kCollectiveColumns = {"op", "gpus", "bytes",
                                                                "latency_us"};

void read_collective(KernelRow& row, KernelSamples& samples) {
  static constexpr std::array<std::string_view, 5> kNames = {
      "all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast"};
  rows_of<CollectiveSample>(samples).push_back(
      {static_cast<CollectiveOperation>(row.choice("op", kNames)),
       static_cast<int>(row.whole("gpus", 2, kMostParts)), Bytes(row.whole("bytes")),
       row.latency()});
}

Expected<void> fit_collectives_family(Device& device, const KernelSamples& samples,
                                      const FitProgress& progress) {
  return fit_collectives(device, std::get<std::vector<CollectiveSample>>(samples), progress);
}

Scored score_collectives(const Device& device, const KernelSamples& samples) {
  std::vector<ScoredKernel> scored;
  for (const CollectiveSample& sample : std::get<std::vector<CollectiveSample>>(samples)) {
    const std::string_view region = sample.bytes >= Bytes(1 << 20) ? "large" : "small";
    const bool linked = device.link_bandwidth > BytesPerSecond(0);
    scored.push_back({sample.time, collective_sample_time(device, sample),
                      fmt::format("{} devices", sample.gpus), region,
                      linked ? std::optional(sample.bytes / device.link_bandwidth) : std::nullopt});
  }
  return scored;
}

// A bound from what a member receives from the others; an all-reduce in the switch receives no
// more.
std::vector<KernelRoofs> collective_roofs(const Device& device, const KernelSamples& samples) {
  return roofs_of<CollectiveSample>(samples, [&](const CollectiveSample& s) -> KernelRoofs {
    if (device.link_bandwidth <= BytesPerSecond(0)) return {};
    return {.least = s.bytes * ((s.gpus - 1.0) / s.gpus) / device.link_bandwidth};
  });
}

std::vector<std::uint64_t> collective_shapes(const KernelSamples& samples) {
  return keys_of<CollectiveSample>(
      samples, [](const CollectiveSample& s) { return shape_key(s.bytes.value()); });
}

}  // namespace

std::span<const KernelFamily> kernel_families() {
  static const std::array<KernelFamily, 4> kFamilies = {{
      {"gemm", "/rates/sources/gemm", kGemmColumns, read_gemm, fit_gemm_family, score_gemm,
       gemm_roofs, gemm_shapes, kUntabledGemm},
      {"attention", "/rates/sources/attention", kAttentionColumns, read_attention,
       fit_attention_family, score_attention, attention_roofs, attention_shapes, kUntabledAttention,
       true},
      {"experts",
       "/rates/sources/experts",
       kExpertColumns,
       read_experts,
       fit_experts_family,
       score_experts,
       expert_roofs,
       expert_shapes,
       {},
       true},
      {"collectives",
       "/sources/collectives",
       kCollectiveColumns,
       read_collective,
       fit_collectives_family,
       score_collectives,
       collective_roofs,
       collective_shapes,
       {}},
  }};
  return kFamilies;
}

}  // namespace trainyard
