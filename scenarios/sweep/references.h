// What a scenario refers to, taken into the scenario itself, so that a result file says what its
// points were computed from; and the hash of each of these inputs. Not kept is a file that a value
// of an axis names: it must still be there, unchanged, for a report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/fields/shape.h"

namespace trainyard {

struct SweepInput {
  std::string name;  // a path, or "catalog node dgx-h100-80gb"
  std::string hash;  // SHA-256 of its bytes
  friend bool operator==(const SweepInput&, const SweepInput&) = default;
};

// The document of that kind that `text` names (catalog or path), its own references by path
// resolved, without its tag. Checked.
Expected<Json> resolved_document(std::string_view kind, const std::string& text,
                                 const Place& place);

// Documents referred to by path become part of `value`; paths that must stay paths (a Hugging Face
// config, a pass list) become absolute; names of the catalog stay.
// Requires: `value` passed check(section).
Expected<void> resolve_references(const SectionSpec& section, Json& value, const Place& place);

// Everything that `value` refers to, directly or through other documents, in order, each once.
// Requires: `value` passed check(section); what cannot be read is left out.
void collect_inputs(const SectionSpec& section, const Json& value, const Place& place,
                    std::vector<SweepInput>& inputs);

// The kind of document that the text `node`, a part of `value`, refers to; empty: it is no
// reference. Requires: `value` passed check(section).
std::string kind_of_reference(const SectionSpec& section, Json& value, const Json* node);

}  // namespace trainyard
