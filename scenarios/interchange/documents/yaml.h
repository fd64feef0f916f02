// YAML as a JSON value. Anchors, aliases and tags are refused, so that no alias can expand without
// bound; configurations do not need them. At most 1 MiB, 100,000 values, nested at most 64 deep.
// Plain scalars are read as PyYAML reads them (YAML 1.1: yes and on are true).
#pragma once

#include "scenarios/interchange/documents/foreign_file.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

// Errors name the line.
Expected<Json> parse_yaml(const ForeignFile& file);

}  // namespace trainyard
