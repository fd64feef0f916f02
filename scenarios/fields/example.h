// An example of what a field takes, for the documentation.
#pragma once

#include "scenarios/fields/shape.h"

namespace trainyard {

// The one that is given for it, its default, or what its shape suggests.
Json example_of(const SectionSpec& section, const FieldSpec& field);

}  // namespace trainyard
