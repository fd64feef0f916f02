// The figures of a stack document that no data sheet gives and that published runs decide: what
// they are called, where they may lie, and what is known of them before any run is seen.
//
// A prior is a documented or plausible value and how far a real stack may lie from it (one standard
// deviation of the logarithm; of the value itself for shares). Runs that say nothing about a
// parameter leave it at its prior. What a stack fuses, overlaps or keeps in which dtype is not
// here: that is structure, taken from its documentation and never fitted.
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
  bool share = false;  // a share of something: additive, where the others are factors
  void (*set)(Stack&, double) = nullptr;
  bool (*applies)(const Stack&) = nullptr;  // whether a stack of this structure has it
  std::string_view source;                  // of the prior
};

std::span<const StackParameter> stack_parameters();

}  // namespace trainyard
