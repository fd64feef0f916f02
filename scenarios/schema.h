// What is generated from the tables of fields in scenarios/fields/: JSON Schema (draft 7) and the
// documentation. The reader works from the same tables, so the three cannot disagree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"

namespace trainyard {

// Kinds of documents: scenario, model, device, node, fabric, stack, passes, profile, sweep.
std::vector<std::string_view> document_kinds();

// The JSON Schema of a kind, as `trainyard schema KIND` prints it and scenarios/schema/ keeps it.
Expected<std::string> json_schema(std::string_view kind);

// The text of docs/scenarios.md.
std::string documents_reference();

}  // namespace trainyard
