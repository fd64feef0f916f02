// Copies the documents that a scenario refers to into the scenario itself, so that a result file
// says what its points were computed from, and hashes each of these inputs. A file that a value of
// an axis names is not copied: for a report it must still be there, unchanged.
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

// The document of that kind that `text` names (catalog or path), checked, without its tag, and with
// its own references by path resolved.
Expected<Json> resolved_document(std::string_view kind, const std::string& text,
                                 const Place& place);

// Copies documents that are referred to by path into `value`. Paths that must stay paths (a Hugging
// Face config, a pass list) become absolute; names of the catalog stay.
Expected<void> resolve_references(const SectionSpec& section, Json& value, const Place& place);

// Appends every input that `value` refers to, directly or through other documents, in order, each
// once; inputs that cannot be read are left out. Requires: `value` passed check(section).
void collect_inputs(const SectionSpec& section, const Json& value, const Place& place,
                    std::vector<SweepInput>& inputs);

// The kind of document that the text `node`, a part of `value`, refers to; empty: it is no
// reference. Requires: `value` passed check(section).
std::string kind_of_reference(const SectionSpec& section, Json& value, const Json* node);

}  // namespace trainyard
