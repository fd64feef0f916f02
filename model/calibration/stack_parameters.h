// The figures of a stack document that no data sheet gives and that published runs decide: their
// names, their bounds, and what is known of them before any run is seen.
// A prior is a documented or plausible value and a spread: how far a real stack may lie from it
// (one standard deviation of the logarithm; of the value itself for shares). A parameter that the
// runs say nothing about stays at its prior. What a stack fuses, overlaps or keeps in which dtype
// is not here: that is structure, taken from documentation and never fitted.
#pragma once

#include <span>
#include <string_view>

#include "model/workload/stack.h"

namespace trainyard {

struct StackParameter {
  std::string_view name;  // as the document spells it
  double prior = 0;       // base units
  double spread = 0;
  double lowest = 0, highest = 0;
  bool share = false;  // a share: deviations are added; false: a factor, deviations multiply
  void (*set)(Stack&, double) = nullptr;
  bool (*applies)(const Stack&) = nullptr;  // whether a stack of this structure has it
  std::string_view source;                  // of the prior
};

std::span<const StackParameter> stack_parameters();

}  // namespace trainyard
