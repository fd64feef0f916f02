// The keys of a plan that a control can set. Every value is a whole number: a degree as it is, or
// the index of a choice, such as a schedule, in its list. make_plan decides which values are legal.
#pragma once

#include <QStringList>
#include <span>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

struct PlanKnob {
  const char* key;
  const char* label;  // label and help are to be translated
  const char* help;
  int (*get)(const PlanRequest& request);
  void (*set)(PlanRequest& request, int value);
  std::vector<int> (*candidates)(const Job& job);
  QString (*name)(int value);
  bool is_degree;
};

std::span<const PlanKnob> plan_knobs();

// The request with one key set to `value`. Keys that follow from it, such as data parallelism, are
// left open.
PlanRequest turned(PlanRequest request, const PlanKnob& knob, int value);

// The knob's candidates that give a legal plan while all other keys stay as they are. The present
// value is always among them.
std::vector<int> legal_values(const PlanKnob& knob, const PlanRequest& request, const Job& job);

}  // namespace trainyard
