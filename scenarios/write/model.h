// A network as a document of this project.
#pragma once

#include <string>
#include <string_view>

#include "model/workload/transformer.h"

namespace trainyard {

// The output of `trainyard import huggingface`: a model/1 document that reads back to `model`.
std::string model_document(const Transformer& model, std::string_view source);

}  // namespace trainyard
