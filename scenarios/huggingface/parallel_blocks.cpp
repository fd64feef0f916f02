#include "scenarios/huggingface/parallel_blocks.h"

#include <algorithm>
#include <array>

namespace trainyard {
namespace {

constexpr auto kAlwaysParallel =
    std::to_array<std::string_view>({"gptj", "codegen", "phi", "cohere", "cohere2"});

}  // namespace

bool has_new_decoder(HuggingFaceConfig& config) {
  return config.flag({"new_decoder_architecture"}, config.text("model_type") == "RefinedWeb");
}

bool has_parallel_blocks(HuggingFaceConfig& config, const Architecture& architecture) {
  const std::string_view type = architecture.type;
  if (type == "gpt_neox") return config.flag({"use_parallel_residual"}, true);
  if (type == "stablelm") return config.flag({"use_parallel_residual"}, false);
  if (type == "falcon") return has_new_decoder(config) || config.flag({"parallel_attn"}, true);
  return std::ranges::find(kAlwaysParallel, type) != kAlwaysParallel.end();
}

}  // namespace trainyard
