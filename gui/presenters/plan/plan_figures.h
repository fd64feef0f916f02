// The figures of a plan and of its estimate that tables list and scatters draw: one table for all
// of them. A figure that is unknown is infinite, so that it sorts last.
#pragma once

#include <QString>
#include <span>
#include <string>

namespace trainyard {

struct Candidate;

struct PlanFigure {
  const char* head;   // of a column
  const char* label;  // of a row, and what the head means; both to be translated
  double (*value)(const Candidate& candidate);
  std::string (*text)(double value);
  enum class Kind { axis, figure, key } kind;  // less of an axis is better; a key of the plan
  double unit = 1;                             // in which the text's numbers are round

  QString shown_head() const;
  QString shown_label() const;
  QString shown(const Candidate& candidate) const;
};

// Axes first, keys last.
std::span<const PlanFigure> plan_figures();

}  // namespace trainyard
