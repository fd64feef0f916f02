// Reads a Hugging Face config.json: any dense, MoE or MLA decoder; of a vision-language config the
// text tower. What the config does not say is assumed, and every assumption is reported.
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
  // One line each; empty: the config said everything. What the network has beyond
  // parameter_count(model), learned positions aside, or has not, is among them: norms, gates and
  // biases that a Transformer has no place for.
  std::vector<std::string> assumptions;
};

Expected<ImportedModel> read_huggingface(const std::filesystem::path& file);
// The same from text; `name` is what error lines call it.
Expected<ImportedModel> parse_huggingface(std::string_view text, const std::string& name);

}  // namespace trainyard
