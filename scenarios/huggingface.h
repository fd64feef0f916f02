// Reads a Hugging Face config.json of any dense, MoE or MLA decoder; of a vision-language config it
// reads the text tower. What the config does not say is assumed, and every assumption is reported.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "model/workload/transformer.h"

namespace trainyard {

struct ImportedModel {
  Transformer model;
  // One line each; empty: the config said everything. Also tells how the network's parameters
  // differ from parameter_count(model), learned positions aside: norms, gates and biases that a
  // Transformer does not represent.
  std::vector<std::string> assumptions;
};

Expected<ImportedModel> read_huggingface(const std::filesystem::path& file);
// The same from text; errors call it `name`.
Expected<ImportedModel> parse_huggingface(std::string_view text, const std::string& name);

}  // namespace trainyard
