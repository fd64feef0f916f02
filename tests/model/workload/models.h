// Networks for the tests, written out field by field: the published ones from the Hugging Face
// configs in shared/models/hf (read by a mapping of the test's own, so that importer and test are
// two roads), GPT-3 from Narayanan et al. 2021; llama_8b() and its kin are in tests/support.
#pragma once

#include <filesystem>

#include "model/workload/training.h"
#include "model/workload/transformer.h"
#include "tests/support/networks.h"

namespace trainyard {

Transformer read_huggingface(const std::filesystem::path& file);

// L = 96, h = 12288, a = 96, V = 51200, biases, LayerNorm, GELU, tied, learned positions.
Transformer gpt3_175b();
Transformer mixtral_8x7b();  // of Mixtral-8x7B-v0.1.json
Transformer deepseek_v3();   // of DeepSeek-V3.json
Transformer gpt_oss_20b();   // of gpt-oss-20b.json

// 16 bits, no flash attention, dropout: Megatron-LM of 2021 and 2022.
Training megatron_2022(std::int64_t global_batch = 1536, std::int64_t sequence_length = 2048);
// bf16, flash attention, no dropout.
Training modern(std::int64_t sequence_length = 4096);

}  // namespace trainyard
