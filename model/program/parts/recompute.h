// What the backward pass of a layer repeats of its forward pass. Internal to model/program.
#pragma once

#include <cstdint>

#include "model/program/parts/unit.h"

namespace trainyard {

// `attention_core`: the scores of unfused attention only (Korthikanti et al. 2022); a fused kernel
// has none to keep. `every_second_matmul`: parts/every_second.cpp.
enum class Repeats : std::uint8_t { nothing, attention_core, every_second_matmul, everything };
constexpr std::size_t kRepeats = 4;

// Of layer `local_layer` of a stage: everything of all layers, of the first few of each chunk
// (Megatron's block method), or of every second one where the stack means that by selective.
Repeats repeats_of(const Lowering& lowering, int stage, int local_layer);

}  // namespace trainyard
