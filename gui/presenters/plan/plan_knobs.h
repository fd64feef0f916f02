// The keys of a plan that a control can turn, as whole numbers: degrees as they are, choices by
// their place in a list. Which values are legal, make_plan decides.
#pragma once

#include <QStringList>
#include <span>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

struct PlanKnob {
  const char* key;
  const char* label;  // both to be translated
  const char* help;
  int (*get)(const PlanRequest& request);
  void (*set)(PlanRequest& request, int value);
  std::vector<int> (*candidates)(const Job& job);
  QString (*name)(int value);
  bool is_degree;
};

std::span<const PlanKnob> plan_knobs();

// The request with one key turned; what followed from the old value is left to follow again.
PlanRequest turned(PlanRequest request, const PlanKnob& knob, int value);

// Of the knob's candidates those that give a plan, all other keys as they are.
std::vector<int> legal_values(const PlanKnob& knob, const PlanRequest& request, const Job& job);

}  // namespace trainyard
