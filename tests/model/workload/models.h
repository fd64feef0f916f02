// Networks for the tests. Published networks are written out field by field from the Hugging Face
// configs in shared/models/hf, GPT-3 from Narayanan et al. 2021; llama_8b() and its kin are in
// tests/support. read_huggingface() maps those configs with code of the tests, so it checks the
// importer independently.
#pragma once

#include <filesystem>

#include "model/workload/training.h"
#include "model/workload/transformer.h"
#include "tests/support/networks.h"

namespace trainyard {

Transformer read_huggingface(const std::filesystem::path& file);

// L = 96, h = 12288, a = 96, V = 51200, biases, LayerNorm, GELU, tied, learned positions.
Transformer gpt3_175b();
Transformer mixtral_8x7b();  // as in Mixtral-8x7B-v0.1.json
Transformer deepseek_v3();   // as in DeepSeek-V3.json
Transformer gpt_oss_20b();   // as in gpt-oss-20b.json

// 16-bit training without flash attention and with dropout, as Megatron-LM did in 2021 and 2022.
Training megatron_2022(std::int64_t global_batch = 1536, std::int64_t sequence_length = 2048);
// bf16 training with flash attention and without dropout.
Training modern(std::int64_t sequence_length = 4096);

}  // namespace trainyard
