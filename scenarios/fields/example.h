// Examples of what a field takes, for the documentation.
#pragma once

#include "scenarios/fields/shape.h"

namespace trainyard {

// The example given for the field, else its default, else one that its shape suggests.
Json example_of(const SectionSpec& section, const FieldSpec& field);

}  // namespace trainyard
