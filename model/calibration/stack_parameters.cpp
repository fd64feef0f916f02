#include "model/calibration/stack_parameters.h"

#include <array>

namespace trainyard {
namespace {

bool always(const Stack&) { return true; }

constexpr std::array kParameters = {
    StackParameter{.name = "memory_traffic",
                   .prior = 1.3,
                   .spread = 0.3,
                   .lowest = 0.5,
                   .highest = 6,
                   .set = [](Stack& s, double v) { s.memory_traffic = v; },
                   .applies = always,
                   .source = "partly fused kernels move 1 to 2 times the least traffic"},
    StackParameter{.name = "attention_speed",
                   .prior = 0.8,
                   .spread = 0.2,
                   .lowest = 0.1,
                   .highest = 1.5,
                   .set = [](Stack& s, double v) { s.attention_speed = v; },
                   .applies = [](const Stack& s) { return s.flash_attention; },
                   .source = "FlashAttention 2 and 3 against the inference kernels of the tables"},
    StackParameter{
        .name = "attention_speed_hopper",
        .prior = 0.4,
        .spread = 0.2,
        .lowest = 0.1,
        .highest = 1.5,
        .set = [](Stack& s, double v) { s.attention_speed_hopper = v; },
        .applies = [](const Stack& s) { return s.flash_attention && s.attention_speed_hopper > 0; },
        .source = "FlashAttention 2 reaches 35 to 50 % of FlashAttention 3 on H100"},
    StackParameter{.name = "gemm_speed_hopper",
                   .prior = 0.9,
                   .spread = 0.1,
                   .lowest = 0.5,
                   .highest = 1.1,
                   .set = [](Stack& s, double v) { s.gemm_speed_hopper = v; },
                   .applies = [](const Stack& s) { return s.gemm_speed_hopper > 0; },
                   .source = "the first libraries for Hopper against those of the tables"},
    StackParameter{.name = "expert_speed",
                   .prior = 0.8,
                   .spread = 0.2,
                   .lowest = 0.2,
                   .highest = 1.5,
                   .set = [](Stack& s, double v) { s.expert_speed = v; },
                   .applies = always,
                   .source = "a GEMM for each expert against the one kernel of the tables"},
    StackParameter{.name = "tensor_parallel_hidden",
                   .prior = 0.5,
                   .spread = 0.2,
                   .lowest = 0,
                   .highest = 1,
                   .share = true,
                   .set = [](Stack& s, double v) { s.tensor_parallel_hidden = v; },
                   .applies = [](const Stack& s) { return s.overlap.tensor_parallel; },
                   .source = "half of the traffic lies beside a GEMM it does not depend on"},
    StackParameter{.name = "overlap_slowdown",
                   .prior = 0.2,
                   .spread = 0.7,
                   .lowest = 0.01,
                   .highest = 1,
                   .set = [](Stack& s, double v) { s.overlap_slowdown = v; },
                   .applies =
                       [](const Stack& s) {
                         return s.overlap.tensor_parallel || s.overlap.context_parallel ||
                                s.overlap.data_parallel;
                       },
                   .source = "collectives take 10 to 30 % of the multiprocessors"},
    StackParameter{.name = "host_layer_forward",
                   .prior = 0.4e-3,
                   .spread = 0.5,
                   .lowest = 0.02e-3,
                   .highest = 5e-3,
                   .set = [](Stack& s, double v) { s.host_layer_forward = Seconds(v); },
                   .applies = always,
                   .source = "40 to 80 launches of 5 to 10 us"},
    StackParameter{.name = "host_moe_layer_forward",
                   .prior = 3.4e-3,
                   .spread = 0.5,
                   .lowest = 0.1e-3,
                   .highest = 20e-3,
                   .set = [](Stack& s, double v) { s.host_moe_layer_forward = Seconds(v); },
                   .applies = [](const Stack& s) { return s.host_moe_layer_forward > Seconds(0); },
                   .source =
                       "between 200 launches with a synchronisation, 2 ms, and Qwen3-30B-A3B on "
                       "eight B200 at 150 TFLOP/s without graphs, 5.7 ms "
                       "(yanring/Megatron-MoE-ModelZoo issue 7)"},
    StackParameter{.name = "host_microbatch",
                   .prior = 1e-3,
                   .spread = 0.7,
                   .lowest = 0.05e-3,
                   .highest = 20e-3,
                   .set = [](Stack& s, double v) { s.host_microbatch = Seconds(v); },
                   .applies = always,
                   .source = "100 launches and the batch's bookkeeping"},
    StackParameter{.name = "step_overhead",
                   .prior = 20e-3,
                   .spread = 0.7,
                   .lowest = 1e-3,
                   .highest = 0.5,
                   .set = [](Stack& s, double v) { s.step_overhead = Seconds(v); },
                   .applies = always,
                   .source = "a loader's hand-over, a loss that is read, a log line"},
    StackParameter{.name = "rank_spread",
                   .prior = 0.005,
                   .spread = 0.7,
                   .lowest = 0.0005,
                   .highest = 0.05,
                   .set = [](Stack& s, double v) { s.rank_spread = v; },
                   .applies = always,
                   .source =
                       "half a percent, assumed; Sinha et al. 2022 (arXiv 2208.11035) measured 8 % "
                       "between devices of one type, 22 at most, on V100 and others"},
    StackParameter{.name = "sharded_update_per_rank",
                   .prior = 2.7e-3,
                   .spread = 0.3,
                   .lowest = 0.1e-3,
                   .highest = 10e-3,
                   .set = [](Stack& s, double v) { s.sharded_update_per_rank = Seconds(v); },
                   .applies = [](const Stack& s) { return s.sharded_update_per_rank.value() > 0; },
                   .source = "a broadcast of each rank's part of the update"},
};

}  // namespace

std::span<const StackParameter> stack_parameters() { return kParameters; }

}  // namespace trainyard
