// The generated faces of the field tables in scenarios/fields/: JSON Schema (draft 7) and the
// documentation. The reader works from the same tables, so the three cannot disagree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"

namespace trainyard {

// Kinds of documents: scenario, model, device, node, fabric, stack, passes, profile, sweep.
std::vector<std::string_view> document_kinds();

// `trainyard schema KIND`; the files of scenarios/schema/.
Expected<std::string> json_schema(std::string_view kind);

// docs/scenarios.md.
std::string documents_reference();

}  // namespace trainyard
